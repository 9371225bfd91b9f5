/* What an answer may look like, and which tokens may come next.
 *
 * A grammar is an automaton over bytes and the few control tokens that markup needs.  It is compiled from a
 * JSON Schema or from the functions that may be called; a matcher is a place in it, moved by sampled
 * tokens, which tells the tokens that may follow as a set of bits for plumb_sampling. */
#ifndef PLUMB_GRAMMAR_GRAMMAR_H
#define PLUMB_GRAMMAR_GRAMMAR_H

#include "plumb.h"

#include <jansson.h>

/* ---- Grammars: immutable once made, may be shared between threads ---- */

typedef struct plumb_grammar plumb_grammar;

/* Any JSON object, as response_format json_object asks for it. */
PLUMB_MUST_CHECK plumb_status plumb__grammar_json_object(plumb_grammar **grammar, plumb_error *err);
/* JSON texts that fit the schema.  A keyword or form that is not supported (README.md lists those that are) is
 * PLUMB_ERROR_UNSUPPORTED, a schema that is wrong PLUMB_ERROR_FORMAT; err->field is its JSON pointer. */
PLUMB_MUST_CHECK plumb_status plumb__grammar_json_schema(const json_t *schema, plumb_grammar **grammar,
                                                         plumb_error *err);
/* An answer that is one block of calls (tokenizer-and-chat.md section 5.1) of these functions, an array of
 * {"name", "parameters": schema}: one call, or one or more. */
PLUMB_MUST_CHECK plumb_status plumb__grammar_calls(const json_t *functions, bool several,
                                                   plumb_grammar **grammar, plumb_error *err);
/* Either of the two, as the model likes: a JSON text that fits the schema (NULL: any object), or calls. */
PLUMB_MUST_CHECK plumb_status plumb__grammar_json_or_calls(const json_t *schema, const json_t *functions,
                                                           bool several, plumb_grammar **grammar,
                                                           plumb_error *err);
void plumb__grammar_retain(plumb_grammar *grammar);
void plumb__grammar_release(plumb_grammar *grammar); /* NULL is fine */

/* ---- The vocabulary, once per text handle, which must outlive it ---- */

typedef struct plumb_token_trie plumb_token_trie;
PLUMB_MUST_CHECK plumb_status plumb__token_trie_create(const plumb_text *text, plumb_token_trie **trie,
                                                       plumb_error *err);
void plumb__token_trie_destroy(plumb_token_trie *trie);

/* ---- A place in a grammar: one for each answer, used by one thread at a time ---- */

typedef struct plumb_matcher plumb_matcher;
/* Retains the grammar; the trie must outlive it. */
PLUMB_MUST_CHECK plumb_status plumb__matcher_create(plumb_grammar *grammar, const plumb_token_trie *trie,
                                                    plumb_matcher **matcher, plumb_error *err);
void plumb__matcher_destroy(plumb_matcher *matcher);
/* Bit i % 32 of word i / 32: token i may follow.  EOS is among them where the text may end.  At least one
 * bit is set.  Valid until the next call; NULL: no memory. */
const uint32_t *plumb__matcher_allowed(plumb_matcher *matcher);
/* Moves on; false, and stays, if the token may not follow. */
bool plumb__matcher_accept(plumb_matcher *matcher, int32_t token);

#endif
