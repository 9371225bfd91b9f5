/* `--help` from the tables: wrapped at 80 columns, options in one aligned column. */
#include "cli/help.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 80, OPTION_COLUMN = 26, COMMAND_COLUMN = 14 };

/* Prints words, filling lines that start at `indent`; the cursor is at column `at`. */
static void wrap(const char *text, size_t length, int indent, int at) {
    const char *end = text + length;
    bool first = true;
    while (text < end) {
        size_t word = strcspn(text, " ");
        if (text + word > end) word = (size_t)(end - text);
        if (!first && at + 1 + (int)word > WIDTH) {
            cli_print("\n%*s", indent, "");
            at = indent;
            first = true;
        }
        cli_print("%s%.*s", first ? "" : " ", (int)word, text);
        at += (int)word + !first;
        first = false;
        text += word;
        while (text < end && *text == ' ') text++;
    }
    cli_print("\n");
}

/* Paragraphs are filled; lines that start with two spaces stand as they are. */
static void print_description(const char *text) {
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (length == 0)
            cli_print("\n");
        else if (text[0] == ' ')
            cli_print("%.*s\n", (int)length, text);
        else
            wrap(text, length, 0, 0);
        text += length;
        if (*text == '\n') text++;
    }
}

static void print_option(const cli_option *row) {
    char left[80];
    snprintf(left, sizeof left, "  %s%s--%s%s%s", row->brief != NULL ? row->brief : "",
             row->brief != NULL ? ", " : "", row->name, row->value != NULL ? " " : "",
             row->value != NULL ? row->value : "");
    char help[320];
    snprintf(help, sizeof help, "%s%s%s%s%s%s", row->help, row->preset != NULL ? " (default " : "",
             row->preset != NULL ? row->preset : "", row->preset != NULL ? ")" : "",
             row->environment != NULL ? "; also " : "",
             row->environment != NULL ? row->environment : "");
    cli_print("%-*s", OPTION_COLUMN, left);
    if (strlen(left) >= OPTION_COLUMN) cli_print("\n%*s", OPTION_COLUMN, "");
    wrap(help, strlen(help), OPTION_COLUMN, OPTION_COLUMN);
}

void cli_help_overview(void) {
    cli_print("plumb " PLUMB_VERSION ": run DeepSeek-V4.1-Flash checkpoints as released\n\n"
              "usage: plumb COMMAND [options]\n\n");
    for (int i = 0; i < cli_n_commands; i++)
        cli_print("  %-*s%s\n", COMMAND_COLUMN, cli_commands[i].name, cli_commands[i].summary);
    cli_print("\n`plumb COMMAND --help` shows the options of a command.\n"
              "Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n");
}

void cli_help_command(const cli_command *command) {
    cli_print("plumb %s: %s\n\nusage: plumb %s [options]%s%s\n\n", command->name, command->summary,
              command->name, *command->synopsis != '\0' ? " " : "", command->synopsis);
    if (*command->description != '\0') {
        print_description(command->description);
        cli_print("\n");
    }
    for (int i = 0; i < cli_n_options; i++)
        if ((cli_option_rows[i].commands & (unsigned)command->bit) != 0)
            print_option(&cli_option_rows[i]);
}
