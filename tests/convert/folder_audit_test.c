/* Audits of folders: digests are those of the bytes, whatever the number of jobs; each damaged byte is
 * told by its place; nothing else is. */
#include "convert/folder_audit.h"
#include "convert/folder_pieces.h"
#include "format/checkpoint_parts.h"

#include "fixture.h"
#include "t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL BUILD_DIR "/fixtures/audited"
#define SOURCE BUILD_DIR "/fixtures/audit-source"
#define EMBED "embed.weight" /* of three pieces */

static plumb_checkpoint *open_model(const char *folder) {
    plumb_checkpoint *checkpoint = NULL;
    plumb_error err = {0};
    if (plumb__checkpoint_open(folder, NULL, NULL, &checkpoint, &err) != PLUMB_OK) {
        fprintf(stderr, "%s: %s\n", folder, err.found);
        exit(2);
    }
    return checkpoint;
}

/* A byte of no dtype's NaN that differs from its neighbours and from that of other pieces. */
static uint8_t byte_at(int64_t i) {
    return (uint8_t)((uint64_t)i * 0x9E3779B97F4A7C15u >> 40) & 0x3F;
}

static void change(const plumb_checkpoint *checkpoint, const char *name, int64_t at, uint8_t by) {
    const plumb_tensor *tensor = plumb__checkpoint_find(checkpoint, "%s", name);
    int fd = open(plumb__checkpoint_shard_path(checkpoint, tensor->shard), O_RDWR);
    uint8_t byte = 0;
    bool good = fd >= 0 && pread(fd, &byte, 1, tensor->offset + at) == 1;
    byte ^= by;
    good = good && pwrite(fd, &byte, 1, tensor->offset + at) == 1 && close(fd) == 0;
    if (!good) exit(2);
}

static void make_model(const char *folder, const char *name) {
    static fixture f;
    fixture_wordy(&f, name);
    fixture_save(&f, 0);
    plumb_checkpoint *checkpoint = open_model(folder);
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint); i++) {
        const plumb_tensor *tensor = plumb__checkpoint_tensor(checkpoint, i);
        uint8_t *bytes = malloc((size_t)tensor->bytes);
        for (int64_t j = 0; bytes && j < tensor->bytes; j++) bytes[j] = byte_at(tensor->offset + j);
        int fd = open(plumb__checkpoint_shard_path(checkpoint, tensor->shard), O_WRONLY);
        if (!bytes || pwrite(fd, bytes, (size_t)tensor->bytes, tensor->offset) != tensor->bytes) exit(2);
        (void)close(fd);
        free(bytes);
    }
    plumb__checkpoint_close(checkpoint);
}

/* Both, once. */
static void make_models(void) {
    static bool made;
    if (made) return;
    make_model(MODEL, "audited");
    make_model(SOURCE, "audit-source");
    made = true;
}

static plumb_receipt *receipt_of(const plumb_checkpoint *checkpoint) {
    int64_t count = plumb__checkpoint_count(checkpoint);
    XXH128_hash_t *digests = malloc((size_t)count * sizeof *digests);
    plumb_audit_result result;
    plumb_receipt *receipt = NULL;
    plumb_error err = {0};
    const plumb_audit_options options = {.jobs = 2};
    bool good = digests &&
                plumb__audit_folder(checkpoint, NULL, &options, digests, &result, &err) == PLUMB_OK &&
                plumb__receipt_create(&receipt, &err) == PLUMB_OK;
    good = good && plumb__receipt_add_tensors(receipt, checkpoint, digests, &err) == PLUMB_OK;
    T_CHECK(good, "%s %s", err.field, err.found);
    free(digests);
    return receipt;
}

