/* Cutting text into the pieces that byte-pair encoding works on (spec: tokenizer-and-chat.md
 * section 2, step 2).
 *
 * The splits are regular expressions from tokenizer.json.  Each is applied to the pieces that the
 * one before has left; matches and the gaps between them all stay as pieces, and for look-ahead a
 * piece ends where it ends.  PCRE2 runs them (pretokenize.c).  For the three splits of the release
 * there is a scanner written by hand (pretokenize_known.c), several times faster and equal in every
 * piece; its classes of characters are asked from PCRE2, so that both follow one Unicode version.
 *
 * Classes of the reference are those of Unicode 16; with an older PCRE2 (10.42 has Unicode 14),
 * characters assigned since may be cut differently. */
#ifndef PLUMB_TEXT_PRETOKENIZE_H
#define PLUMB_TEXT_PRETOKENIZE_H

#include "text/tokenizer_json.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

/* The scanner knows planes 0 and 1; text with characters beyond takes the general way. */
#define PLUMB_CLASSES 0x20000u

typedef struct plumb__splitter {
    struct pcre2_real_code_8 *splits[PLUMB_MAX_SPLITS];
    int n_splits;
    unsigned char *classes; /* (PLUMB_CLASSES) or NULL: other splits than the release's */
} plumb__splitter;

/* Per call; start from {0}, free with plumb__split_scratch_free. */
typedef struct plumb__split_scratch {
    struct pcre2_real_match_data_8 *match;
    struct pcre2_real_match_context_8 *context;
    struct pcre2_real_jit_stack_8 *stack;
    size_t stack_size;
} plumb__split_scratch;
void plumb__split_scratch_free(plumb__split_scratch *scratch);

PLUMB_MUST_CHECK plumb_status plumb__splitter_build(plumb__splitter *splitter,
                                                    const plumb__tokenizer_json *file,
                                                    plumb_error *err);
void plumb__splitter_free(plumb__splitter *splitter);

/* Receives the pieces in order; a failure ends the split. */
typedef plumb_status (*plumb__piece_sink)(void *user, const char *piece, size_t size,
                                          plumb_error *err);

/* Splits valid UTF-8. */
PLUMB_MUST_CHECK plumb_status plumb__split(const plumb__splitter *splitter, const char *text,
                                           size_t size, plumb__split_scratch *scratch,
                                           plumb__piece_sink sink, void *user, plumb_error *err);
/* The same, always by PCRE2. */
PLUMB_MUST_CHECK plumb_status plumb__split_general(const plumb__splitter *splitter,
                                                   const char *text, size_t size,
                                                   plumb__split_scratch *scratch,
                                                   plumb__piece_sink sink, void *user,
                                                   plumb_error *err);

/* ---- Parts ---- */

/* Turns a pattern of tokenizer.json, which means what Oniguruma makes of it, into one that means
 * the same to PCRE2; a construct whose meaning differs is refused.  Free `*translated` with free().
 */
PLUMB_MUST_CHECK plumb_status plumb__pattern_translate(plumb__slice pattern, const char *file,
                                                       char **translated, plumb_error *err);

bool plumb__splits_are_known(const plumb__tokenizer_json *file);
/* Fills (PLUMB_CLASSES) classes from PCRE2's tables. */
PLUMB_MUST_CHECK plumb_status plumb__classes_build(unsigned char *classes, plumb_error *err);
/* Whether the scanner can take this text, and its pieces. */
bool plumb__known_scope(const char *text, size_t size);
PLUMB_MUST_CHECK plumb_status plumb__split_known(const unsigned char *classes, const char *text,
                                                 size_t size, plumb__piece_sink sink, void *user,
                                                 plumb_error *err);

#endif
