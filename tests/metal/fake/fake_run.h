/* Runs one dispatch in the emulator, with memory laid out and looked at so that faults are noticed.
 */
#ifndef PLUMB_TESTS_METAL_FAKE_RUN_H
#define PLUMB_TESTS_METAL_FAKE_RUN_H

#import "fake_command_buffer.h"

/* A queue's place for the constants of the dispatch that runs: a page and a guard page for each index;
 * NULL without memory. */
uint8_t *fake_map_constants(void);
void fake_unmap_constants(uint8_t *constants);

/* On the queue's thread. False: `fault` says what went wrong, and validation has been told. */
bool fake_run(FakeCommandBuffer *buffer, const fake_dispatch *dispatch,
              char fault[EMULATED_FAULT_BYTES]);

/* Checks every address in the tables of experts that the dispatch reads: it must lie in a live
 * buffer that a residency set of the queue had when the command buffer was committed. */
bool fake_check_addresses(FakeCommandBuffer *buffer, const fake_dispatch *dispatch,
                          char fault[EMULATED_FAULT_BYTES]);

#endif
