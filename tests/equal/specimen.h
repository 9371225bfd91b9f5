/* Models, prompts and logits for the tests of equality.
 *
 * A specimen is a synthetic checkpoint (the `checkpoints` fixture writes it) and the prompt its
 * published outputs were made with.  Logits are kept whole, [position][vocab], so that a test can
 * name the first position that differs; XXH3-64 of all of them is the one number printed.
 *
 * What these helpers need to go on is not what is tested: when it fails the program ends. */
#ifndef PLUMB_TESTS_EQUAL_SPECIMEN_H
#define PLUMB_TESTS_EQUAL_SPECIMEN_H

#include "kernels/levels.h"
#include "plumb.h"

typedef struct specimen {
    const char *name;
    char folder[512];
    int64_t count; /* tokens of the prompt */
    int64_t vocab;
    int32_t *tokens; /* [count] */
} specimen;

/* `name` is tiny or deep40; `checkpoints` is the folder that holds them, TEST_DATA is read for the
 * prompt. */
specimen specimen_open(const char *checkpoints, const char *name);
void specimen_close(specimen *s);

/* Opens with `threads` threads and kernels of `level` (NULL: the best). */
plumb_model *specimen_model(const specimen *s, int threads, const char *level);
plumb_session *specimen_session(plumb_model *model, int64_t chunk);

/* Zeroed room for the logits of all positions. */
float *specimen_logits(const specimen *s);
/* Evaluates the prompt from the session's length up to `end`, in one call; row p of the logits goes
 * to logits + p * vocab. */
void specimen_advance(const specimen *s, plumb_session *session, int64_t end, float *logits);
/* The same for any tokens, given for all positions from 0. */
void specimen_feed(plumb_session *session, const int32_t *tokens, int64_t end, int64_t vocab,
                   float *logits);

/* First position in [begin, end) whose logits differ in any bit, or -1. */
int64_t specimen_first_difference(const specimen *s, const float *a, const float *b, int64_t begin,
                                  int64_t end);
/* XXH3-64 of the logits of positions [0, rows). */
uint64_t specimen_hash(const specimen *s, const float *logits, int64_t rows);

/* All known levels; of those that are not here a test says "skipped". */
typedef struct specimen_level {
    const char *name;
    bool present;
} specimen_level;
enum { SPECIMEN_LEVELS = KNOWN_LEVELS };
void specimen_levels(specimen_level levels[SPECIMEN_LEVELS]);

/* Prints the error and ends the program, unless the status is PLUMB_OK. */
void specimen_must(plumb_status status, const plumb_error *err, const char *what);

#endif
