/* The command line.  One table of commands and one of options; parsing, `--help`, the man pages
 * and the shell completions are all made from them, so they cannot disagree.
 *
 * To add a command NAME:
 *   1. add CLI_NAME to cli_command_bit below;
 *   2. write cmd_NAME.c with `int cli_run_NAME(const cli_options *options)`, which returns an exit
 *      status (cli_exit); declare it in commands.h; list the file in CMakeLists.txt;
 *   3. add its row to cli_commands in command_table.c: name, one line, arguments, description;
 *   4. for a new option: a member of cli_options below and a row in options_table.c that names the
 *      commands which take it.  Two rows may share a name if no command takes both.
 * Arguments that are not options arrive in options->arguments, their count already checked against
 * the command's row.  Results go to stdout through output.h, everything else to stderr.
 */
#ifndef PLUMB_CLI_OPTIONS_H
#define PLUMB_CLI_OPTIONS_H

#include "cli/option_values.h"
#include "plumb.h"

typedef enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 } cli_exit;

/* One bit per command, so that an option's row can name all that take it. */
typedef enum cli_command_bit {
    CLI_CHAT = 1 << 0,
    CLI_COMPLETE = 1 << 1,
    CLI_LOGITS = 1 << 2,
    CLI_TOKENIZE = 1 << 3,
    CLI_INSPECT = 1 << 4,
    CLI_SYNTH = 1 << 5,
    CLI_COMPLETION = 1 << 6,
    CLI_HELP = 1 << 7,
    CLI_VERSION = 1 << 8,
    CLI_PLAN = 1 << 9,
    CLI_CONVERT = 1 << 10,
    CLI_PACK = 1 << 11,
    CLI_AUDIT = 1 << 12,
    CLI_BENCH = 1 << 13,
    CLI_COMPARE = 1 << 14,
    CLI_SERVE = 1 << 15
} cli_command_bit;

typedef struct cli_command cli_command;

enum { CLI_GIVEN_WORDS = 2 }; /* room for 64 rows each */

/* Everything a command may be told.  What was not given has the preset of its table row, or zero. */
typedef struct cli_options {
    const cli_command *command;
    const char **arguments; /* n_arguments of them */
    int n_arguments;
    char **words; /* n_words that followed the command, borrowed */
    int n_words;
    uint64_t given[CLI_GIVEN_WORDS]; /* bit i % 64 of word i / 64: row i of cli_option_rows was given */
    bool help;

    const char *model;
    int64_t context, threads, chunk; /* 0: the library's default */
    bool cpu, metal, quiet;
    bool streaming, layer_buffers, cold;
    cli_experts cache_experts;
    const char *trace_routes;

    const char *prompt, *prompt_file, *system, *history;
    int64_t n_tokens; /* 0: until the model ends or the context is full */
    int64_t think_level;
    bool nothink;
    const char *host, *api_key, *cors, *model_name;
    int64_t port, parallel, queue, keep_alive;
    const char *session_dir;
    int64_t session_dir_size, session_dir_daily;
    double temperature, top_p, min_p;
    int64_t top_k;
    uint64_t seed;
    plumb_logit_bias *bias; /* n_bias of them, owned */
    int32_t n_bias;
    int64_t logprobs;

    const char *tokens_file, *out;
    int64_t from, decode_from;

    const char *text_file;
    bool decode, added, count;

    bool json, list_tensors, no_history;

    int64_t memory, device_memory; /* bytes; 0: this machine's, none */
    double disk_rate, memory_rate, device_rate, link_rate; /* GB/s; 0: measured, or none */
    double compute;                /* TFLOPS; 0: not known */
    const char *trace;

    int64_t layers; /* 0: all */
    bool sparse, sparse_tables, force;
    const char *dense;
    int64_t jobs;   /* 0: four per core, at most 8 */

    const char *source;
    bool sample, record, verified;

    int64_t ctx_start, ctx_max, step_increment, gen_tokens, repeat;
    double step_multiplier;
    bool teacher_forced, show_output, decode_logits_hash;
    const char *csv, *frontier_logits_dir, *decode_logits_dump;
    int64_t snapshot_max_bytes; /* INT64_MAX: unlimited */
    const char *plot, *vs;
    int64_t vs_rounds;
    double vs_threshold; /* per cent */
    bool vs_bits_may_differ;

    int64_t vocab; /* 0: not given */
    double tolerance;

    bool man;

    /* The environment, read here and nowhere else. */
    bool no_color;
    const char *home, *hf_home, *cache_home, *state_home, *tmpdir; /* NULL when unset or empty */
} cli_options;

