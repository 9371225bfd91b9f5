/* What a text handle consists of.  Nothing in it changes after opening: it may be shared between
 * threads, and all working memory belongs to the calls. */
#ifndef PLUMB_TEXT_TOKENIZER_H
#define PLUMB_TEXT_TOKENIZER_H

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pretokenize.h"
#include "text/vocabulary.h"

struct plumb_text {
    char *path; /* of tokenizer.json */
    plumb__vocabulary vocabulary;
    plumb__bpe bpe;
    plumb__added_tokens added;
    plumb__splitter splitter;
};

#endif
