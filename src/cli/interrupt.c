/* A signal handler can reach only what is global; these flags are all of it. */
#include "cli/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t interrupted, asked_to_end;

static void note(int signal_number) {
    interrupted = 1;
    if (signal_number != SIGINT) asked_to_end = 1;
}

void cli_interrupt_catch(void) {
    /* No SA_RESTART: a read that waits for the keyboard must return. */
    struct sigaction action = {.sa_handler = note};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction present;
    /* nohup: whoever wants the work to outlive the terminal has had SIGHUP ignored. */
    if (sigaction(SIGHUP, NULL, &present) == 0 && present.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

bool cli_interrupted(void) {
    return interrupted != 0;
}

bool cli_asked_to_end(void) {
    return asked_to_end != 0;
}

void cli_interrupt_clear(void) {
    interrupted = asked_to_end;
}
