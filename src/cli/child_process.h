/* A program run to its end, which is also the end of everything it started, and which does not outlive
 * this process, however that ends. */
#ifndef PLUMB_CLI_CHILD_PROCESS_H
#define PLUMB_CLI_CHILD_PROCESS_H

#include "plumb.h"

/* Runs words[0], a path, with the words up to NULL, and with one more variable in its environment.
 * Standard input is empty, standard output goes nowhere, standard error is this process's.  Any other
 * end than exit status 0 is an error whose file is `name`.  Ctrl-C (see interrupt.h) ends the program and
 * gives PLUMB_ERROR_CANCELLED.  For a process with one thread. */
PLUMB_MUST_CHECK plumb_status cli_child_run(const char *name, const char *const *words,
                                            const char *variable, const char *value,
                                            plumb_error *err);

#endif
