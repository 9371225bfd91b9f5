/* Signals as flags, and a pipe that wakes whoever waits.
 *
 * A signal that comes after a flag was asked and before read(2) blocks would leave that read
 * waiting for ever.  So the handler also writes a byte into a pipe, and cli_read waits for its file
 * and the pipe at once.  The flags are the truth; bytes in the pipe only wake, and one that is left
 * over from an interruption long acted on costs a turn of the loop.
 *
 * A signal handler can reach only what is global; this is all of it. */
#include "cli/interrupt.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

/* Atomic, since a handler runs on any thread and the flags are asked on another. */
static atomic_bool ctrl_c, ctrl_z, asked_to_end;
static int wake[2] = {-1, -1}; /* read and write end; set before the handler is */

static void note(int signal_number) {
    int error = errno;
    atomic_store(signal_number == SIGINT ? &ctrl_c : signal_number == SIGTSTP ? &ctrl_z : &asked_to_end, true);
    /* Full means that there is enough in it to wake. */
    ssize_t ignored = write(wake[1], "", 1);
    (void)ignored;
    errno = error;
}

static bool set_up_end(int fd) {
    if (fd >= FD_SETSIZE) {
        errno = EMFILE;
        return false;
    }
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static bool open_pipe(void) {
    if (wake[0] >= 0) return true;
    int ends[2];
    if (pipe(ends) != 0) return false;
    if (!set_up_end(ends[0]) || !set_up_end(ends[1])) {
        int error = errno;
        close(ends[0]);
        close(ends[1]);
        errno = error;
        return false;
    }
    wake[0] = ends[0];
    wake[1] = ends[1];
    return true;
}

plumb_status cli_interrupt_catch(plumb_error *err) {
    if (!open_pipe())
        return plumb__fail(err, PLUMB_ERROR_IO, NULL, NULL, -1, strerror(errno),
                           "a pipe for signals");
    /* No SA_RESTART: opening a FIFO that nobody writes must end too. */
    struct sigaction action = {.sa_handler = note};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction present;
    /* nohup: whoever wants the work to outlive the terminal has had SIGHUP ignored. */
    if (sigaction(SIGHUP, NULL, &present) == 0 && present.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    return PLUMB_OK;
}

bool cli_interrupted(void) {
    return atomic_load(&ctrl_c) || atomic_load(&asked_to_end);
}

bool cli_asked_to_end(void) {
    return atomic_load(&asked_to_end);
}

void cli_interrupt_clear(void) {
    atomic_store(&ctrl_c, false);
}

static void set_pause_handler(void (*handler)(int)) {
    struct sigaction present, action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    /* Ignored: whoever started this has no use for stopped processes. */
    if (sigaction(SIGTSTP, NULL, &present) == 0 && present.sa_handler != SIG_IGN) sigaction(SIGTSTP, &action, NULL);
}

void cli_pause_catch(bool caught) {
    set_pause_handler(caught && wake[1] >= 0 ? note : SIG_DFL);
    if (!caught && atomic_exchange(&ctrl_z, false)) raise(SIGTSTP);
}

bool cli_asked_to_pause(void) {
    return atomic_load(&ctrl_z);
}

void cli_pause(void) {
    cli_pause_catch(false);
    cli_pause_catch(true);
}

int cli_input_open(void) {
    const char *terminal = ttyname(STDIN_FILENO);
    int fd = -1;
    if (terminal != NULL) fd = open(terminal, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    return fd;
}

static void drain(void) {
    char bytes[64];
    while (read(wake[0], bytes, sizeof bytes) > 0) continue;
}

/* Returns once `fd` has something to read or there was a signal to act on: 0, or -1 with errno. */
static int wait_for(int fd) {
    for (;;) {
        /* Asked after the pipe was drained: a byte taken from it had set its flag before. */
        if (cli_interrupted() || cli_asked_to_pause()) {
            errno = EINTR;
            return -1;
        }
        fd_set ready;
        FD_ZERO(&ready);
        FD_SET(fd, &ready);
        if (wake[0] >= 0) FD_SET(wake[0], &ready);
        int count = select((fd > wake[0] ? fd : wake[0]) + 1, &ready, NULL, NULL, NULL);
        if (count < 0 && errno != EINTR) return -1;
        if (count > 0 && FD_ISSET(fd, &ready)) return 0;
        if (count > 0) drain();
    }
}

ssize_t cli_read(int fd, void *buffer, size_t size) {
    if (fd >= FD_SETSIZE) {
        errno = EMFILE;
        return -1;
    }
    for (;;) {
        if (wait_for(fd) != 0) return -1;
        ssize_t count = read(fd, buffer, size);
        if (count == 0 && cli_interrupted()) { /* the signal came first, and the end will come again */
            errno = EINTR;
            return -1;
        }
        if (count >= 0 || (errno != EINTR && errno != EAGAIN)) return count;
    }
}