static void digests_of_the_bytes(void) {
    make_models();
    plumb_checkpoint *checkpoint = open_model(MODEL);
    int64_t count = plumb__checkpoint_count(checkpoint), total = 0;
    static const int jobs[] = {1, 2, 5};
    for (size_t k = 0; k < sizeof jobs / sizeof jobs[0]; k++) {
        XXH128_hash_t digests[FIXTURE_MAX];
        memset(digests, 0xA5, sizeof digests);
        plumb_audit_result result;
        plumb_error err = {0};
        const plumb_audit_options options = {.jobs = jobs[k]};
        T_CHECK(plumb__audit_folder(checkpoint, NULL, &options, digests, &result, &err) == PLUMB_OK,
                "%s", err.found);
        total = 0;
        for (int64_t i = 0; i < count; i++) {
            const plumb_tensor *tensor = plumb__checkpoint_tensor(checkpoint, i);
            uint8_t *bytes = malloc((size_t)tensor->bytes);
            T_CHECK(bytes && plumb__checkpoint_read(checkpoint, tensor, 0, tensor->bytes, bytes,
                                                    &err) == PLUMB_OK, "%s", err.found);
            T_CHECK(XXH128_isEqual(digests[i], XXH3_128bits(bytes, (size_t)tensor->bytes)), "%s",
                    tensor->name);
            total += tensor->bytes;
            free(bytes);
        }
        T_CHECK(result.tensors == count && result.read_tensors == count, "all tensors");
        T_CHECK(result.bytes == total && result.read_bytes == total, "all bytes");
    }
    T_CHECK(total > 2 * 2 * PLUMB_PIECE_BYTES, "tensors of several pieces: %" PRId64, total);
    plumb__checkpoint_close(checkpoint);
}

static const struct {
    const char *name;
    int64_t at; /* from the end where negative */
} places[] = {
    {EMBED, PLUMB_PIECE_BYTES - 1},
    {EMBED, PLUMB_PIECE_BYTES},
    {EMBED, -1},
    {"norm.weight", 3},
    {"layers.0.attn.wq_a.weight", 40},
    {"layers.0.attn.wq_a.scale", 0},
    {"layers.1.attn.attn_sink", 5},
    {"layers.1.ffn.experts.0.w1.weight", 17},
};

static int64_t place_of(const plumb_checkpoint *checkpoint, size_t i) {
    const plumb_tensor *tensor = plumb__checkpoint_find(checkpoint, "%s", places[i].name);
    T_CHECK(tensor, "%s", places[i].name);
    return places[i].at < 0 ? tensor->bytes + places[i].at : places[i].at;
}

static void each_place_against_a_receipt(void) {
    make_models();
    plumb_checkpoint *checkpoint = open_model(MODEL);
    plumb_receipt *receipt = receipt_of(checkpoint);
    const plumb_audit_options options = {.jobs = 3};
    plumb_audit_result result;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        plumb_error err = {0};
        int64_t at = place_of(checkpoint, i);
        change(checkpoint, places[i].name, at, 1);
        plumb_checkpoint *changed = open_model(MODEL);
        const plumb_tensor *tensor = plumb__checkpoint_find(changed, "%s", places[i].name);
        T_CHECK(plumb__audit_folder(changed, receipt, &options, NULL, &result, &err) != PLUMB_OK,
                "%s %" PRId64, places[i].name, at);
        T_ERROR(&err, PLUMB_ERROR_VALUE, plumb__checkpoint_shard_path(changed, tensor->shard),
                places[i].name, places[i].name);
        T_CHECK(err.offset == tensor->offset && !strcmp(err.field, tensor->name), "%s %" PRId64,
                err.field, err.offset);
        change(changed, places[i].name, at, 1);
        plumb__checkpoint_close(changed);
    }
    plumb__checkpoint_close(checkpoint);
    checkpoint = open_model(MODEL);
    plumb_error err = {0};
    T_CHECK(plumb__audit_folder(checkpoint, receipt, &options, NULL, &result, &err) == PLUMB_OK,
            "changed back: %s", err.found);
    plumb__receipt_destroy(receipt);
    plumb__checkpoint_close(checkpoint);
}

