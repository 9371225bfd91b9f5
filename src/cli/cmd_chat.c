/* plumb chat: one answer with -p, otherwise a conversation line by line.
 *
 * The same reader serves people and pipes.  Lines that start with a slash are commands of the
 * table below; everything else is a message. */
#include "cli/commands.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cli/chat_sessions.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/line_input.h"
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct talk {
    cli_chat chat;
    cli_line_input *input;
    char *message; /* (size) the message being put together from lines; NUL after it */
    int64_t size, capacity;
    bool leave;
    int status; /* CLI_FAILED once a turn has failed */
} talk;

static const cli_options *options_of(const talk *t) {
    return t->chat.runtime.options;
}

static void fail(talk *t, const plumb_error *err) {
    t->status = CLI_FAILED;
    (void)cli_report(options_of(t), err);
}

/* ---- Messages of several lines ---- */

static plumb_status append(talk *t, const char *bytes, size_t size, plumb_error *err) {
    int64_t total = t->size + (int64_t)size;
    if (total > CLI_MOST_LINE_BYTES)
        return plumb__fail(err, PLUMB_ERROR_IO, NULL, "message", -1, "a longer one",
                           "at most %d bytes", CLI_MOST_LINE_BYTES);
    void *grown = plumb__grow(t->message, &t->capacity, total + 1, 1);
    if (grown == NULL) return plumb__fail_memory(err, "message", (size_t)total + 1);
    t->message = grown;
    memcpy(t->message + t->size, bytes, size);
    t->size = total;
    t->message[t->size] = '\0';
    return PLUMB_OK;
}

/* A line and those that its trailing backslashes join to it. */
static cli_line_status read_message(talk *t, plumb_error *err) {
    const char *prompt = "> ";
    t->size = 0;
    for (;;) {
        const char *line;
        size_t size;
        cli_line_status status = cli_line_input_read(t->input, prompt, &line, &size, err);
        if (status != CLI_LINE_READ) return status;
        bool goes_on = size > 0 && line[size - 1] == '\\';
        if (append(t, line, size - goes_on, err) != PLUMB_OK) return CLI_LINE_FAILED;
        if (!goes_on) break;
        if (append(t, "\n", 1, err) != PLUMB_OK) return CLI_LINE_FAILED;
        prompt = ". ";
    }
    cli_line_input_remember(t->input, t->message);
    return CLI_LINE_READ;
}

/* ---- Commands ---- */

/* After an interruption: in a pipe Ctrl-C means the whole run; at a terminal, this answer.  Only
 * here is it cleared: one that comes while nobody asks is for whoever asks next. */
static void stop_if_asked(talk *t) {
    cli_interrupt_clear();
    if (isatty(STDIN_FILENO) && !cli_asked_to_end()) return;
    t->status = CLI_INTERRUPTED;
    t->leave = true;
}

static void send(talk *t, const char *message, size_t size) {
    int status = cli_chat_turn(&t->chat, message, size);
    if (status == CLI_FAILED) t->status = CLI_FAILED;
    if (status == CLI_INTERRUPTED) stop_if_asked(t);
    if (!cli_output_flush()) t->leave = true;
}

static void start_anew(talk *t, const char *system) {
    plumb_error err = {0};
    cli_conversation *fresh = cli_conversation_create(system, &err);
    if (fresh == NULL) {
        fail(t, &err);
        return;
    }
    cli_conversation_destroy(t->chat.conversation);
    t->chat.conversation = fresh;
    t->chat.n_turns = 0;
}

static void run_reset(talk *t, const char *argument) {
    (void)argument;
    start_anew(t, options_of(t)->system);
}

static void run_system(talk *t, const char *argument) {
    start_anew(t, *argument != '\0' ? argument : NULL);
}

static void run_think(talk *t, const char *argument) {
    int64_t level;
    if (cli_parse_level(argument, &level))
        t->chat.think_level = (int)level;
    else
        cli_complain(options_of(t), "/think: found '%s', expected 0 to 100, low, high or max",
                     argument);
}

static void run_seed(talk *t, const char *argument) {
    if (!cli_parse_seed(argument, &t->chat.runtime.sampling.seed))
        cli_complain(options_of(t), "/seed: found '%s', expected a whole number", argument);
}

/* The lines up to /end or the end of input. */
static cli_line_status read_pasted(talk *t, plumb_error *err) {
    t->size = 0;
    for (;;) {
        const char *line;
        size_t size;
        cli_line_status status = cli_line_input_read(t->input, "", &line, &size, err);
        if (status == CLI_LINE_END) return CLI_LINE_READ;
        if (status != CLI_LINE_READ) return status;
        if (size == 4 && memcmp(line, "/end", 4) == 0) return CLI_LINE_READ;
        if (t->size > 0 && append(t, "\n", 1, err) != PLUMB_OK) return CLI_LINE_FAILED;
        if (append(t, line, size, err) != PLUMB_OK) return CLI_LINE_FAILED;
    }
}

static void run_paste(talk *t, const char *argument) {
    (void)argument;
    plumb_error err = {0};
    cli_line_status status = read_pasted(t, &err);
    if (status == CLI_LINE_FAILED) {
        fail(t, &err);
        t->leave = true;
    } else if (status == CLI_LINE_INTERRUPTED) {
        stop_if_asked(t);
    } else if (t->size > 0) {
        send(t, t->message, (size_t)t->size);
    }
}

