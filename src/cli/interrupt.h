/* Ctrl-C as a question that long work asks, instead of a death in the middle of it. */
#ifndef PLUMB_CLI_INTERRUPT_H
#define PLUMB_CLI_INTERRUPT_H

#include <stdbool.h>

void cli_interrupt_catch(void); /* from now on SIGINT, SIGTERM and SIGHUP only set flags */
bool cli_interrupted(void);
bool cli_asked_to_end(void);    /* by SIGTERM or SIGHUP: the whole program is meant */
void cli_interrupt_clear(void); /* forgets Ctrl-C; a request to end stays */

#endif
