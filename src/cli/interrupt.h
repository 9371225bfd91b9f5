/* Ctrl-C as a question that long work asks, instead of a death in the middle of it. */
#ifndef PLUMB_CLI_INTERRUPT_H
#define PLUMB_CLI_INTERRUPT_H

#include <stdbool.h>

void cli_interrupt_catch(void); /* from now on SIGINT and SIGTERM only set the flag */
bool cli_interrupted(void);
void cli_interrupt_clear(void);

#endif
