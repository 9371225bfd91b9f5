/* plumb convert and plumb pack: one new file, with progress, until Ctrl-C. */
#include "cli/commands.h"

#include "cli/interrupt.h"
#include "cli/model_lookup.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "convert/convert.h"

typedef plumb_status (*writer)(const char *source, const char *target,
                               const plumb_convert_options *options, plumb_convert_result *result,
                               plumb_error *err);

/* Whom lines are told to, and what stands on the terminal meanwhile. */
typedef struct teller {
    cli_options *options;
    cli_progress *progress;
} teller;

static void tell(void *user, plumb_log_level level, const char *line) {
    const teller *t = user;
    cli_progress_end(t->progress); /* the next report shows it again */
    cli_log(t->options, level, line);
}

static void print_result(const char *target, const plumb_convert_result *r) {
    cli_print("%s: %s bytes, %s tensors; dense matrices: %lld f32, %lld bf16, %lld fp8\n", target,
              cli_grouped(r->file_bytes).text, cli_grouped(r->tensors).text,
              (long long)r->matrices[PLUMB_DENSE_F32], (long long)r->matrices[PLUMB_DENSE_BF16],
              (long long)r->matrices[PLUMB_DENSE_FP8]);
    cli_print("everything on disk was read back and compared\n");
}

static int run(const cli_options *options, writer write, plumb_dense dense) {
    cli_options named = *options;
    named.model = options->arguments[0];
    const char *target = options->arguments[1];
    char source[CLI_PATH_SIZE];
    plumb_error err;
    plumb_status status = cli_find_model(&named, source, &err);
    if (status != PLUMB_OK) return cli_report(options, &err);
    cli_progress progress = cli_progress_begin(options);
    teller listener = {&named, &progress};
    const plumb_convert_options request = {.dense = dense, .force = options->force,
                                           .jobs = (int)options->jobs, .log = tell,
                                           .log_user = &listener, .progress = cli_progress_show,
                                           .progress_user = &progress};
    plumb_convert_result result = {0};
    status = cli_interrupt_catch(&err);
    if (status == PLUMB_OK) status = write(source, target, &request, &result, &err);
    cli_progress_end(&progress);
    if (status == PLUMB_ERROR_CANCELLED) {
        if (result.part_stays)
            cli_complain(options, "interrupted; the same command goes on from %s.part", target);
        else
            cli_complain(options, "interrupted before anything was written");
        return CLI_INTERRUPTED;
    }
    if (status != PLUMB_OK) {
        int code = cli_report(options, &err);
        if (result.part_stays)
            cli_complain(options, "what is written stays in %s.part; the same command goes on from there",
                         target);
        return code;
    }
    print_result(target, &result);
    return CLI_OK;
}

int cli_run_convert(const cli_options *options) {
    int dense = plumb__dense_from_name(options->dense);
    if (dense < 0) {
        cli_complain(options, "--dense: found '%s', expected f32, bf16 or fp8", options->dense);
        return CLI_USAGE;
    }
    return run(options, plumb__convert, (plumb_dense)dense);
}

int cli_run_pack(const cli_options *options) {
    return run(options, plumb__pack, PLUMB_DENSE_BF16);
}
