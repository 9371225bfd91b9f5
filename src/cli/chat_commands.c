/* Commands; see chat_commands.h. */
#include "cli/chat_commands.h"

#include "cli/chat_sessions.h"
#include "cli/chat_talk.h"
#include "cli/files.h"
#include "cli/names.h"
#include "cli/output.h"
#include "cli/shown_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The conversation ---- */

static void run_reset(cli_talk *t, const char *argument) {
    (void)argument;
    cli_talk_start_anew(t, cli_talk_options(t)->system);
}

static void run_system(cli_talk *t, const char *argument) {
    cli_talk_start_anew(t, *argument != '\0' ? argument : NULL);
}

static void run_paste(cli_talk *t, const char *argument) {
    (void)argument;
    plumb_error err = {0};
    cli_line_status status = cli_message_read_pasted(&t->message, &err);
    if (status == CLI_LINE_FAILED) {
        cli_talk_fail(t, &err);
        t->leave = true;
    } else if (status != CLI_LINE_READ) {
        cli_talk_interrupted(t);
    } else if (t->message.size > 0) {
        (void)cli_talk_send(t, t->message.text, (size_t)t->message.size);
    }
}

/* Whether there is a turn to take back; says so if not. */
static bool has_turn(cli_talk *t, const char *command) {
    if (t->chat.n_turns > 0) return true;
    cli_complain(cli_talk_options(t), "/%s: nothing was said yet", command);
    t->status = CLI_FAILED;
    return false;
}

static void run_regen(cli_talk *t, const char *argument) {
    (void)argument;
    if (!has_turn(t, "regen")) return;
    t->chat.runtime.sampling.seed++;
    if (!cli_talk_options(t)->quiet)
        cli_complain(cli_talk_options(t), "seed %llu", (unsigned long long)t->chat.runtime.sampling.seed);
    cli_talk_send_again(t);
}

static void run_undo(cli_talk *t, const char *argument) {
    (void)argument;
    if (!has_turn(t, "undo")) return;
    cli_talk_take_back(t);
    cli_complain(cli_talk_options(t), "took back the last turn; %s left",
                 t->chat.n_turns > 0 ? cli_count(t->chat.n_turns, "turn is", "turns are").text : "none is");
}

/* To standard output: it is what was asked for. */
static void run_show(cli_talk *t, const char *argument) {
    (void)argument;
    const cli_chat *chat = &t->chat;
    const char *bold = chat->dim ? "\033[1m" : "", *plain = chat->dim ? "\033[0m" : "";
    for (size_t i = 0; i < cli_conversation_count(chat->conversation); i++) {
        cli_chat_message message = cli_conversation_message(chat->conversation, i);
        cli_print("%s%s%s:%s\n", i > 0 ? "\n" : "", bold, message.role, plain);
        cli_show(chat->terminal, message.content, message.size);
        cli_print("\n");
    }
    if (!cli_output_flush()) t->leave = true;
}

/* ---- How it is answered ---- */

static void run_think(cli_talk *t, const char *argument) {
    int64_t level;
    if (cli_parse_level(argument, &level))
        t->chat.think_level = (int)level;
    else
        cli_complain(cli_talk_options(t), "/think: found '%s', expected 0 to 100, low, high or max",
                     argument);
}

static void run_seed(cli_talk *t, const char *argument) {
    if (!cli_parse_seed(argument, &t->chat.runtime.sampling.seed))
        cli_complain(cli_talk_options(t), "/seed: found '%s', expected a whole number", argument);
}

static void run_stats(cli_talk *t, const char *argument) {
    (void)argument;
    const plumb_session *session = t->chat.runtime.session;
    cli_complain(cli_talk_options(t), "%s, %lld of %lld positions used",
                 cli_count(t->chat.n_turns, "turn", "turns").text,
                 (long long)plumb_session_length(session), (long long)plumb_session_context(session));
    cli_sessions_tell(&t->chat);
    if (t->chat.n_turns == 0 || t->chat.last.n_prompt == 0) return;
    char line[160];
    cli_describe_speed(&t->chat.last, line, sizeof line);
    cli_complain(cli_talk_options(t), "last turn: %s", line);
}

/* ---- Files ---- */

static void with_file(cli_talk *t, const char *command, const char *argument,
                      int (*run)(cli_chat *chat, const char *path)) {
    const cli_options *options = cli_talk_options(t);
    if (*argument == '\0') {
        cli_complain(options, "/%s needs the name of a file", command);
        t->status = CLI_FAILED;
        return;
    }
    char *path = cli_expand_home(argument, options->home);
    if (path == NULL) cli_complain(options, "/%s: no memory", command);
    if (path == NULL || run(&t->chat, path) != CLI_OK) t->status = CLI_FAILED;
    free(path);
}

static void run_save(cli_talk *t, const char *argument) {
    with_file(t, "save", argument, cli_chat_save);
}

static void run_load(cli_talk *t, const char *argument) {
    with_file(t, "load", argument, cli_chat_load);
}

/* ---- The rest ---- */

static void run_quit(cli_talk *t, const char *argument) {
    (void)argument;
    t->leave = true;
}

static void run_help(cli_talk *t, const char *argument);

#define COMMAND_ROW(name, text) {#name, text, run_##name},

static const struct {
    const char *name, *help;
    void (*run)(cli_talk *t, const char *argument);
} commands[] = {CLI_CHAT_COMMANDS(COMMAND_ROW)};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void run_help(cli_talk *t, const char *argument) {
    (void)t;
    (void)argument;
    for (int i = 0; i < N_COMMANDS; i++) fprintf(stderr, "%s\n", commands[i].help);
}

static void complain_of_unknown(cli_talk *t, const char *name) {
    int nearest = 0, distance = CLI_NAME_LIMIT;
    for (int i = 0; i < N_COMMANDS; i++) {
        int d = cli_name_distance(name, commands[i].name);
        if (d >= distance) continue;
        distance = d;
        nearest = i;
    }
    t->status = CLI_FAILED;
    if (cli_name_is_near(name, distance))
        cli_complain(cli_talk_options(t), "unknown command /%s; did you mean /%s?", name, commands[nearest].name);
    else
        cli_complain(cli_talk_options(t), "unknown command /%s; /help lists them, // writes a slash", name);
}

void cli_chat_command(cli_talk *t, const char *line) {
    char name[128];
    size_t size = strcspn(line, " ");
    const char *argument = line + size + strspn(line + size, " ");
    snprintf(name, sizeof name, "%.*s", (int)(size < sizeof name ? size : sizeof name - 1), line);
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            commands[i].run(t, argument);
            return;
        }
    }
    complain_of_unknown(t, name);
}
