/* A reader that wraps another and spoils what comes back, by a table of rules: what drives, file
 * systems and signals do rarely happens here at the n-th read. */
#ifndef PLUMB_TESTS_STREAM_FAULTY_READER_H
#define PLUMB_TESTS_STREAM_FAULTY_READER_H

#include "stream/reader.h"

typedef enum fault_kind {
    FAULT_SHORT, /* all but the last `amount` bytes, at least 1; 0: half of them */
    FAULT_ERROR, /* -amount, an errno */
    FAULT_ZERO,  /* no bytes, as at the end of a file */
    FAULT_DELAY, /* `amount` microseconds late, at most 2000 */
    FAULT_HOLD,  /* only after `amount` reads that come back later, while any other is in flight */
} fault_kind;

typedef struct fault_rule {
    int64_t nth; /* the nth read that is started, from 1 */
    bool every;  /* and the 2 nth, the 3 nth, ... */
    fault_kind kind;
    int64_t amount;
} fault_rule;

/* Takes `inner` over; the rules are copied, and all that fit a read are applied to it in their order.
 * A machine without memory ends the test. */
plumb_reader *faulty_reader_open(plumb_reader *inner, const fault_rule *rules, int n);
/* Other rules from now on: reads and faults are counted from 0 again. */
void faulty_reader_set_rules(plumb_reader *reader, const fault_rule *rules, int n);
int64_t faulty_reader_reads(plumb_reader *reader);  /* that were started */
int64_t faulty_reader_faults(plumb_reader *reader); /* times that a rule was applied */

#endif
