/* Running a program; see child_process.h.
 *
 * The program and all it starts form a process group, so that one signal reaches them all.  The leader
 * of the group is a keeper: a copy of this process that only waits for the end of a pipe whose other end
 * this process holds.  That end comes when this process is gone, if only by SIGKILL, and then the keeper
 * ends the group.  A second pipe, held by the program, tells by its end that nothing of it runs any
 * more; Ctrl-C interrupts the wait for that. */
#include "cli/child_process.h"

#include "base/error.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MILLISECONDS = 2000 }; /* from the request to end to the end */

typedef struct child {
    const char *name;
    pid_t keeper, program; /* 0: not started */
    int alive;             /* this process's end of the keeper's pipe */
    int running;           /* readable once the program and all it started are gone */
} child;

static plumb_status fail(const child *c, plumb_error *err, const char *expected) {
    return plumb__fail(err, PLUMB_ERROR_IO, c->name, NULL, -1, strerror(errno), "%s", expected);
}

static void wait_for(pid_t process, int *status) {
    while (waitpid(process, status, 0) < 0 && errno == EINTR) continue;
}

/* ---- The keeper ---- */

/* Never returns. */
static void keep(int alive) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    setpgid(0, 0);
    char byte;
    while (read(alive, &byte, 1) < 0 && errno == EINTR) continue;
    kill(0, SIGTERM);
    poll(NULL, 0, GRACE_MILLISECONDS);
    kill(0, SIGKILL);
    _exit(0);
}

static plumb_status start_keeper(child *c, plumb_error *err) {
    int ends[2];
    if (pipe(ends) != 0) return fail(c, err, "a pipe");
    c->alive = ends[1];
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    pid_t keeper = fork();
    if (keeper == 0) {
        close(ends[1]);
        keep(ends[0]);
    }
    int error = errno;
    close(ends[0]);
    errno = error;
    if (keeper < 0) return fail(c, err, "a process");
    c->keeper = keeper;
    /* Whoever comes first: both sides need it done. */
    setpgid(keeper, keeper);
    return PLUMB_OK;
}

/* ---- The program ---- */

/* Never returns.  What a shell would give a program in the background, but for the signals that plumb
 * ignores and programs may rely on. */
static void become(const child *c, const char *const *words, const char *variable,
                   const char *value) {
    setpgid(0, c->keeper);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGTTOU, SIG_IGN); /* it may write to the terminal */
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0 && setenv(variable, value, 1) == 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        if (nothing > STDERR_FILENO) close(nothing);
        /* The strings are not written to; execv's type is older than const. */
        execv(words[0], (char *const *)words);
    }
    fprintf(stderr, "plumb: %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static plumb_status start_program(child *c, const char *const *words, const char *variable,
                                  const char *value, plumb_error *err) {
    int ends[2];
    if (pipe(ends) != 0) return fail(c, err, "a pipe");
    c->running = ends[0];
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    pid_t program = fork();
    if (program == 0) become(c, words, variable, value);
    int error = errno;
    close(ends[1]);
    errno = error;
    if (program < 0) return fail(c, err, "a process");
    c->program = program;
    setpgid(program, c->keeper);
    return PLUMB_OK;
}

/* False after Ctrl-C. */
static bool wait_for_program(child *c, int *status) {
    char byte;
    if (cli_read(c->running, &byte, 1) < 0 && cli_interrupted()) return false;
    /* At once, unless the program closed what it had been given. */
    while (waitpid(c->program, status, 0) < 0)
        if (errno != EINTR || cli_interrupted()) return false;
    c->program = 0;
    return true;
}

static void ask_to_end(const child *c) {
    kill(-c->keeper, SIGTERM);
    struct pollfd wait = {.fd = c->running, .events = POLLIN};
    poll(&wait, 1, GRACE_MILLISECONDS);
}

static plumb_status judge_end(const child *c, int status, plumb_error *err) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return PLUMB_OK;
    plumb__text192 found = WIFSIGNALED(status)
                               ? plumb__format("an end by signal %d", WTERMSIG(status))
                               : plumb__format("exit status %d", WEXITSTATUS(status));
    return plumb__fail(err, PLUMB_ERROR_IO, c->name, NULL, -1, found.s, "exit status 0");
}

/* Nothing of the group is left after this. */
static void end_group(child *c) {
    if (c->keeper > 0) kill(-c->keeper, SIGKILL);
    if (c->program > 0) wait_for(c->program, NULL);
    if (c->keeper > 0) wait_for(c->keeper, NULL);
    if (c->alive >= 0) close(c->alive);
    if (c->running >= 0) close(c->running);
}

plumb_status cli_child_run(const char *name, const char *const *words, const char *variable,
                           const char *value, plumb_error *err) {
    child c = {.name = name, .alive = -1, .running = -1};
    int end = 0;
    plumb_status status = start_keeper(&c, err);
    if (status == PLUMB_OK) status = start_program(&c, words, variable, value, err);
    if (status == PLUMB_OK && wait_for_program(&c, &end)) {
        status = judge_end(&c, end, err);
    } else if (status == PLUMB_OK) {
        ask_to_end(&c);
        status = plumb__fail(err, PLUMB_ERROR_CANCELLED, name, NULL, -1, NULL, NULL);
    }
    end_group(&c);
    return status;
}
