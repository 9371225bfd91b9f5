/* A signal handler can reach only what is global; this flag is all of it. */
#include "cli/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t interrupted;

static void note(int signal_number) {
    (void)signal_number;
    interrupted = 1;
}

void cli_interrupt_catch(void) {
    /* No SA_RESTART: a read that waits for the keyboard must return. */
    struct sigaction action = {.sa_handler = note};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cli_interrupted(void) {
    return interrupted != 0;
}

void cli_interrupt_clear(void) {
    interrupted = 0;
}