static void each_place_against_a_source(void) {
    make_models();
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        plumb_error err = {0};
        plumb_audit_result result;
        const plumb_audit_options options = {.source = SOURCE, .jobs = 3};
        plumb_checkpoint *checkpoint = open_model(MODEL);
        int64_t at = place_of(checkpoint, i);
        change(checkpoint, places[i].name, at, 1);
        plumb__checkpoint_close(checkpoint);
        checkpoint = open_model(MODEL);
        const plumb_tensor *tensor = plumb__checkpoint_find(checkpoint, "%s", places[i].name);
        T_CHECK(plumb__audit_folder(checkpoint, NULL, &options, NULL, &result, &err) != PLUMB_OK, "%s",
                places[i].name);
        T_ERROR(&err, PLUMB_ERROR_VALUE, "fixtures/audited", places[i].name, places[i].name);
        int64_t width = tensor->dtype == PLUMB_DTYPE_BF16 ? 2 : tensor->dtype == PLUMB_DTYPE_F32 ? 4 : 1;
        int64_t element = at / width, columns = tensor->rank == 1 ? 1 : tensor->shape[1];
        T_CHECK(err.offset == tensor->offset + element * width, "%" PRId64, err.offset);
        unsigned before = 0, after;
        for (int64_t b = width; b-- > 0;)
            before = before << 8 | byte_at(tensor->offset + element * width + b);
        after = before ^ 1u << 8 * (at % width);
        char found[96], expected[96], where[64];
        (void)snprintf(where, sizeof where, "in row %" PRId64 ", column %" PRId64, element / columns,
                       element % columns);
        (void)snprintf(found, sizeof found, "0x%0*X %s", (int)width * 2, after, where);
        (void)snprintf(expected, sizeof expected, "0x%0*X %s", (int)width * 2, before, where);
        T_CHECK(!strcmp(err.found, found), "%s: %s, not %s", places[i].name, err.found, found);
        T_CHECK(!strcmp(err.expected, expected), "%s, not %s", err.expected, expected);
        change(checkpoint, places[i].name, at, 1);
        plumb__checkpoint_close(checkpoint);
    }
    plumb_checkpoint *checkpoint = open_model(MODEL);
    plumb_error err = {0};
    plumb_audit_result result;
    const plumb_audit_options options = {.source = SOURCE, .jobs = 2};
    T_CHECK(plumb__audit_folder(checkpoint, NULL, &options, NULL, &result, &err) == PLUMB_OK, "%s",
            err.found);
    plumb__checkpoint_close(checkpoint);
}

/* In a tensor whose later pieces wait for the digest of earlier ones, too. */
static void the_first_of_several(void) {
    make_models();
    plumb_checkpoint *checkpoint = open_model(MODEL);
    plumb_receipt *receipt = receipt_of(checkpoint);
    const plumb_tensor *embed = plumb__checkpoint_find(checkpoint, EMBED);
    const plumb_tensor *head = plumb__checkpoint_find(checkpoint, "head.weight");
    T_CHECK(embed->shard < head->shard || (embed->shard == head->shard && embed->offset < head->offset),
            "embed is first");
    /* bf16 0xFF3F: NaN, by its high byte */
    change(checkpoint, EMBED, PLUMB_PIECE_BYTES + 1, byte_at(embed->offset + PLUMB_PIECE_BYTES + 1) ^ 0x7F);
    change(checkpoint, EMBED, PLUMB_PIECE_BYTES, byte_at(embed->offset + PLUMB_PIECE_BYTES) ^ 0xFF);
    change(checkpoint, "head.weight", 0, 1);
    plumb__checkpoint_close(checkpoint);
    checkpoint = open_model(MODEL);
    embed = plumb__checkpoint_find(checkpoint, EMBED);
    for (int round = 0; round < 6; round++) {
        plumb_error err = {0};
        plumb_audit_result result;
        const plumb_audit_options options = {.jobs = 1 + round % 5};
        T_CHECK(plumb__audit_folder(checkpoint, receipt, &options, NULL, &result, &err) != PLUMB_OK,
                "two faults");
        T_ERROR(&err, PLUMB_ERROR_VALUE, "fixtures/audited", EMBED, "the first");
        T_CHECK(err.offset == embed->offset + PLUMB_PIECE_BYTES && strstr(err.found, "0x7FFF"),
                "%" PRId64 " %s", err.offset, err.found);
    }
    change(checkpoint, "head.weight", 0, 1);
    change(checkpoint, EMBED, PLUMB_PIECE_BYTES, byte_at(embed->offset + PLUMB_PIECE_BYTES) ^ 0xFF);
    change(checkpoint, EMBED, PLUMB_PIECE_BYTES + 1, byte_at(embed->offset + PLUMB_PIECE_BYTES + 1) ^ 0x7F);
    plumb__receipt_destroy(receipt);
    plumb__checkpoint_close(checkpoint);
}

