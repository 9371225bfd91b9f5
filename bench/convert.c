/* Does a conversion write as fast as a copy, and an audit read as fast as the drive can be read?
 * Converting a folder beside cp(1) of its shards, auditing the file beside a plain sequential read of
 * it, in pairs of neighbours (bench/README.md). */
#include "base/machine.h"
#include "convert_files.h"
#include "convert_report.h"
#include "drive.h"
#include "measure.h"
#include "options.h"

#include "convert/audit.h"
#include "convert/convert.h"
#include "format/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct convert_bench {
    const char *source, *work, *only, *dense_name;
    int dense;
    int64_t jobs, pairs, depth, piece_kib;
    bool csv;
    plumb_checkpoint *checkpoint;
    bench_files files;
} convert_bench;

/* One of the two sides of a pair; *rate in bytes per second. */
typedef plumb_status (*side)(convert_bench *b, double *rate, plumb_error *err);

/* ---- Writing ----------------------------------------------------------------------------------- */

static plumb_status copy(convert_bench *b, double *rate, plumb_error *err) {
    double start = bench_now();
    plumb_status status = bench_files_copy(&b->files, err);
    *rate = (double)b->files.source_bytes / (bench_now() - start);
    bench_files_remove_copy(&b->files);
    return status;
}

static plumb_status run_conversion(const convert_bench *b, bool checked, int64_t *bytes,
                                   double *seconds, plumb_error *err) {
    const plumb_convert_options options = {.dense = (plumb_dense)b->dense, .no_audit = !checked,
                                           .jobs = (int)b->jobs};
    plumb_convert_result result;
    double start = bench_now();
    plumb_status status = plumb__convert(b->source, b->files.target, &options, &result, err);
    *seconds = bench_now() - start;
    *bytes = result.file_bytes;
    return status;
}

static plumb_status convert(convert_bench *b, double *rate, plumb_error *err) {
    int64_t bytes;
    double seconds;
    plumb_status status = run_conversion(b, false, &bytes, &seconds, err);
    *rate = (double)bytes / seconds;
    bench_files_remove_target(&b->files);
    return status;
}

/* ---- Reading ----------------------------------------------------------------------------------- */

static plumb_status read_plainly(convert_bench *b, double *rate, plumb_error *err) {
    const bench_drive drive = {.path = b->files.target, .block_bytes = b->piece_kib * 1024,
                               .depth = (int)b->depth, .in_order = true};
    return bench_drive_read(&drive, false, rate, err);
}

static plumb_status audit(convert_bench *b, double *rate, plumb_error *err) {
    const plumb_audit_options options = {.jobs = (int)b->jobs};
    plumb_audit_result result;
    double start = bench_now();
    plumb_status status = plumb__audit_file(b->files.target, &options, &result, err);
    *rate = (double)result.read_bytes / (bench_now() - start);
    return status;
}

/* ---- Pairs ------------------------------------------------------------------------------------- */

/* Neighbours, whose order turns around from pair to pair: a drive gets slower the more it has
 * written. */
static bool measure(convert_bench *b, bench_convert_report *report, side ours, side peer) {
    plumb_error err = {0};
    plumb_status status = PLUMB_OK;
    for (; report->pairs < b->pairs && status == PLUMB_OK; report->pairs++)
        for (int turn = 0; turn < 2 && status == PLUMB_OK; turn++) {
            bool mine = (report->pairs + turn) % 2 != 0;
            report->uncached = bench_files_drop_caches(&b->files);
            status = (mine ? ours : peer)(b, mine ? &report->ours[report->pairs]
                                                  : &report->peer[report->pairs], &err);
        }
    if (!bench_explain(status, &err)) return false;
    bench_convert_report_print(report, b->csv);
    return true;
}

static bool measure_writing(convert_bench *b) {
    char name[64];
    (void)snprintf(name, sizeof name, "convert --dense %s", b->dense_name);
    bench_convert_report report = {.name = name, .beside = "cp and fsync", .wanted = 0.8,
                                   .jobs = b->jobs, .bytes = b->files.source_bytes};
    return measure(b, &report, convert, copy);
}

