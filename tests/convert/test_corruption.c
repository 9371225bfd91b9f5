/* A single wrong bit anywhere in a converted file, and an end anywhere: the audit says where.
 *
 * The flips are drawn: half of them anywhere in the file, which is mostly payloads and the padding
 * between them; of the others each part of the file, and each tensor however small, has its share. */
#include <stdlib.h>

#include "convert/converted_header.h"
#include "damaged_file.h"
#include "t.h"

#define PLACE "corruption"

typedef enum part { HEADER, HEADER_PADDING, PAYLOAD, PADDING, PARTS } part;

static part part_of(const damaged_file *d, int64_t at) {
    if (at < d->gguf.header_bytes) return HEADER;
    const plumb_gguf_tensor *t = damaged_file_tensor(d, at);
    return !t ? HEADER_PADDING : at < t->offset + t->bytes ? PAYLOAD : PADDING;
}

/* ---- What a report may say ------------------------------------------------------------------- */

/* Either the element, or the range of a digest: one part of the tensor. */
static bool tells_payload(const damaged_file *d, int64_t at, const plumb_error *err) {
    const plumb_gguf_tensor *t = damaged_file_tensor(d, at);
    long long covered = 0;
    if (!strstr(err->found, " XXH3-128 ") || sscanf(err->found, "%lld bytes", &covered) != 1)
        covered = t->type == PLUMB_GGML_F32 ? 4 : t->type == PLUMB_GGML_BF16 ? 2 : 1;
    int64_t end = err->offset + covered;
    bool is_slice = t->type == PLUMB_GGML_MXFP4 && strcmp(err->field, t->name) != 0;
    if (is_slice && covered != t->bytes / t->shape[2]) return false;
    return err->status == PLUMB_ERROR_VALUE && damaged_file_names(t, err->field) &&
           err->offset <= at && at < end && err->offset >= t->offset && end <= t->offset + t->bytes;
}

/* Where the key or the tensor begins that this byte of the header belongs to; *key: its name. */
static int64_t entry_of(const damaged_file *d, int64_t at, const char **key) {
    static const int64_t fields[] = {0, 4, 8, 16, 24};
    int64_t begin = 0;
    *key = "";
    for (int i = 0; i < 5 && fields[i] <= at; i++) begin = fields[i];
    for (int64_t i = 0, end = 24; i < d->gguf.values && end <= at; i++) {
        const plumb_gguf_value *v = &d->gguf.value[i];
        begin = end;
        *key = v->key;
        end = v->offset + v->size;
        if (i == d->gguf.values - 1 && at >= end) begin = end, *key = "";
    }
    for (int64_t i = 0; i < d->gguf.tensors && !**key && begin > 24; i++) {
        const plumb_gguf_tensor *t = &d->gguf.tensor[i];
        int64_t end = begin + 8 + (int64_t)strlen(t->name) + 4 + 8 * t->dims + 4 + 8;
        if (at < end) break;
        begin = end;
    }
    return begin;
}

/* The block whose digest does not fit, or that digest; or, where the structure itself is broken, the
 * place where reading it ended, which is no earlier than the damage. */
static bool tells_header(const damaged_file *d, int64_t at, const plumb_error *err) {
    long long end = 0, place = 0;
    const char *key, *digest = strstr(err->expected, "offset ");
    if (strcmp(err->field, "header") == 0 && sscanf(err->found, "bytes to %lld", &end) == 1) {
        bool in_digest = digest && sscanf(digest, "offset %lld", &place) == 1 && at >= place &&
                         at < place + 8;
        bool in_block = err->offset <= at && at < end && end <= err->offset + PLUMB_HEADER_BLOCK;
        return err->status == PLUMB_ERROR_VALUE && (in_digest || in_block);
    }
    int64_t begin = entry_of(d, at, &key);
    if (err->offset < 0) return *key && strcmp(err->field, key) == 0;
    return err->offset >= begin;
}

static void check_report(const damaged_file *d, int64_t at, int bit, plumb_status status,
                         const plumb_error *err) {
    bool told = false;
    char line[1024] = "clean";
    if (status != PLUMB_OK) {
        plumb_error_line(err, line, sizeof line);
        switch (part_of(d, at)) {
        case HEADER: told = tells_header(d, at, err); break;
        case PAYLOAD: told = tells_payload(d, at, err); break;
        default: told = err->status == PLUMB_ERROR_VALUE && err->offset == at; break;
        }
    }
    T_CHECK(told && (status == PLUMB_OK || strcmp(err->file, d->made.path) == 0),
            "%s: byte %lld, bit %d: %s", d->made.path, (long long)at, bit, line);
}

