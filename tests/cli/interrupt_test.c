/* cli_read ends for every signal, whenever it came.  A read that waits for ever would be the fault,
 * so each test has an alarm behind it that ends the program. */
#include "t.h"

#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { PATIENCE = 30 }; /* seconds */

static int ends[2]; /* a pipe to read from */

static void begin(void) {
    plumb_error err = {0};
    T_CHECK(pipe(ends) == 0, "a pipe");
    T_CHECK(cli_interrupt_catch(&err) == PLUMB_OK, "caught");
    cli_interrupt_clear();
    T_CHECK(!cli_interrupted(), "cleared");
    alarm(PATIENCE);
}

static void end(void) {
    alarm(0);
    close(ends[0]);
    close(ends[1]);
}

static bool is_interrupted(void) {
    char byte;
    return cli_read(ends[0], &byte, 1) == -1 && errno == EINTR;
}

static bool reads(char expected) {
    char byte = 0;
    return cli_read(ends[0], &byte, 1) == 1 && byte == expected;
}

static void a_signal_before_the_read(void) {
    begin();
    for (int round = 0; round < 3; round++) {
        raise(SIGINT);
        T_CHECK(cli_interrupted(), "noted");
        T_CHECK(is_interrupted(), "ended");
        T_CHECK(is_interrupted(), "until it is cleared");
        cli_interrupt_clear();
        T_CHECK(!cli_interrupted(), "cleared");
    }
    T_CHECK(write(ends[1], "ab", 2) == 2, "written");
    T_CHECK(reads('a'), "what was written");
    raise(SIGINT);
    T_CHECK(is_interrupted(), "though there is something to read");
    cli_interrupt_clear();
    T_CHECK(reads('b'), "what was written");
    close(ends[1]);
    T_CHECK(cli_read(ends[0], (char[1]){0}, 1) == 0, "the end");
    end();
}

static void more_signals_than_a_pipe_takes(void) {
    begin();
    errno = 0;
    for (int i = 0; i < 70000; i++) raise(SIGINT);
    T_CHECK(errno == 0, "the handler leaves errno alone");
    cli_interrupt_clear();
    T_CHECK(write(ends[1], "a", 1) == 1, "written");
    T_CHECK(reads('a'), "what is left in the pipe ends nothing");
    raise(SIGINT);
    T_CHECK(is_interrupted(), "ended");
    end();
}

/* What a resized window is to the editor: the second one brings something to read. */
static int strokes;

static void on_stroke(int number) {
    (void)number;
    if (++strokes == 2) (void)!write(ends[1], "a", 1);
}

static void other_signals(void) {
    begin();
    alarm(0); /* which setitimer replaces */
    struct sigaction action = {.sa_handler = on_stroke};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    const struct itimerval often = {{0, 20000}, {0, 20000}};
    setitimer(ITIMER_REAL, &often, NULL);
    T_CHECK(reads('a'), "what was written");
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    signal(SIGALRM, SIG_DFL);
    T_CHECK(strokes >= 2, "%d", strokes);
    end();
}

#if defined(__linux__)
/* In place of the C library's: a signal comes when the wait is over, and nothing tells of it any more. */
static bool signal_after_wait;

int select(int n, fd_set *reading, fd_set *writing, fd_set *faults, struct timeval *limit) {
    (void)limit; /* none here */
    int count = (int)syscall(SYS_pselect6, n, reading, writing, faults, NULL, NULL);
    if (signal_after_wait) raise(SIGINT);
    return count;
}

/* Whoever sends a signal and then closes the pipe means the signal. */
static void a_signal_before_the_end(void) {
    begin();
    T_CHECK(write(ends[1], "a", 1) == 1 && close(ends[1]) == 0, "written");
    signal_after_wait = true;
    T_CHECK(reads('a'), "no byte is lost");
    T_CHECK(is_interrupted(), "the next");
    cli_interrupt_clear();
    T_CHECK(is_interrupted(), "though the end was there");
    signal_after_wait = false;
    cli_interrupt_clear();
    T_CHECK(cli_read(ends[0], (char[1]){0}, 1) == 0, "the end comes again");
    end();
}
#else
static void a_signal_before_the_end(void) {
    T_CHECK(true, "skipped");
    printf("skipped: the C library's calls cannot be replaced here\n");
}
#endif

static void *interrupt_here(void *unused) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGINT);
    return unused;
}

static void a_signal_on_another_thread(void) {
    begin();
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    pthread_t thread;
    T_CHECK(pthread_create(&thread, NULL, interrupt_here, NULL) == 0, "a thread");
    T_CHECK(is_interrupted(), "ended");
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    end();
}

/* Typed text that Ctrl-C drops must not leave a read waiting for it. */
static void a_terminal_does_not_block(void) {
    int master = posix_openpt(O_RDWR | O_NOCTTY), old = dup(STDIN_FILENO), terminal = -1;
    const char *name = NULL;
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0) name = ptsname(master);
    if (name != NULL) terminal = open(name, O_RDWR | O_NOCTTY);
    if (terminal < 0) {
        printf("skipped: no pseudo-terminal here\n");
        T_CHECK(true, "skipped");
        return;
    }
    begin();
    T_CHECK(dup2(terminal, STDIN_FILENO) == STDIN_FILENO, "standard input");
    int fd = cli_input_open();
    T_CHECK(fd > STDIN_FILENO && isatty(fd), "%d", fd);
    char bytes[8];
    T_CHECK(read(fd, bytes, sizeof bytes) == -1 && errno == EAGAIN, "nothing typed");
    T_CHECK((fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK) == 0, "others' standard input still does");
    T_CHECK(write(master, "hi\n", 3) == 3, "typed");
    T_CHECK(cli_read(fd, bytes, sizeof bytes) == 3 && memcmp(bytes, "hi\n", 3) == 0, "typed");
    raise(SIGINT);
    T_CHECK(cli_read(fd, bytes, sizeof bytes) == -1 && errno == EINTR, "ended");
    close(fd);
    dup2(old, STDIN_FILENO);
    close(old);
    close(terminal);
    close(master);
    end();
}

static void a_request_to_end(void) {
    begin();
    raise(SIGTERM);
    cli_interrupt_clear();
    T_CHECK(cli_interrupted() && cli_asked_to_end(), "stays");
    T_CHECK(is_interrupted(), "ended");
    end();
}

/* The last one leaves the request behind. */
T_MAIN({"a_signal_before_the_read", a_signal_before_the_read},
       {"more_signals_than_a_pipe_takes", more_signals_than_a_pipe_takes},
       {"other_signals", other_signals},
       {"a_signal_before_the_end", a_signal_before_the_end},
       {"a_signal_on_another_thread", a_signal_on_another_thread},
       {"a_terminal_does_not_block", a_terminal_does_not_block},
       {"a_request_to_end", a_request_to_end})
