/* plumb bench: speed over the length of the context.  A walk goes through frontiers (bench_walk.h);
 * at each one prefill and generation are timed (bench_measure.h) and give one row (bench_csv.h). */
#include "cli/commands.h"

#include "base/error.h"
#include "cli/bench_measure.h"
#include "cli/bench_show.h"
#include "cli/bench_tokens.h"
#include "cli/bench_vs.h"
#include "cli/bench_walk.h"
#include "cli/output.h"

#include <string.h>
#include <unistd.h>

typedef struct run {
    cli_runtime runtime;
    plumb_tokens tokens;
    cli_walk walk;
    cli_walk_room room;
    cli_bench bench;
    cli_bench_csv csv;
} run;

/* ---- Before anything is measured ---- */

static bool check_vs(const cli_options *options) {
    static const char *const for_vs[] = {"vs-rounds", "vs-threshold", "vs-bits-may-differ"};
    for (size_t i = 0; options->vs == NULL && i < sizeof for_vs / sizeof for_vs[0]; i++) {
        if (!cli_option_given(options, for_vs[i])) continue;
        cli_complain(options, "--%s is for --vs", for_vs[i]);
        return false;
    }
    if (options->vs == NULL) return true;
    if (options->vs[strspn(options->vs, " \t\n")] == '\0') {
        cli_complain(options, "--vs: found '%s', expected a command line", options->vs);
        return false;
    }
    const char *inputs[] = {options->prompt_file, options->tokens_file};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (inputs[i] == NULL || strcmp(inputs[i], "-") != 0) continue;
        cli_complain(options, "--vs reads the prompt in every run: expected a file, found -");
        return false;
    }
    return true;
}

static plumb_status check_files(const cli_options *options, plumb_error *err) {
    const char *csv = options->csv, *dump = options->decode_logits_dump;
    const char *outputs[] = {csv, dump};
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < 2 && status == PLUMB_OK; i++) {
        if (outputs[i] == NULL) continue;
        status = cli_new_file_check(outputs[i], err);
        if (status == PLUMB_OK)
            status = cli_new_file_check_input(outputs[i], options->prompt_file, err);
        if (status == PLUMB_OK)
            status = cli_new_file_check_input(outputs[i], options->tokens_file, err);
    }
    if (status == PLUMB_OK && csv != NULL && dump != NULL && strcmp(csv, dump) == 0)
        status = plumb__fail(err, PLUMB_ERROR_ARGUMENT, csv, NULL, -1, "two files of that name",
                             "a name for each");
    return status;
}

/* What cannot be meant, told before the model is opened. */
static int check(const cli_options *options) {
    if (options->n_arguments > 0) {
        cli_complain(options, "unexpected argument '%s'; CSV files are for --plot",
                     options->arguments[0]);
        return CLI_USAGE;
    }
    if (!check_vs(options)) return CLI_USAGE;
    if (options->ctx_start > options->ctx_max) {
        cli_complain(options, "--ctx-start %lld is above --ctx-max %lld",
                     (long long)options->ctx_start, (long long)options->ctx_max);
        return CLI_USAGE;
    }
    plumb_error err = {0};
    return check_files(options, &err) == PLUMB_OK ? CLI_OK : cli_report(options, &err);
}

/* Positions of the session.  A command line that was written for a larger model runs as far as this
 * one goes. */
static int64_t choose_context(const cli_options *options, const plumb_model_info *info) {
    int64_t most = info->max_positions, context = options->context;
    if (context > most)
        cli_complain(options, "warning: a context of %lld is cut to the model's %lld positions",
                     (long long)context, (long long)most);
    if (context == 0) context = options->ctx_max + options->gen_tokens + 1;
    return context < most ? context : most;
}

/* `file` may be NULL. */
static plumb_status refuse_start(const cli_options *options, const char *file, const char *what,
                                 int64_t found, const char *beside, plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_CONTEXT, file, what, -1,
                       plumb__format("%lld", (long long)found).s, "at least --ctx-start %lld%s",
                       (long long)options->ctx_start, beside);
}

/* NULL: made-up tokens. */
static const char *name_of_tokens(const cli_options *options) {
    const char *path = options->prompt_file != NULL ? options->prompt_file : options->tokens_file;
    return path != NULL ? cli_input_name(path) : NULL;
}

/* Cuts the walk to what there is, and says so. */
static plumb_status plan_walk(run *r, plumb_error *err) {
    const cli_options *options = r->runtime.options;
    r->walk = (cli_walk){.start = options->ctx_start,
                         .most = options->ctx_max,
                         .increment = options->step_increment,
                         .multiplier = options->step_multiplier};
    r->room = (cli_walk_room){.tokens = r->tokens.count,
                              .context = plumb_session_context(r->runtime.session),
                              .gen_tokens = options->gen_tokens,
                              .from_sequence = options->teacher_forced};
    int64_t end = cli_walk_tokens_end(&r->room);
    if (end < options->ctx_start)
        return refuse_start(options, name_of_tokens(options), "tokens", r->tokens.count,
                            options->teacher_forced ? " and --gen-tokens more" : "", err);
    if (r->room.context < options->ctx_start)
        return refuse_start(options, NULL, "context", r->room.context, "", err);
    const char *cause = "the tokens end";
    if (r->room.context < end) {
        end = r->room.context;
        cause = "the context ends";
    }
    if (end < r->walk.most) {
        cli_complain(options, "warning: the walk ends at %lld of --ctx-max %lld, where %s",
                     (long long)end, (long long)r->walk.most, cause);
        r->walk.most = end;
    }
    int64_t at = cli_walk_next(&r->walk, 0);
    while (at > 0 && cli_walk_generates(&r->room, at) == options->gen_tokens)
        at = cli_walk_next(&r->walk, at);
    if (at > 0)
        cli_complain(options,
                     "warning: from frontier %lld on, the context of %lld holds fewer than %lld "
                     "generated tokens",
                     (long long)at, (long long)r->room.context, (long long)options->gen_tokens);
    return PLUMB_OK;
}