static bool measure_reading(convert_bench *b) {
    char peer[64];
    int64_t bytes;
    double seconds;
    plumb_error err = {0};
    (void)snprintf(peer, sizeof peer, "%lld reads of %lld KiB at a time", (long long)b->depth,
                   (long long)b->piece_kib);
    (void)bench_files_drop_caches(&b->files);
    if (!bench_explain(run_conversion(b, true, &bytes, &seconds, &err), &err)) return false;
    if (!b->csv)
        printf("\nconversion with its own audit: %.1f s, %.2f GB/s\n", seconds,
               1e-9 * (double)bytes / seconds);
    bench_convert_report report = {.name = "audit", .beside = peer, .wanted = 0.8, .jobs = b->jobs,
                                   .bytes = bytes};
    bool good = measure(b, &report, audit, read_plainly);
    bench_files_remove_target(&b->files);
    return good;
}

/* ---- The program ------------------------------------------------------------------------------- */

static bool options_valid(convert_bench *b) {
    b->dense = plumb__dense_from_name(b->dense_name);
    bool good = b->source && b->work && b->dense >= 0 && b->jobs <= 256 && b->pairs >= 1 &&
                b->pairs <= BENCH_MAX_CONVERT_PAIRS && b->depth >= 1 && b->depth <= 256 &&
                b->piece_kib >= 4 && b->piece_kib % 4 == 0;
    if (!good)
        fprintf(stderr, "--source and --work are needed; --dense: f32, bf16 or fp8; --jobs: up to 256; "
                        "--pairs: 1 to %d; --depth: 1 to 256; --block: multiples of 4\n",
                BENCH_MAX_CONVERT_PAIRS);
    return good;
}

static bool measure_all(convert_bench *b) {
    plumb_error err = {0};
    plumb_status status = plumb__checkpoint_open(b->source, NULL, NULL, &b->checkpoint, &err);
    if (status == PLUMB_OK) status = bench_files_open(b->checkpoint, b->work, &b->files, &err);
    bool good = bench_explain(status, &err);
    if (good && (!b->only || !strcmp(b->only, "convert"))) good = measure_writing(b);
    if (good && (!b->only || !strcmp(b->only, "audit"))) good = measure_reading(b);
    if (good && !b->csv)
        printf("\nat most %.0f MB of memory\n", 1e-6 * (double)plumb__machine_peak_bytes());
    bench_files_close(&b->files);
    plumb__checkpoint_close(b->checkpoint);
    return good;
}

int main(int argc, char **argv) {
    convert_bench b = {.dense_name = "fp8", .pairs = 4, .depth = 8, .piece_kib = 4096};
    const bench_option options[] = {
        {"source", BENCH_TEXT, &b.source, "folder of a checkpoint, on the drive to be measured"},
        {"work", BENCH_TEXT, &b.work,
         "folder to write to, with room for the source once; nothing stays there"},
        {"only", BENCH_TEXT, &b.only, "convert or audit"},
        {"dense", BENCH_TEXT, &b.dense_name, "f32, bf16 or fp8, which writes what cp writes (fp8)"},
        {"jobs", BENCH_COUNT, &b.jobs, "of plumb (its own choice)"},
        {"pairs", BENCH_COUNT, &b.pairs, "of neighbours (4)"},
        {"depth", BENCH_COUNT, &b.depth, "reads at a time of the plain read (8)"},
        {"block", BENCH_COUNT, &b.piece_kib, "KiB of each of them (4096)"},
        {"csv", BENCH_FLAG, &b.csv, "comma separated"},
    };
    int status;
    if (!bench_options_parse(argc, argv, options, sizeof options / sizeof options[0], &status))
        return status;
    if (!options_valid(&b)) return 2;
    return measure_all(&b) ? 0 : 1;
}
