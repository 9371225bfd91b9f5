/* Parsing against the tables.  Rules: `--name value`, `--name=value` or `-x value`; an option may
 * stand before or after arguments; `--` ends the options; a lone `-` is an argument; giving an
 * option twice is a contradiction unless it collects (ID=B).  No abbreviations: a script that
 * uses one would break when an option is added. */
#include "cli/options.h"

#include "cli/names.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Options of other builds, recognised so that the answer is better than "unknown". */
static const char *const other_backends[] = {"--cuda"};

typedef struct parse {
    cli_options *options;
    char *message; /* one line, filled on failure */
    size_t size;
} parse;

static cli_exit refuse(parse *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static cli_exit refuse(parse *p, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(p->message, p->size, format, list);
    va_end(list);
    return CLI_USAGE;
}

/* Not the fault of the line that was given. */
static cli_exit fail_memory(parse *p) {
    (void)refuse(p, "no memory for the options");
    return CLI_FAILED;
}

/* ---- Numbers ---- */

bool cli_parse_integer(const char *text, int64_t low, int64_t high, int64_t *value) {
    const char *digits = text + (*text == '-');
    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0') return false;
    errno = 0;
    long long parsed = strtoll(text, NULL, 10);
    if (errno != 0 || parsed < low || parsed > high) return false;
    *value = parsed;
    return true;
}

bool cli_parse_number(const char *text, double least, double most, double *value) {
    /* The spelling is checked first: strtod also takes hexadecimal, "inf", "nan" and spaces. */
    if (*text == '\0' || text[strspn(text, "0123456789.eE+-")] != '\0') return false;
    char *end;
    double parsed = strtod(text, &end);
    if (*end != '\0' || !isfinite(parsed) || parsed < least || parsed > most) return false;
    *value = parsed;
    return true;
}

bool cli_parse_seed(const char *text, uint64_t *value) {
    if (*text == '\0' || text[strspn(text, "0123456789")] != '\0') return false;
    errno = 0;
    unsigned long long parsed = strtoull(text, NULL, 10);
    if (errno != 0) return false;
    *value = parsed;
    return true;
}

bool cli_parse_level(const char *text, int64_t *value) {
    static const struct {
        const char *word;
        int64_t level;
    } words[] = {{"low", 50}, {"high", 75}, {"max", 100}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i].word) == 0) {
            *value = words[i].level;
            return true;
        }
    }
    return cli_parse_integer(text, 0, 100, value);
}

/* N or N.NNN, then GB. */
static bool parse_gigabytes(const char *text, int64_t *bytes) {
    enum { DECIMALS = 9 };
    const char digit[] = "0123456789";
    size_t whole = strspn(text, digit), decimals = 0;
    const char *unit = text + whole;
    if (*unit == '.') {
        decimals = strspn(unit + 1, digit);
        if (decimals == 0 || decimals > DECIMALS) return false;
        unit += 1 + decimals;
    }
    if (whole == 0 || strcmp(unit, "GB") != 0) return false;
    int64_t value = 0;
    for (size_t i = 0; i < whole + DECIMALS; i++) {
        size_t place = i < whole ? i : i + 1; /* past the point */
        int64_t next = i < whole + decimals ? text[place] - '0' : 0;
        if (value > (INT64_MAX - next) / 10) return false;
        value = 10 * value + next;
    }
    if (value > 0) *bytes = value;
    return value > 0;
}

bool cli_parse_bytes(const char *text, int64_t *bytes) {
    return parse_gigabytes(text, bytes) || cli_parse_integer(text, 1, INT64_MAX, bytes);
}

bool cli_parse_limit(const char *text, int64_t *bytes) {
    if (strcasecmp(text, "unlimited") == 0 || strcasecmp(text, "inf") == 0) {
        *bytes = INT64_MAX;
        return true;
    }
    return parse_gigabytes(text, bytes) || cli_parse_integer(text, 0, INT64_MAX, bytes);
}

bool cli_parse_experts(const char *text, cli_experts *experts) {
    cli_experts parsed = {.given = true};
    if (!parse_gigabytes(text, &parsed.bytes) &&
        !cli_parse_integer(text, 1, INT64_MAX, &parsed.count))
        return false;
    *experts = parsed;
    return true;
}