/* A model without its draft beside one that has it. */
static void other_tensors(void) {
    make_models();
    static fixture f;
    fixture_wordy(&f, "audit-less");
    int64_t kept = 0;
    for (int i = 0; i < f.count; i++)
        if (strncmp(f.tensors[i].name, "mtp.", 4) != 0) kept++;
        else f.tensors[i].shard = -1, f.tensors[i].indexed_as[0] = '\0';
    T_CHECK(kept < f.count, "there is a draft");
    fixture_save(&f, 0);
    plumb_checkpoint *whole = open_model(MODEL), *less = open_model(BUILD_DIR "/fixtures/audit-less");
    plumb_receipt *of_whole = receipt_of(whole), *of_less = receipt_of(less);
    const plumb_audit_options alone = {.jobs = 1}, source = {.jobs = 1, .source = MODEL},
                              less_source = {.jobs = 1, .source = BUILD_DIR "/fixtures/audit-less"};
    const struct {
        const plumb_checkpoint *checkpoint;
        const plumb_receipt *receipt;
        const plumb_audit_options *options;
        const char *file, *found;
    } rows[] = {
        {whole, of_less, &alone, "fixtures/audited", "a tensor that was not there"},
        {less, of_whole, &alone, "fixtures/audit-less", " tensors"},
        {whole, NULL, &less_source, "fixtures/audit-less", "no such tensor"},
        {less, NULL, &source, "fixtures/audited", " tensors"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plumb_error err = {0};
        plumb_audit_result result;
        T_CHECK(plumb__audit_folder(rows[i].checkpoint, rows[i].receipt, rows[i].options, NULL, &result,
                                    &err) == PLUMB_ERROR_TENSOR, "%zu", i);
        T_CHECK(strstr(err.file, rows[i].file) && strstr(err.found, rows[i].found), "%s %s", err.file,
                err.found);
    }
    plumb__receipt_destroy(of_whole);
    plumb__receipt_destroy(of_less);
    plumb__checkpoint_close(whole);
    plumb__checkpoint_close(less);
}

static void a_file_that_changes(void) {
    make_models();
    plumb_checkpoint *checkpoint = open_model(MODEL);
    /* Written long ago: two writes within one tick of the clock have the same time. */
    const plumb_tensor *norm = plumb__checkpoint_find(checkpoint, "norm.weight");
    const char *shard = plumb__checkpoint_shard_path(checkpoint, norm->shard);
    const struct timespec then[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};
    T_CHECK(utimensat(AT_FDCWD, shard, then, 0) == 0, "%s", shard);
    plumb__checkpoint_close(checkpoint);
    checkpoint = open_model(MODEL);
    change(checkpoint, "norm.weight", 0, 0);
    plumb_error err = {0};
    plumb_audit_result result;
    const plumb_audit_options options = {.jobs = 2};
    T_CHECK(plumb__audit_folder(checkpoint, NULL, &options, NULL, &result, &err) == PLUMB_ERROR_IO,
            "written to since it was opened");
    plumb__checkpoint_close(checkpoint);
}

static int stop(void *user, const plumb_progress *progress) {
    (void)progress;
    ++*(int *)user;
    return 1;
}

static void a_request_to_stop(void) {
    make_models();
    plumb_checkpoint *checkpoint = open_model(MODEL);
    for (int jobs = 1; jobs < 6; jobs++) {
        int asked = 0;
        plumb_error err = {0};
        plumb_audit_result result;
        const plumb_audit_options options = {.jobs = jobs, .progress = stop, .progress_user = &asked};
        T_CHECK(plumb__audit_folder(checkpoint, NULL, &options, NULL, &result, &err) ==
                    PLUMB_ERROR_CANCELLED, "%d", jobs);
        T_CHECK(asked > 0, "%d", asked);
    }
    plumb__checkpoint_close(checkpoint);
}

/* What a sample is, on a model of 15 MB whose tensors are of one piece. */
static void samples(void) {
    plumb_checkpoint *checkpoint = open_model(BUILD_DIR "/checkpoints/deep40");
    static const plumb_piece_choice choices[] = {PLUMB_PIECES_SAMPLE, PLUMB_PIECES_SAMPLE_TENSORS};
    plumb_pieces all, sample, again;
    plumb_error err = {0};
    T_CHECK(plumb__pieces_list(checkpoint, PLUMB_PIECES_ALL, &all, &err) == PLUMB_OK, "all");
    for (int i = 0; i < 2; i++) {
        T_CHECK(plumb__pieces_list(checkpoint, choices[i], &sample, &err) == PLUMB_OK, "sample");
        T_CHECK(plumb__pieces_list(checkpoint, choices[i], &again, &err) == PLUMB_OK, "again");
        T_CHECK(sample.count == again.count &&
                    !memcmp(sample.piece, again.piece, (size_t)sample.count * sizeof *sample.piece),
                "the same every time");
        T_CHECK(sample.count * 200 > all.count && sample.count * 50 < all.count,
                "about 1 %%: %" PRId64 " of %" PRId64, sample.count, all.count);
        for (int64_t p = 0; p < sample.count; p++) {
            const plumb_tensor *tensor =
                plumb__checkpoint_tensor(checkpoint, sample.piece[p].tensor);
            T_CHECK(sample.piece[p].begin == 0 && sample.piece[p].size == tensor->bytes, "whole");
            T_CHECK(i == 0 || tensor->bytes <= all.bytes / 100, "%s", tensor->name);
        }
        plumb__pieces_free(&sample);
        plumb__pieces_free(&again);
    }
    plumb__pieces_free(&all);
    plumb__checkpoint_close(checkpoint);
}

/* Models of which nothing but the list of tensors exists: 90 of three pieces, each more than 1 % of the
 * model, and ten times as many small ones.  Among so many, lots draw pieces of large ones too. */
static void samples_of_large_tensors(void) {
    enum { MODELS = 20, LARGE = 90, TENSORS = 11 * LARGE };
    static plumb_tensor tensors[TENSORS];
    static char names[TENSORS][32];
    plumb_checkpoint checkpoint = {.tensors = {.items = tensors, .count = TENSORS}};
    int64_t large_pieces = 0;
    for (int model = 0; model < MODELS; model++) {
        for (int i = 0; i < TENSORS; i++) {
            (void)snprintf(names[i], sizeof names[i], "%d.%d", model, i);
            tensors[i] = (plumb_tensor){.name = names[i], .offset = i,
                                        .bytes = i < LARGE ? 3 * PLUMB_PIECE_BYTES : 64};
        }
        plumb_pieces pieces, whole;
        plumb_error err = {0};
        T_TRUE(plumb__pieces_list(&checkpoint, PLUMB_PIECES_SAMPLE, &pieces, &err) == PLUMB_OK);
        T_TRUE(plumb__pieces_list(&checkpoint, PLUMB_PIECES_SAMPLE_TENSORS, &whole, &err) == PLUMB_OK);
        for (int64_t i = 0; i < pieces.count; i++)
            large_pieces += pieces.piece[i].size == PLUMB_PIECE_BYTES;
        for (int64_t i = 0; i < whole.count; i++)
            T_CHECK(whole.piece[i].tensor >= LARGE, "%s", names[whole.piece[i].tensor]);
        plumb__pieces_free(&pieces);
        plumb__pieces_free(&whole);
    }
    T_CHECK(large_pieces > MODELS, "%" PRId64 " pieces of large tensors", large_pieces);
}

/* A sample compares what it reads, and says nothing of the rest. */
static void samples_compare(void) {
    make_models();
    plumb_checkpoint *checkpoint = open_model(MODEL);
    plumb_receipt *receipt = receipt_of(checkpoint);
    const plumb_audit_options sample = {.jobs = 2, .sample = true};
    plumb_pieces pieces;
    plumb_error err = {0};
    T_CHECK(plumb__pieces_list(checkpoint, PLUMB_PIECES_SAMPLE_TENSORS, &pieces, &err) == PLUMB_OK &&
            pieces.count > 0, "at least one");
    const char *inside = plumb__checkpoint_tensor(checkpoint, pieces.piece[0].tensor)->name;
    const char *const names[] = {inside, EMBED};
    for (int i = 0; i < 2; i++) {
        plumb_audit_result result = {0};
        change(checkpoint, names[i], 0, 1);
        plumb_checkpoint *changed = open_model(MODEL);
        plumb_status status = plumb__audit_folder(changed, receipt, &sample, NULL, &result, &err);
        T_CHECK(i == 0 ? status == PLUMB_ERROR_VALUE && !strcmp(err.field, inside)
                       : status == PLUMB_OK && result.read_bytes < result.bytes / 50, "%s", names[i]);
        change(changed, names[i], 0, 1);
        plumb__checkpoint_close(changed);
    }
    plumb__pieces_free(&pieces);
    plumb__receipt_destroy(receipt);
    plumb__checkpoint_close(checkpoint);
}

T_MAIN({"digests_of_the_bytes", digests_of_the_bytes},
       {"each_place_against_a_receipt", each_place_against_a_receipt},
       {"each_place_against_a_source", each_place_against_a_source},
       {"the_first_of_several", the_first_of_several}, {"other_tensors", other_tensors},
       {"a_file_that_changes", a_file_that_changes}, {"a_request_to_stop", a_request_to_stop},
       {"samples", samples}, {"samples_of_large_tensors", samples_of_large_tensors},
       {"samples_compare", samples_compare})
