/* plumb chat: one answer with -p, otherwise a conversation line by line.
 *
 * The same reader serves people and pipes.  Lines that start with a slash are commands
 * (chat_commands.c); everything else is a message. */
#include "cli/commands.h"

#include "cli/chat_commands.h"
#include "cli/chat_complete.h"
#include "cli/chat_history.h"
#include "cli/chat_sessions.h"
#include "cli/chat_talk.h"
#include "cli/files.h"
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- History ---- */

static void take_entry(void *user, const char *entry) {
    cli_line_input_remember(user, entry);
}

/* The file of the history with its entries given to the editor; NULL: none is kept.  A fault of it is told
 * and nothing else. */
static char *open_history(const cli_options *options, cli_line_input *input) {
    plumb_error err = {0};
    char *path = cli_history_path(options);
    if (path == NULL || cli_history_read(path, take_entry, input, &err) == PLUMB_OK) return path;
    (void)cli_report(options, &err);
    free(path);
    return NULL;
}

/* *path becomes NULL where nothing can be kept: it is told once. */
static void remember(const cli_talk *t, char **path) {
    plumb_error err = {0};
    cli_line_input_remember(t->message.input, t->message.bytes);
    if (*path == NULL || cli_history_add(*path, t->message.bytes, &err) == PLUMB_OK) return;
    (void)cli_report(cli_talk_options(t), &err);
    free(*path);
    *path = NULL;
}

/* ---- The two ways to talk ---- */

static void obey(cli_talk *t) {
    const cli_message *m = &t->message;
    bool slash = m->size > 0 && m->text[0] == '/' && !m->quoted;
    bool escaped = slash && m->size > 1 && m->text[1] == '/';
    if (slash && !escaped)
        cli_chat_command(t, m->text + 1);
    else if (m->size > 0)
        (void)cli_talk_send(t, m->text + escaped, (size_t)(m->size - escaped));
}

static void converse(cli_talk *t, char **history) {
    bool asked_to_leave = false; /* Ctrl-C was the latest that came at the prompt */
    while (!t->leave) {
        plumb_error err = {0};
        cli_line_status status = cli_message_read(&t->message, &err);
        if (status == CLI_LINE_FAILED) cli_talk_fail(t, &err);
        if (status == CLI_LINE_END || status == CLI_LINE_FAILED ||
            (status == CLI_LINE_INTERRUPTED && asked_to_leave))
            break;
        asked_to_leave = status != CLI_LINE_READ;
        if (status == CLI_LINE_READ) {
            remember(t, history);
            obey(t);
            continue;
        }
        cli_talk_interrupted(t);
        if (!t->leave) fprintf(stderr, "\n(Ctrl-C again or Ctrl-D leaves)\n");
    }
}

static int talk_with(cli_talk *t) {
    const cli_options *options = cli_talk_options(t);
    bool terminal = isatty(STDIN_FILENO);
    const cli_line_options line_options = {.terminal = terminal,
                                           .color = !options->no_color,
                                           .complete = cli_chat_complete,
                                           .user = (void *)(size_t)options->home};
    cli_line_input *input = cli_line_input_open(&line_options);
    if (input == NULL) {
        cli_complain(options, "no line editor for this terminal");
        return CLI_FAILED;
    }
    t->message.input = input;
    char *history = terminal ? open_history(options, input) : NULL;
    if (terminal && !options->quiet) cli_complain(options, "/help lists the commands, Ctrl-D leaves");
    converse(t, &history);
    if (terminal) fputc('\n', stderr);
    free(history);
    cli_line_input_close(input);
    cli_message_free(&t->message);
    return t->status;
}

static int answer_once(cli_talk *t) {
    const cli_options *options = cli_talk_options(t);
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
    cli_talk t = {0};
    if (!cli_sessions_check(options)) return CLI_USAGE;
    int status = cli_runtime_open(options, true, &t.chat.runtime);
    if (status != CLI_OK) return status;
    status = cli_sessions_open(&t.chat);
    if (status != CLI_OK) return cli_runtime_close(&t.chat.runtime, status);
    t.chat.terminal = isatty(STDOUT_FILENO);
    t.chat.dim = t.chat.terminal && !options->no_color;
    t.chat.think_level = options->nothink ? 0 : (int)options->think_level;
    cli_talk_start_anew(&t, options->system);
    if (t.chat.conversation == NULL)
        status = CLI_FAILED;
    else if (options->prompt != NULL || options->prompt_file != NULL)
        status = answer_once(&t);
    else
        status = talk_with(&t);
    cli_conversation_destroy(t.chat.conversation);
    cli_sessions_close(&t.chat);
    return cli_runtime_close(&t.chat.runtime, status);
}