/* ---- Values ---- */

static cli_exit add_bias(parse *p, const char *text) {
    cli_options *o = p->options;
    const char *equals = strchr(text, '=');
    char id_text[16] = "";
    if (equals != NULL && (size_t)(equals - text) < sizeof id_text)
        memcpy(id_text, text, (size_t)(equals - text));
    int64_t id;
    double bias;
    if (!cli_parse_integer(id_text, 0, INT32_MAX, &id) ||
        !cli_parse_number(equals + 1, -1e9, 1e9, &bias))
        return refuse(p, "--logit-bias: found '%s', expected ID=B, such as 42=-3.5", text);
    for (int32_t i = 0; i < o->n_bias; i++) {
        if (o->bias[i].token == id)
            return refuse(p, "--logit-bias: token %lld is given twice", (long long)id);
    }
    plumb_logit_bias *grown = realloc(o->bias, ((size_t)o->n_bias + 1) * sizeof *grown);
    if (grown == NULL) return fail_memory(p);
    o->bias = grown;
    o->bias[o->n_bias++] = (plumb_logit_bias){.token = (int32_t)id, .bias = (float)bias};
    return CLI_OK;
}

static cli_exit set_value(parse *p, const cli_option *row, const char *text) {
    void *field = (char *)p->options + row->field;
    switch (row->kind) {
    case CLI_FLAG: *(bool *)field = true; return CLI_OK;
    case CLI_TEXT: *(const char **)field = text; return CLI_OK;
    case CLI_PATH:
        if (*text == '\0') return refuse(p, "--%s: found '', expected a path", row->name);
        *(const char **)field = text;
        return CLI_OK;
    case CLI_WORD:
        if (*text == '\0') return refuse(p, "--%s: found '', expected %s", row->name, row->value);
        *(const char **)field = text;
        return CLI_OK;
    case CLI_BIAS: return add_bias(p, text);
    case CLI_INTEGER:
        if (cli_parse_integer(text, row->low, row->high, field)) return CLI_OK;
        return refuse(p, "--%s: found '%s', expected a whole number from %lld to %lld", row->name,
                      text, (long long)row->low, (long long)row->high);
    case CLI_SEED:
        if (cli_parse_seed(text, field)) return CLI_OK;
        return refuse(p, "--%s: found '%s', expected a whole number from 0 to %llu", row->name,
                      text, (unsigned long long)UINT64_MAX);
    case CLI_NUMBER:
        if (cli_parse_number(text, row->least, row->most, field)) return CLI_OK;
        return refuse(p, "--%s: found '%s', expected a number from %g to %g", row->name, text,
                      row->least, row->most);
    case CLI_LEVEL:
        if (cli_parse_level(text, field)) return CLI_OK;
        return refuse(p, "--%s: found '%s', expected 0 to 100, low, high or max", row->name, text);
    case CLI_BYTES:
        if (cli_parse_bytes(text, field)) return CLI_OK;
        return refuse(p, "--%s: found '%s', expected bytes or NGB, such as 12.5GB", row->name, text);
    case CLI_LIMIT:
        if (cli_parse_limit(text, field)) return CLI_OK;
        return refuse(p, "--%s: found '%s', expected bytes, NGB or unlimited", row->name, text);
    case CLI_EXPERTS:
        if (cli_parse_experts(text, field)) return CLI_OK;
        return refuse(p, "--%s: found '%s', expected a number of experts or NGB, such as 12.5GB",
                      row->name, text);
    }
    return refuse(p, "--%s: cannot be set", row->name);
}

/* ---- Names ---- */

const cli_command *cli_command_find(const char *name) {
    for (int i = 0; i < cli_n_commands; i++)
        if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
    return NULL;
}

const cli_command *cli_command_nearest(const char *name) {
    const cli_command *nearest = NULL;
    int distance = CLI_NAME_LIMIT;
    for (int i = 0; i < cli_n_commands; i++) {
        int d = cli_name_distance(name, cli_commands[i].name);
        if (d < distance) {
            distance = d;
            nearest = &cli_commands[i];
        }
    }
    return cli_name_is_near(name, distance) ? nearest : NULL;
}

