/* What a text handle consists of.  Nothing in it changes after opening: it may be shared between
 * threads, and all working memory belongs to the calls. */
#ifndef PLUMB_TEXT_TOKENIZER_H
#define PLUMB_TEXT_TOKENIZER_H

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pretokenize.h"
#include "text/vocabulary.h"

struct plumb_text {
    plumb__vocabulary vocabulary;
    plumb__bpe bpe;
    plumb__added_tokens added;
    plumb__splitter splitter;
};

/* Opens the bytes of a tokenizer.json (copied); `name` stands for the path in errors. */
PLUMB_MUST_CHECK plumb_status plumb__text_open_bytes(const char *name, const char *bytes,
                                                     size_t size, plumb_text **text,
                                                     plumb_error *err);

#endif