/* ---- Measuring ---- */

static plumb_status prepare(run *r, plumb_error *err) {
    const cli_options *options = r->runtime.options;
    cli_runtime *runtime = &r->runtime;
    int64_t wanted = options->ctx_max + (options->teacher_forced ? options->gen_tokens : 0);
    plumb_status status = cli_bench_tokens(runtime, wanted, &r->tokens, err);
    if (status == PLUMB_OK) status = plan_walk(r, err);
    if (status != PLUMB_OK) return status;
    r->bench.runtime = runtime;
    r->bench.tokens = r->tokens.ids;
    if (options->show_output) cli_shown_text_open_on_errors(&r->bench.shown, runtime->text);
    /* An empty session's state is what has to be kept for the way back; caches only grow. */
    int64_t kept = plumb_session_state_bytes(runtime->session);
    r->bench.replays = kept > options->snapshot_max_bytes;
    if (r->bench.replays && options->gen_tokens > 0)
        cli_complain(options,
                     "warning: the way back needs %lld bytes, more than --snapshot-max-bytes %lld: "
                     "tokens are evaluated again instead",
                     (long long)kept, (long long)options->snapshot_max_bytes);
    status = cli_bench_logits_open(&r->bench.logits, options, runtime->info.vocab_size, err);
    if (status == PLUMB_OK) status = cli_bench_csv_open(&r->csv, options->csv, err);
    return status;
}

static plumb_status walk_once(run *r, int64_t repeat, plumb_error *err) {
    cli_bench_logits_begin_walk(&r->bench.logits, repeat);
    plumb_status status = plumb_session_rewind(r->runtime.session, 0, err);
    int64_t frontier = cli_walk_next(&r->walk, 0);
    while (frontier > 0 && status == PLUMB_OK) {
        cli_bench_row row;
        status = cli_bench_measure(&r->bench, frontier, cli_walk_generates(&r->room, frontier),
                                   &row, err);
        row.repeat = repeat;
        if (status == PLUMB_OK) status = cli_bench_csv_add(&r->csv, &row, err);
        int64_t next = cli_walk_next(&r->walk, frontier);
        if (status == PLUMB_OK && next > 0) status = cli_bench_go_back(&r->bench, frontier, err);
        frontier = next;
    }
    return status;
}

/* What is wrong with standard output is told at the end, if at all (output.h). */
static int report(const cli_options *options, const plumb_error *err) {
    return cli_output_flush() ? cli_report(options, err) : CLI_FAILED;
}

static int measure(run *r) {
    const cli_options *options = r->runtime.options;
    plumb_error err = {0}, csv_err = {0};
    plumb_status status = prepare(r, &err);
    for (int64_t i = 1; i <= options->repeat && status == PLUMB_OK; i++)
        status = walk_once(r, i, &err);
    if (status == PLUMB_OK) status = cli_bench_logits_commit(&r->bench.logits, &err);
    int result = status == PLUMB_OK ? CLI_OK : report(options, &err);
    if (cli_bench_csv_close(&r->csv, &csv_err) != PLUMB_OK) {
        int failed = report(options, &csv_err);
        if (result == CLI_OK) result = failed;
    }
    cli_shown_text_close(&r->bench.shown);
    cli_bench_logits_close(&r->bench.logits);
    plumb_tokens_free(&r->tokens);
    return result;
}

/* To somebody who waits for it; a script that keeps the rows in a file reads that. */
static int show_on_terminal(const cli_options *options) {
    plumb_error err;
    if (options->csv == NULL || options->quiet || !isatty(STDOUT_FILENO)) return CLI_OK;
    if (cli_bench_plot_text(&options->csv, 1, &err) == PLUMB_OK) return CLI_OK;
    return cli_report(options, &err);
}

int cli_run_bench(const cli_options *options) {
    if (options->plot != NULL) return cli_bench_show(options);
    int status = check(options);
    if (status != CLI_OK) return status;
    if (options->vs != NULL) return cli_bench_vs(options);
    run r = {0};
    bool wants_text = options->prompt_file != NULL || options->show_output;
    status = cli_runtime_open_model(options, wants_text, &r.runtime);
    if (status == CLI_OK)
        status = cli_runtime_open_session(&r.runtime, choose_context(options, &r.runtime.info));
    if (status != CLI_OK) return status;
    status = measure(&r);
    if (status == CLI_OK) status = show_on_terminal(options);
    return cli_runtime_close(&r.runtime, status);
}