/* ---- Flips ----------------------------------------------------------------------------------- */

static int64_t below(uint64_t *random, int64_t n) {
    return (int64_t)(converted_random(random) % (uint64_t)n);
}

static int64_t draw_place(const damaged_file *d, int number, uint64_t *random) {
    const plumb_gguf_tensor *t = &d->gguf.tensor[below(random, d->gguf.tensors)];
    int64_t end = t->offset + t->bytes, aligned = (end + 16383) / 16384 * 16384;
    switch (number % 8) {
    case 0: return below(random, d->gguf.header_bytes);
    case 1: return below(random, d->gguf.data_offset);
    case 2: return t->offset + below(random, t->bytes);
    case 3: return aligned > end ? end + below(random, aligned - end) : end - 1;
    default: return below(random, d->size);
    }
}

static void flip_bits(flavour f, int flips) {
    damaged_file d = damaged_file_open(PLACE, f);
    uint64_t random = 0x9E3779B97F4A7C15u + (uint64_t)f;
    int met[PARTS] = {0};
    plumb_error err;
    for (int i = 0; i < flips; i++) {
        int64_t at = draw_place(&d, i, &random);
        int bit = (int)below(&random, 8);
        damaged_file_flip(&d, at, bit);
        plumb_status status = converted_audit(d.made.path, NULL, 1 + i % 2, false, &err);
        check_report(&d, at, bit, status, &err);
        damaged_file_restore_byte(&d, at);
        met[part_of(&d, at)]++;
    }
    T_CHECK(converted_audit(d.made.path, NULL, 1, false, &err) == PLUMB_OK, "whole again");
    for (int i = 0; i < PARTS; i++) T_CHECK(met[i] > 0, "part %d: %d flips", i, met[i]);
    printf("%s: flips in header %d, its padding %d, payloads %d, their padding %d\n",
           flavour_name(f), met[HEADER], met[HEADER_PADDING], met[PAYLOAD], met[PADDING]);
    damaged_file_close(&d);
}

/* A thousand and a few; packed files are those of --dense bf16, byte for byte (test_round_trip). */
enum { FLIPS = T_SANITIZED ? 85 : 340 };
static void flips_f32(void) { flip_bits(FLAVOUR_F32, FLIPS); }
static void flips_bf16(void) { flip_bits(FLAVOUR_BF16, FLIPS); }
static void flips_fp8(void) { flip_bits(FLAVOUR_FP8, FLIPS); }

/* Every byte of the fixed fields, and of the first and last entries. */
static void flips_of_structure(void) {
    damaged_file d = damaged_file_open(PLACE, FLAVOUR_FP8);
    plumb_error err;
    for (int64_t i = 0; i < 96; i++) {
        int64_t at = i < 64 ? i : d.gguf.header_bytes - 96 + i;
        int bit = (int)(i * 5 % 8);
        damaged_file_flip(&d, at, bit);
        check_report(&d, at, bit, converted_audit(d.made.path, NULL, 1, false, &err), &err);
        damaged_file_restore_byte(&d, at);
    }
    damaged_file_close(&d);
}

static void check_padding(const damaged_file *d, int64_t begin, int64_t end, int *met) {
    if (begin == end) return;
    const int64_t places[] = {begin, end - 1};
    for (int i = 0; i < 2; i++) {
        plumb_error err;
        damaged_file_flip(d, places[i], 7 * i);
        plumb_status status = converted_audit(d->made.path, NULL, 1, false, &err);
        check_report(d, places[i], 7 * i, status, &err);
        damaged_file_restore_byte(d, places[i]);
    }
    (*met)++;
}

/* The first and the last byte behind the header, and behind some of the payloads; the file ends with
 * the last of them. */
