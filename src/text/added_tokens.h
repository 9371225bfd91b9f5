/* Added tokens: strings that are cut out of template text before anything else, leftmost first,
 * then longest (spec: tokenizer-and-chat.md section 2, step 1). */
#ifndef PLUMB_TEXT_ADDED_TOKENS_H
#define PLUMB_TEXT_ADDED_TOKENS_H

#include "text/vocabulary.h"

typedef struct plumb__added_tokens {
    const plumb__vocabulary *vocabulary; /* borrowed */
    int32_t *ids;                        /* (count) sorted by their bytes */
    int64_t count;
    bool begins[256]; /* whether any begins with this byte */
} plumb__added_tokens;

PLUMB_MUST_CHECK plumb_status plumb__added_tokens_build(plumb__added_tokens *added,
                                                        const plumb__vocabulary *vocabulary,
                                                        const char *file, plumb_error *err);
void plumb__added_tokens_free(plumb__added_tokens *added);

/* Id of the added token with exactly this text, or -1. */
int32_t plumb__added_token_id(const plumb__added_tokens *added, const char *text, size_t size);
/* The first occurrence at or after `from`: its id, its place in *at.  -1 and *at = size if none. */
int32_t plumb__added_token_next(const plumb__added_tokens *added, const char *text, size_t size,
                                size_t from, size_t *at);

#endif