typedef enum cli_kind {
    CLI_FLAG,     /* bool */
    CLI_INTEGER,  /* int64_t within low..high */
    CLI_SEED,     /* uint64_t, the whole range */
    CLI_NUMBER,   /* double within least..most */
    CLI_TEXT,     /* const char *, borrowed from argv */
    CLI_PATH,     /* the same, not empty */
    CLI_WORD,     /* the same for what is no path */
    CLI_LEVEL,    /* int64_t 0..100 or one of low, high, max */
    CLI_BIAS,     /* ID=B, repeatable, collected in bias */
    CLI_BYTES,    /* int64_t: bytes, or NGB */
    CLI_LIMIT,    /* int64_t: 0, bytes, NGB, or unlimited (INT64_MAX) */
    CLI_EXPERTS   /* cli_experts: N, or NGB */
} cli_kind;

typedef struct cli_option {
    const char *name;   /* without the two dashes */
    const char *brief;  /* "-m", or NULL */
    const char *alias;  /* another long name with its dashes, or NULL */
    const char *environment; /* a variable that speaks where the line does not, or NULL */
    const char *value;  /* what --help calls the value; NULL for flags */
    cli_kind kind;
    size_t field;       /* offset in cli_options */
    int64_t low, high;  /* CLI_INTEGER */
    double least, most; /* CLI_NUMBER */
    const char *preset; /* parsed like a given value; NULL: zero */
    const char *excludes; /* long names, separated by spaces */
    unsigned commands;  /* cli_command_bit of each command that takes it */
    const char *help;   /* a phrase; the preset is appended to it */
} cli_option;

struct cli_command {
    cli_command_bit bit;
    const char *name;
    const char *summary;     /* one line without a full stop */
    const char *synopsis;    /* arguments as usage shows them, or "" */
    int least_arguments, most_arguments;
    const char *description; /* paragraphs separated by "\n\n"; lines starting with two spaces
                              * are shown as they are */
    int (*run)(const cli_options *options);
};

enum { CLI_ANY_NUMBER = 1 << 20 }; /* as most_arguments */

/* The tables (options_table.c, command_table.c). */
extern const cli_option cli_option_rows[];
extern const int cli_n_options;
extern const cli_command cli_commands[];
extern const int cli_n_commands;

const cli_command *cli_command_find(const char *name); /* NULL: unknown */
/* The command whose name is nearest to `name`, or NULL if none is near. */
const cli_command *cli_command_nearest(const char *name);

/* Parses what follows the command's name.  CLI_OK, or with a line in `message` CLI_USAGE or, out of
 * memory, CLI_FAILED.  The result holds pointers into argv; give it to cli_options_free in any
 * case. */
PLUMB_MUST_CHECK cli_exit cli_options_parse(const cli_command *command, int argc, char **argv,
                                            cli_options *options, char *message, size_t size);
void cli_options_free(cli_options *options);

/* True if the option with this long name was on the command line. */
bool cli_option_given(const cli_options *options, const char *name);

/* The words of a command line that was parsed, without those options, and their values, whose long
 * names stand in `names`, separated by spaces; NULL after the last.  `words` has room for n_words + 1. */
void cli_options_without(const cli_options *options, const char *names, const char **words);

#endif