static bool row_matches(const cli_option *row, const char *spelling) {
    if (row->brief != NULL && strcmp(row->brief, spelling) == 0) return true;
    if (row->alias != NULL && strcmp(row->alias, spelling) == 0) return true;
    return strncmp(spelling, "--", 2) == 0 && strcmp(row->name, spelling + 2) == 0;
}

/* Row that `command` (0: any command) knows by `spelling`, or -1. */
static int find_row(unsigned command, const char *spelling) {
    for (int i = 0; i < cli_n_options; i++) {
        const cli_option *row = &cli_option_rows[i];
        if ((command == 0 || (row->commands & command) != 0) && row_matches(row, spelling))
            return i;
    }
    return -1;
}

static cli_exit refuse_unknown(parse *p, const char *spelling) {
    unsigned command = (unsigned)p->options->command->bit;
    for (size_t i = 0; i < sizeof other_backends / sizeof other_backends[0]; i++) {
        if (strcmp(spelling, other_backends[i]) == 0)
            return refuse(p, "%s is not supported in this build", spelling);
    }
    if (find_row(0, spelling) >= 0)
        return refuse(p, "%s is not an option of this command", spelling);
    const char *nearest = NULL, *typed = spelling + strspn(spelling, "-");
    int distance = CLI_NAME_LIMIT;
    for (int i = 0; i < cli_n_options; i++) {
        if ((cli_option_rows[i].commands & command) == 0) continue;
        int d = cli_name_distance(typed, cli_option_rows[i].name);
        if (d < distance) {
            distance = d;
            nearest = cli_option_rows[i].name;
        }
    }
    if (nearest != NULL && cli_name_is_near(typed, distance))
        return refuse(p, "unknown option %s; did you mean --%s?", spelling, nearest);
    return refuse(p, "unknown option %s", spelling);
}

/* ---- The whole line ---- */

static bool is_given(const cli_options *options, int row) {
    return (options->given[row / 64] >> row % 64 & 1) != 0;
}

enum { SPELLING_SIZE = 64 }; /* longer than any in the tables */

/* The row of an option's word, or -1; *equals: where its value begins, or NULL. */
static int row_of_word(const cli_command *command, const char *word, char spelling[SPELLING_SIZE],
                       const char **equals) {
    *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    size_t size = *equals != NULL ? (size_t)(*equals - word) : strlen(word);
    snprintf(spelling, SPELLING_SIZE, "%.*s",
             (int)(size < SPELLING_SIZE ? size : SPELLING_SIZE - 1), word);
    return size < SPELLING_SIZE ? find_row((unsigned)command->bit, spelling) : -1;
}

/* Takes the option at argv[*at], and its value, and moves *at to the last word used. */
static cli_exit take_option(parse *p, int argc, char **argv, int *at) {
    char spelling[SPELLING_SIZE];
    const char *equals;
    int index = row_of_word(p->options->command, argv[*at], spelling, &equals);
    if (index < 0) return refuse_unknown(p, spelling);

    const cli_option *row = &cli_option_rows[index];
    if (is_given(p->options, index) && row->kind != CLI_BIAS)
        return refuse(p, "--%s is given twice", row->name);
    p->options->given[index / 64] |= UINT64_C(1) << index % 64;

    if (row->kind == CLI_FLAG) {
        if (equals != NULL) return refuse(p, "--%s takes no value", row->name);
        return set_value(p, row, NULL);
    }
    if (equals != NULL) return set_value(p, row, equals + 1);
    if (*at + 1 >= argc) return refuse(p, "--%s needs a value: %s", row->name, row->value);
    return set_value(p, row, argv[++*at]);
}

/* True if the space-separated list holds the name. */
static bool list_has(const char *list, const char *name) {
    size_t size = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += size) {
        bool starts = at == list || at[-1] == ' ';
        if (starts && (at[size] == ' ' || at[size] == '\0')) return true;
    }
    return false;
}

