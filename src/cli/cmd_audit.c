/* plumb audit: reads all of a model, with progress, and says whether it is what it should be. */
#include "cli/commands.h"

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/model_lookup.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "convert/folder_audit.h"
#include "convert/receipt.h"
#include "convert/revision.h"

#include <stdlib.h>

typedef struct auditing {
    const cli_options *options;
    const char *receipt_path;
    plumb_audit_options request;
    plumb_checkpoint *checkpoint;
    plumb_receipt *then, *now; /* then: NULL where there is none to compare with */
    XXH128_hash_t *digests;    /* of all tensors, to record them; or NULL */
    plumb_audit_result result;
} auditing;

/* ---- What is said ---------------------------------------------------------------------------- */

static void print_result(const auditing *a) {
    const plumb_audit_result *r = &a->result;
    if (a->request.sample)
        cli_print("sample      %s of %s bytes, of %s of %s tensors: a quick look, no proof\n",
                  cli_grouped(r->read_bytes).text, cli_grouped(r->bytes).text,
                  cli_grouped(r->read_tensors).text, cli_grouped(r->tensors).text);
    else
        cli_print("read        %s bytes of %s tensors\n", cli_grouped(r->read_bytes).text,
                  cli_grouped(r->read_tensors).text);
    bool folder = plumb__checkpoint_gguf(a->checkpoint) == NULL;
    cli_print(folder ? "values      no NaN\n" : "digests     those inside the file: equal\n");
    if (a->then)
        cli_print("receipt     %s of %s: equal\n", a->receipt_path, plumb__receipt_made(a->then));
    if (a->request.source) cli_print("source      %s: equal\n", a->request.source);
    if (folder && !a->then && !a->request.source)
        cli_print("receipt     none: nothing to compare with\n");
}

/* ---- The work -------------------------------------------------------------------------------- */

/* What is compared or recorded is noted before anything is read. */
static plumb_status prepare_folder(auditing *a, plumb_error *err) {
    const char *path = plumb__checkpoint_path(a->checkpoint);
    size_t count = (size_t)plumb__checkpoint_count(a->checkpoint);
    plumb_status status = PLUMB_OK;
    if (plumb__receipt_exists(a->receipt_path))
        status = plumb__receipt_read(a->receipt_path, &a->then, err);
    if (status == PLUMB_OK && a->then)
        status = plumb__receipt_compare_small_files(a->now, a->then, path, err);
    if (status != PLUMB_OK || !a->options->record) return status;
    a->digests = malloc(count * sizeof *a->digests);
    return a->digests ? PLUMB_OK : plumb__fail_memory(err, "digests", count * sizeof *a->digests);
}

static plumb_status audit_model(auditing *a, plumb_error *err) {
    const char *path = plumb__checkpoint_path(a->checkpoint);
    if (plumb__checkpoint_gguf(a->checkpoint))
        return plumb__audit_file(path, &a->request, &a->result, err);
    plumb_status status = prepare_folder(a, err);
    if (status != PLUMB_OK) return status;
    return plumb__audit_folder(a->checkpoint, a->then, &a->request, a->digests, &a->result, err);
}

/* A copy, whose digests are those of the earlier receipt, is the release that the receipt tells. */
static plumb_status set_release(auditing *a, plumb_error *err) {
    plumb_revision revision;
    plumb_status status = plumb__revision_detect(a->checkpoint, &revision, err);
    if (status != PLUMB_OK) return status;
    if (a->then && revision.release == PLUMB_RELEASE_UNKNOWN)
        return plumb__receipt_set_release(a->now, plumb__receipt_release(a->then),
                                          plumb__receipt_evidence(a->then), err);
    return plumb__receipt_set_release(a->now, plumb__release_name(revision.release), revision.words,
                                      err);
}

static plumb_status record(auditing *a, plumb_error *err) {
    /* A file that was written while others were read is not what was audited. */
    plumb_status status =
        plumb__receipt_check_unchanged(a->now, plumb__checkpoint_path(a->checkpoint), err);
    if (status == PLUMB_OK && a->digests)
        status = plumb__receipt_add_tensors(a->now, a->checkpoint, a->digests, err);
    if (status == PLUMB_OK) status = set_release(a, err);
    return status == PLUMB_OK ? plumb__receipt_write(a->now, a->receipt_path, err) : status;
}

static plumb_status run(auditing *a, const char *path, plumb_error *err) {
    plumb_status status = cli_interrupt_catch(err);
    if (status == PLUMB_OK)
        status =
            plumb__checkpoint_open(path, a->request.log, a->request.log_user, &a->checkpoint, err);
    if (status == PLUMB_OK) status = plumb__receipt_create(&a->now, err);
    if (status == PLUMB_OK) status = plumb__receipt_add_files(a->now, a->checkpoint, err);
    if (status == PLUMB_OK) status = audit_model(a, err);
    cli_progress_end(a->request.progress_user);
    if (status == PLUMB_OK) print_result(a);
    if (status != PLUMB_OK || !a->options->record) return status;
    status = record(a, err);
    if (status == PLUMB_OK) cli_print("recorded    %s\n", a->receipt_path);
    return status;
}

int cli_run_audit(const cli_options *options) {
    cli_options named = *options;
    named.model = options->arguments[0];
    char path[CLI_PATH_SIZE], source[CLI_PATH_SIZE];
    plumb_error err = {0};
    plumb_status status = cli_find_model(&named, path, &err);
    if (status == PLUMB_OK && options->source) {
        named.model = options->source;
        status = cli_find_model(&named, source, &err);
    }
    char *receipt_path = status == PLUMB_OK ? plumb__receipt_path(path) : NULL;
    if (status == PLUMB_OK && !receipt_path) status = plumb__fail_memory(&err, "path", sizeof path);
    cli_progress progress = cli_progress_begin(options);
    auditing a = {.options = options,
                  .receipt_path = receipt_path,
                  .request = {.source = options->source ? source : NULL,
                              .sample = options->sample,
                              .jobs = (int)options->jobs,
                              .log = cli_log,
                              .log_user = &named,
                              .progress = cli_progress_show,
                              .progress_user = &progress}};
    if (status == PLUMB_OK) status = run(&a, path, &err);
    plumb__receipt_destroy(a.then);
    plumb__receipt_destroy(a.now);
    plumb__checkpoint_close(a.checkpoint);
    free(a.digests);
    free(receipt_path);
    if (status == PLUMB_ERROR_CANCELLED) cli_complain(options, "interrupted");
    return status == PLUMB_OK ? CLI_OK : cli_report(options, &err);
}
