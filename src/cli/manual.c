/* Manual pages (man(7) source) and shell completions from the tables. */
#include "cli/help.h"
#include "cli/output.h"

#include <string.h>

/* Text in roff: a backslash, and a dot or quote at the start of a line, would be commands. */
static void print_roff(const char *text, size_t length) {
    if (length > 0 && (text[0] == '.' || text[0] == '\'')) cli_print("\\&");
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\\')
            cli_print("\\e");
        else if (text[i] == '-')
            cli_print("\\-");
        else
            cli_write(&text[i], 1);
    }
}

static void print_roff_string(const char *text) {
    print_roff(text, strlen(text));
}

static void print_title(const char *name, const char *summary) {
    cli_print(".TH ");
    print_roff_string(name);
    cli_print(" 1 \"\" \"plumb " PLUMB_VERSION "\"\n.SH NAME\n");
    print_roff_string(name);
    cli_print(" \\- ");
    print_roff_string(summary);
    cli_print("\n.SH SYNOPSIS\n.B plumb\n");
}

static void print_exit_status(void) {
    cli_print(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 130 interrupted.\n");
}

/* `commands`: bits of those whose variables are listed beside everybody's. */
static void print_environment(unsigned commands) {
    cli_print(".SH ENVIRONMENT\n");
    for (int i = 0; i < cli_n_options; i++) {
        const cli_option *row = &cli_option_rows[i];
        if ((row->commands & commands) == 0 || row->environment == NULL) continue;
        cli_print(".TP\n.B %s\nas \\fB\\-\\-", row->environment);
        print_roff_string(row->name);
        cli_print("\\fR, which goes before it%s\n",
                  row->kind == CLI_FLAG ? "; 0 leaves it off" : "");
    }
    cli_print(".TP\n.B HF_HOME\nwhere the Hugging Face cache is (default ~/.cache/huggingface)\n"
              ".TP\n.B XDG_CACHE_HOME\nwhere plumb/ keeps, for each streamed model, the experts that were used most "
              "(default ~/.cache)\n"
              ".TP\n.B XDG_STATE_HOME\nwhere plumb/chat_history keeps what was typed in plumb chat (default "
              "~/.local/state)\n"
              ".TP\n.B TMPDIR\nwhere plumb bench --vs keeps what its runs write (default /tmp)\n"
              ".TP\n.B NO_COLOR\nif set, nothing is dimmed or coloured\n"
              ".TP\n.B PLUMB_CPU\nportable, avx2, avx512, avx512_bf16 or neon: the kernels to use; "
              "never changes a result\n");
}

void cli_man_overview(void) {
    print_title("plumb", "run DeepSeek-V4.1-Flash checkpoints as released");
    cli_print(".I COMMAND\n[options]\n.SH COMMANDS\n");
    for (int i = 0; i < cli_n_commands; i++) {
        cli_print(".TP\n.B %s\n", cli_commands[i].name);
        print_roff_string(cli_commands[i].summary);
        cli_print("\n");
    }
    print_environment(~0U);
    print_exit_status();
}

static void print_description(const char *text) {
    bool literal = false;
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        bool wanted = text[0] == ' ' || (length == 0 && literal && text[1] == ' ');
        if (wanted != literal)
            cli_print(wanted ? ".nf\n" : ".fi\n");
        else if (length == 0)
            cli_print(".PP");
        literal = wanted;
        print_roff(text, length);
        cli_print("\n");
        text += length;
        if (*text == '\n') text++;
    }
    if (literal) cli_print(".fi\n");
}

static void print_option(const cli_option *row) {
    cli_print(".TP\n\\fB");
    if (row->brief != NULL) {
        print_roff_string(row->brief);
        cli_print("\\fR, \\fB");
    }
    cli_print("\\-\\-");
    print_roff_string(row->name);
    cli_print("\\fR");
    if (row->value != NULL) cli_print(" \\fI%s\\fR", row->value);
    cli_print("\n");
    print_roff_string(row->help);
    if (row->preset != NULL) cli_print(" (default %s)", row->preset);
    cli_print("\n");
}

void cli_man_command(const cli_command *command) {
    char name[64] = "plumb-";
    strncat(name, command->name, sizeof name - 7);
    print_title(name, command->summary);
    cli_print("%s\n[options]\n", command->name);
    print_roff_string(command->synopsis);
    cli_print("\n.SH DESCRIPTION\n");
    print_description(command->description);
    cli_print(".SH OPTIONS\n");
    for (int i = 0; i < cli_n_options; i++)
        if ((cli_option_rows[i].commands & (unsigned)command->bit) != 0)
            print_option(&cli_option_rows[i]);
    print_environment((unsigned)command->bit);
    print_exit_status();
    cli_print(".SH SEE ALSO\n.BR plumb (1)\n");
}

void cli_completion(bool zsh) {
    if (zsh) cli_print("autoload -U +X bashcompinit && bashcompinit\n");
    cli_print("_plumb() {\n"
              "    local word=${COMP_WORDS[COMP_CWORD]} words\n"
              "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='");
    for (int i = 0; i < cli_n_commands; i++)
        cli_print("%s%s", i > 0 ? " " : "", cli_commands[i].name);
    cli_print("'\n    else\n        case ${COMP_WORDS[1]} in\n");
    for (int i = 0; i < cli_n_commands; i++) {
        cli_print("        %s) words='", cli_commands[i].name);
        for (int j = 0; j < cli_n_options; j++)
            if ((cli_option_rows[j].commands & (unsigned)cli_commands[i].bit) != 0)
                cli_print("--%s ", cli_option_rows[j].name);
        cli_print("' ;;\n");
    }
    cli_print("        esac\n    fi\n"
              "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
              "}\ncomplete -o default -F _plumb plumb\n");
}