static void run_stats(talk *t, const char *argument) {
    (void)argument;
    const plumb_session *session = t->chat.runtime.session;
    cli_complain(options_of(t), "%lld turns, %lld of %lld positions used",
                 (long long)t->chat.n_turns, (long long)plumb_session_length(session),
                 (long long)plumb_session_context(session));
    cli_sessions_tell(&t->chat);
    if (t->chat.n_turns == 0 || t->chat.last.n_prompt == 0) return;
    char line[160];
    cli_describe_speed(&t->chat.last, line, sizeof line);
    cli_complain(options_of(t), "last turn: %s", line);
}

static void run_save(talk *t, const char *argument) {
    if (*argument == '\0')
        cli_complain(options_of(t), "/save needs the name of a file");
    else if (cli_chat_save(&t->chat, argument) == CLI_OK)
        return;
    t->status = CLI_FAILED;
}

static void run_load(talk *t, const char *argument) {
    if (*argument == '\0')
        cli_complain(options_of(t), "/load needs the name of a file");
    else if (cli_chat_load(&t->chat, argument) == CLI_OK)
        return;
    t->status = CLI_FAILED;
}

static void run_help(talk *t, const char *argument) {
    (void)t;
    (void)argument;
    fprintf(stderr, "/help /paste /reset /system TEXT /think LEVEL /seed N /save FILE /load FILE "
                    "/stats /quit; `plumb chat --help` explains them\n");
}

static void run_quit(talk *t, const char *argument) {
    (void)argument;
    t->leave = true;
}

static const struct {
    const char *name;
    void (*run)(talk *t, const char *argument);
} commands[] = {{"help", run_help},     {"paste", run_paste}, {"reset", run_reset},
                {"system", run_system}, {"think", run_think}, {"seed", run_seed},
                {"save", run_save},     {"load", run_load},   {"stats", run_stats},
                {"quit", run_quit}};

/* `line` is what follows the slash. */
static void run_command(talk *t, char *line) {
    size_t size = strcspn(line, " ");
    char *argument = line + size + strspn(line + size, " ");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strlen(commands[i].name) == size && memcmp(commands[i].name, line, size) == 0) {
            commands[i].run(t, argument);
            return;
        }
    }
    t->status = CLI_FAILED;
    cli_complain(options_of(t), "unknown command /%.*s; /help lists them, // writes a slash",
                 (int)size, line);
}

/* ---- The two ways to talk ---- */

static int converse(talk *t) {
    t->input = cli_line_input_open(isatty(STDIN_FILENO));
    if (t->input == NULL) {
        cli_complain(options_of(t), "no line editor for this terminal");
        return CLI_FAILED;
    }
    bool asked_to_leave = false; /* Ctrl-C came at the prompt */
    while (!t->leave) {
        plumb_error err = {0};
        cli_line_status status = read_message(t, &err);
        if (status == CLI_LINE_FAILED) fail(t, &err);
        if (status == CLI_LINE_END || status == CLI_LINE_FAILED ||
            (status == CLI_LINE_INTERRUPTED && asked_to_leave))
            break;
        asked_to_leave = status == CLI_LINE_INTERRUPTED;
        if (asked_to_leave) {
            stop_if_asked(t);
            if (!t->leave) fprintf(stderr, "\n(Ctrl-C again or Ctrl-D leaves)\n");
        } else if (t->message[0] == '/' && t->message[1] != '/') {
            run_command(t, t->message + 1);
        } else if (t->size > 0) {
            size_t escaped = t->message[0] == '/';
            send(t, t->message + escaped, (size_t)t->size - escaped);
        }
    }
    if (isatty(STDIN_FILENO)) fputc('\n', stderr);
    return t->status;
}

static int answer_once(talk *t) {
    const cli_options *options = options_of(t);
    if (options->prompt != NULL)
        return cli_chat_turn(&t->chat, options->prompt, strlen(options->prompt));
    char *bytes = NULL;
    size_t size = 0;
    plumb_error err = {0};
    if (cli_read_file(options->prompt_file, &bytes, &size, &err) != PLUMB_OK)
        return cli_report(options, &err);
    int status = cli_chat_turn(&t->chat, bytes, size);
    free(bytes);
    return status;
}

int cli_run_chat(const cli_options *options) {
    talk t = {0};
    if (!cli_sessions_check(options)) return CLI_USAGE;
    int status = cli_runtime_open(options, true, &t.chat.runtime);
    if (status != CLI_OK) return status;
    status = cli_sessions_open(&t.chat);
    if (status != CLI_OK) return cli_runtime_close(&t.chat.runtime, status);
    t.chat.terminal = isatty(STDOUT_FILENO);
    t.chat.dim = t.chat.terminal && !options->no_color;
    t.chat.think_level = options->nothink ? 0 : (int)options->think_level;
    start_anew(&t, options->system);
    if (t.chat.conversation == NULL)
        status = CLI_FAILED;
    else if (options->prompt != NULL || options->prompt_file != NULL)
        status = answer_once(&t);
    else
        status = converse(&t);
    cli_line_input_close(t.input);
    cli_conversation_destroy(t.chat.conversation);
    free(t.message);
    cli_sessions_close(&t.chat);
    return cli_runtime_close(&t.chat.runtime, status);
}
