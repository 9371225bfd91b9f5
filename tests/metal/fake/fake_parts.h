/* Arguments of one dispatch that lie in the same buffer.
 *
 * The Metal Shading Language lets a compiler take the buffers of a kernel for memory apart, as C's
 * `restrict` does: what one argument writes may not be touched through another.  Bindings say where an
 * argument begins and not how far it reaches, and distinct parts of one allocation are legitimate.  So:
 * - two arguments with the same beginning, one of which is written, are refused when they are encoded;
 * - an argument may reach up to where the next one begins, if either of the two is written.  It is run
 *   on a copy of just that, with a page behind it that may not be touched: reaching further faults.
 * What is only read may be bound as often as the host likes.  Parts that lie between each other's rows
 * are the one legitimate use that is refused; the host has none. */
#ifndef PLUMB_TESTS_METAL_FAKE_PARTS_H
#define PLUMB_TESTS_METAL_FAKE_PARTS_H

#import "fake_commands.h"

/* The copies of one dispatch, by index. */
typedef struct fake_parts {
    struct fake_part {
        uint8_t *pages; /* NULL: the argument is used where it lies */
        uint8_t *copy;  /* ends at the guard page */
        uint8_t *before; /* what it was, behind that page */
        int64_t bytes, mapped;
    } part[EMULATED_ARGUMENTS];
} fake_parts;

/* Another argument that begins where this one does, one of the two being written; -1: none. */
int fake_same_beginning(const fake_dispatch *dispatch, const emulated_parameter *p);
/* Gives `to` copies in place of arguments that another one follows in their buffer. */
void fake_separate_parts(const fake_dispatch *dispatch, fake_parts *parts, emulated_dispatch *to);
/* Brings back what was written and frees the copies. */
void fake_join_parts(const fake_dispatch *dispatch, fake_parts *parts);

#endif