static void ends_of_padding(void) {
    damaged_file d = damaged_file_open(PLACE, FLAVOUR_FP8);
    int header = 0, payloads = 0;
    check_padding(&d, d.gguf.header_bytes, d.gguf.data_offset, &header);
    for (int64_t i = 0; i < d.gguf.tensors; i++) {
        const plumb_gguf_tensor *t = &d.gguf.tensor[i];
        bool last = i == d.gguf.tensors - 1;
        if (i % 9 == 0 || last)
            check_padding(&d, t->offset + t->bytes, last ? d.size : t[1].offset, &payloads);
    }
    T_CHECK(header == 1 && payloads > 10, "%d, %d", header, payloads);
    damaged_file_close(&d);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void check_cut(const damaged_file *d, int64_t size) {
    plumb_error err;
    char line[1024] = "clean";
    damaged_file_cut(d, size);
    plumb_status status = converted_audit(d->made.path, NULL, 1, false, &err);
    damaged_file_restore_end(d, size);
    bool told = status == PLUMB_ERROR_FORMAT || status == PLUMB_ERROR_IO;
    if (status != PLUMB_OK) plumb_error_line(&err, line, sizeof line);
    const plumb_gguf_tensor *t = damaged_file_tensor(d, size);
    if (told && size < d->gguf.header_bytes)
        told = err.offset >= 0 && err.offset <= size;
    else if (told && t && size < t->offset + t->bytes)
        told = err.offset == t->offset && strcmp(err.field, t->name) == 0;
    T_CHECK(told, "%lld of %lld bytes: %s", (long long)size, (long long)d->size, line);
}

static void truncations(void) {
    damaged_file d = damaged_file_open(PLACE, FLAVOUR_FP8);
    uint64_t random = 7;
    const plumb_gguf_tensor *last = &d.gguf.tensor[d.gguf.tensors - 1];
    const int64_t sizes[] = {0, 1, 3, 4, 7, 8, 23, 24, 25, d.gguf.header_bytes - 1,
                             d.gguf.header_bytes, d.gguf.data_offset - 1, d.gguf.data_offset,
                             d.gguf.data_offset + 1, last->offset, last->offset + 1,
                             last->offset + last->bytes - 1, last->offset + last->bytes, d.size - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) check_cut(&d, sizes[i]);
    for (int i = 0; i < 20; i++) check_cut(&d, below(&random, d.gguf.header_bytes));
    for (int i = 0; i < 40; i++) check_cut(&d, below(&random, d.size));
    plumb_error err;
    damaged_file_cut(&d, d.size + 1);
    T_CHECK(converted_audit(d.made.path, NULL, 1, false, &err) == PLUMB_ERROR_FORMAT,
            "one byte more");
    damaged_file_close(&d);
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* What a sample does not read, it does not see; the whole audit does. */
/* One expert of a hundred, one of a hundred other tensors, no table. */
static bool is_sampled(const damaged_file *d, int64_t number, int64_t at) {
    const plumb_gguf_tensor *t = &d->gguf.tensor[number];
    int64_t slice = (at - t->offset) / (t->bytes / t->shape[2]);
    return !strstr(t->name, "engram_embd") && (37 * number + slice) % 100 == 0;
}

/* A byte of some tensor; of the first few, one that is in the sample. */
static int64_t draw(const damaged_file *d, int i, uint64_t *random, int64_t *number) {
    int64_t at;
    do {
        *number = below(random, d->gguf.tensors);
        const plumb_gguf_tensor *t = &d->gguf.tensor[*number];
        at = t->offset + below(random, t->bytes);
    } while (i < 4 && !is_sampled(d, *number, at));
    return at;
}

static void outside_the_sample(void) {
    damaged_file d = damaged_file_open(PLACE, FLAVOUR_FP8);
    uint64_t random = 11;
    int overlooked = 0, seen = 0;
    for (int i = 0; i < 40; i++) {
        int64_t number, at = draw(&d, i, &random, &number);
        plumb_error err;
        damaged_file_flip(&d, at, 3);
        bool found = converted_audit(d.made.path, NULL, 2, true, &err) != PLUMB_OK;
        T_CHECK(found == is_sampled(&d, number, at), "tensor %lld", (long long)number);
        if (found) seen++;
        else overlooked++;
        check_report(&d, at, 3, converted_audit(d.made.path, NULL, 2, false, &err), &err);
        damaged_file_restore_byte(&d, at);
    }
    T_CHECK(seen >= 4 && overlooked >= 20, "%d seen, %d overlooked", seen, overlooked);
    damaged_file_close(&d);
}

T_MAIN({"flips_f32", flips_f32}, {"flips_bf16", flips_bf16}, {"flips_fp8", flips_fp8},
       {"flips_of_structure", flips_of_structure}, {"ends_of_padding", ends_of_padding}, {"truncations", truncations},
       {"outside_the_sample", outside_the_sample})