static cli_exit check_exclusions(parse *p) {
    for (int i = 0; i < cli_n_options; i++) {
        const char *excludes = cli_option_rows[i].excludes;
        if (!is_given(p->options, i) || excludes == NULL) continue;
        for (int j = 0; j < cli_n_options; j++) {
            if (is_given(p->options, j) && list_has(excludes, cli_option_rows[j].name))
                return refuse(p, "--%s and --%s exclude each other", cli_option_rows[i].name,
                              cli_option_rows[j].name);
        }
    }
    return CLI_OK;
}

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static cli_exit set_presets(parse *p) {
    unsigned command = (unsigned)p->options->command->bit;
    for (int i = 0; i < cli_n_options; i++) {
        const cli_option *row = &cli_option_rows[i];
        if ((row->commands & command) == 0 || row->preset == NULL) continue;
        cli_exit status = set_value(p, row, row->preset);
        if (status != CLI_OK) return status;
    }
    return CLI_OK;
}

/* Options that the line did not give, from the variables that their rows name.  A flag's "0" is no. */
static cli_exit take_environment(parse *p) {
    unsigned command = (unsigned)p->options->command->bit;
    for (int i = 0; i < cli_n_options; i++) {
        const cli_option *row = &cli_option_rows[i];
        if ((row->commands & command) == 0 || row->environment == NULL || is_given(p->options, i))
            continue;
        const char *value = environment(row->environment);
        if (value == NULL || (row->kind == CLI_FLAG && strcmp(value, "0") == 0)) continue;
        cli_exit status = set_value(p, row, value);
        if (status != CLI_OK) {
            char reason[192];
            snprintf(reason, sizeof reason, "%s", p->message);
            (void)refuse(p, "%s: %s", row->environment, reason);
            return status;
        }
    }
    return CLI_OK;
}

cli_exit cli_options_parse(const cli_command *command, int argc, char **argv, cli_options *options,
                           char *message, size_t size) {
    *options = (cli_options){.command = command,
                             .no_color = environment("NO_COLOR") != NULL,
                             .home = environment("HOME"),
                             .hf_home = environment("HF_HOME"),
                             .cache_home = environment("XDG_CACHE_HOME"),
                             .state_home = environment("XDG_STATE_HOME"),
                             .tmpdir = environment("TMPDIR"),
                             .words = argv,
                             .n_words = argc};
    parse p = {.options = options, .message = message, .size = size};
    options->arguments = calloc((size_t)argc + 1, sizeof *options->arguments);
    if (options->arguments == NULL) return fail_memory(&p);
    cli_exit status = set_presets(&p);
    bool ended = false;
    for (int at = 0; at < argc && status == CLI_OK; at++) {
        const char *word = argv[at];
        if (ended || word[0] != '-' || word[1] == '\0')
            options->arguments[options->n_arguments++] = word;
        else if (strcmp(word, "--") == 0)
            ended = true;
        else
            status = take_option(&p, argc, argv, &at);
    }
    if (status != CLI_OK || options->help) return status;
    if (options->n_arguments > command->most_arguments)
        return refuse(&p, "unexpected argument '%s'", options->arguments[command->most_arguments]);
    if (options->n_arguments < command->least_arguments)
        return refuse(&p, "expected: plumb %s %s", command->name, command->synopsis);
    status = check_exclusions(&p);
    return status == CLI_OK ? take_environment(&p) : status;
}

void cli_options_free(cli_options *options) {
    free(options->arguments);
    free(options->bias);
    *options = (cli_options){0};
}

bool cli_option_given(const cli_options *options, const char *name) {
    for (int i = 0; i < cli_n_options; i++)
        if (is_given(options, i) && strcmp(cli_option_rows[i].name, name) == 0)
            return true;
    return false;
}

void cli_options_without(const cli_options *options, const char *names, const char **words) {
    int kept = 0;
    for (int at = 0; at < options->n_words; at++) {
        char *const *word = &options->words[at];
        const char *equals;
        char spelling[SPELLING_SIZE];
        bool named = (*word)[0] == '-' && (*word)[1] != '\0';
        int index = named ? row_of_word(options->command, *word, spelling, &equals) : -1;
        bool has_next = index >= 0 && cli_option_rows[index].kind != CLI_FLAG && equals == NULL;
        if (index < 0 || !list_has(names, cli_option_rows[index].name)) {
            words[kept++] = *word;
            if (has_next && at + 1 < options->n_words) words[kept++] = word[1];
        }
        at += has_next;
    }
    words[kept] = NULL;
}
