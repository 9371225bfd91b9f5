/* A reader that a test can look into, hold up, and make fail.
 *
 * Two threads answer reads, in a shuffled order, with pread; the n-th answer can be another one. */
#ifndef PLUMB_TESTS_STREAM_SCRIPTED_READER_H
#define PLUMB_TESTS_STREAM_SCRIPTED_READER_H

#include "stream/reader.h"

typedef enum scripted_fault {
    SCRIPTED_NONE,
    SCRIPTED_EIO,
    SCRIPTED_END_OF_FILE,
    SCRIPTED_SHORT,      /* one byte, from then on */
    SCRIPTED_INTERRUPTED /* once */
} scripted_fault;

typedef struct scripted_reader scripted_reader;

/* Closed through its ops.  Ends the program when there is no memory. */
scripted_reader *scripted_reader_open(int depth);
plumb_reader *scripted_reader_base(scripted_reader *reader);

/* The `at`-th answer from now on (0: the next one) is `fault`. */
void scripted_reader_fail(scripted_reader *reader, int64_t at, scripted_fault fault);
/* While held, nothing is answered. */
void scripted_reader_hold(scripted_reader *reader, bool held);
/* Reads that were started; that are unfinished; the most that ever were. */
int64_t scripted_reader_started(scripted_reader *reader);
int scripted_reader_unfinished(scripted_reader *reader);
int scripted_reader_most(scripted_reader *reader);

#endif
