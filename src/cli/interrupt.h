/* Ctrl-C as a question that long work asks, instead of a death in the middle of it.
 *
 * An interruption stays until whoever acted on it clears it, so none is lost between two
 * questions: not while nobody waits, not just before somebody does. */
#ifndef PLUMB_CLI_INTERRUPT_H
#define PLUMB_CLI_INTERRUPT_H

#include "plumb.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* From now on SIGINT, SIGTERM and SIGHUP only make cli_interrupted true.  On failure they keep
 * their old effect. */
PLUMB_MUST_CHECK plumb_status cli_interrupt_catch(plumb_error *err);
bool cli_interrupted(void);     /* since the last cli_interrupt_clear */
bool cli_asked_to_end(void);    /* by SIGTERM or SIGHUP: the whole program is meant */
void cli_interrupt_clear(void); /* forgets Ctrl-C, which was acted on; a request to end stays */

/* While it is caught, Ctrl-Z only ends a cli_read: who has set the terminal up for itself sets it back, pauses, and
 * sets it up again.  One that came too late for a cli_read pauses when it is caught no more. */
void cli_pause_catch(bool caught);
bool cli_asked_to_pause(void);
void cli_pause(void); /* stops the process, as Ctrl-Z would have, until it is continued */

/* Standard input for cli_read; -1 with errno, closed by the caller.  A terminal is opened anew and
 * does not block: at Ctrl-C its driver drops what was typed, also between the wait for it and the
 * read of it. */
int cli_input_open(void);
/* read(2), except that while cli_interrupted or cli_asked_to_pause is true, or once one becomes true, it fails
 * with EINTR; no other signal ends it.  One thread at a time. */
ssize_t cli_read(int fd, void *buffer, size_t size);

#endif
