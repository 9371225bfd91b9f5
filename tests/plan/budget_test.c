/* Sizes of the released model, and how memory is split, against numbers worked out by hand. */
#include "plan/budget.h"

#include "model/network.h"
#include "plan/speed_plan.h"
#include "released.h"
#include "stream/reader.h"

#include <stdlib.h>

/* docs/checkpoint.md section 4. */
static void bytes(void) {
    plumb_model_sizes s = released_sizes();
    T_CHECK(s.dense_bytes == INT64_C(7199094208) + 1323827200, "%" PRId64, s.dense_bytes);
    T_CHECK(s.embed_bytes == 1323827200, "%" PRId64, s.embed_bytes);
    T_CHECK(s.engram_bytes == INT64_C(202758032400), "%" PRId64, s.engram_bytes);
    T_CHECK(s.experts_bytes == INT64_C(288777830400), "%" PRId64, s.experts_bytes);
    T_CHECK(s.expert_bytes == 18800640, "%" PRId64, s.expert_bytes);
    T_CHECK(plumb__model_pairs(&s) == 15360 && plumb__model_token_experts(&s) == 240, "pairs");
    T_CHECK(s.layer_bytes[0] == 170055128 && s.layer_bytes[1] == 327577048 &&
                s.layer_bytes[20] == 181006040,
            "layers");
    /* 2 tables x 24 columns x (a block of codes + a block of scales), and 3 blocks of embedding. */
    T_CHECK(s.row_read_bytes == 2 * 24 * (4096 + 4096) + 3 * 4096, "%" PRId64, s.row_read_bytes);
}

/* docs/model.md section 8.1; the 40,960 are the Engram's norms, which are matrices there. */
static void macs(void) {
    enum { PLAIN = 377290752 - 212336640, KV = 5242880 + 65536, KV_ONE = 2686976, INDEX = 5406720 };
    plumb_model_sizes s = released_sizes();
    T_CHECK(s.expert_macs == 35389440 && s.head_macs == 661913600, "experts, head");
    T_CHECK(s.layer_macs[0] == PLAIN, "%" PRId64, s.layer_macs[0]);
    T_CHECK(s.layer_macs[1] == PLAIN + 157286400 + 40960, "%" PRId64, s.layer_macs[1]);
    T_CHECK(s.layer_macs[2] == PLAIN + KV + INDEX, "%" PRId64, s.layer_macs[2]);
    T_CHECK(s.layer_macs[20] == PLAIN + KV_ONE + INDEX, "%" PRId64, s.layer_macs[20]);
    T_CHECK(s.layer_macs[24] == PLAIN + INDEX, "%" PRId64, s.layer_macs[24]);
}

static void session(void) {
    plumb_model_sizes s = released_sizes();
    /* 40 rings of 128 rows of 528 bytes, three carries of 2 x 512 floats; 18 copies of them. */
    int64_t fixed = 40 * 128 * 528 + 3 * 2 * 512 * 4;
    /* Three caches of one row for two positions and one of a row for each, 288 + 68 bytes a row. */
    int64_t caches = (3 * 32768 + 65536) * (288 + 68);
    int64_t expected = 18 * fixed + caches + 4 * 65536 + 4 * 129280;
    T_CHECK(plumb__model_session_bytes(&s.config, 65536) == expected, "%" PRId64, expected);
    /* 890 bytes a position, docs/model.md section 0; a token's number on top. */
    int64_t more = plumb__model_session_bytes(&s.config, 2 << 16) - expected;
    T_CHECK(more == 65536 * (890 + 4), "%" PRId64, more);
}

/* ---- Working memory, beside what the network allocates ---------------------------------------- */

typedef struct counting_backend {
    plumb_backend base;
    int64_t bytes;
} counting_backend;

static void *count(plumb_backend *b, int64_t size) {
    ((counting_backend *)b)->bytes += size;
    return malloc((size_t)size);
}
static void release(plumb_backend *b, void *memory) {
    (void)b;
    free(memory);
}
static int64_t quantized(plumb_backend *b, int64_t rows, int64_t k) {
    (void)b;
    return rows * (13 * k + k / 2); /* AVX2's, the widest */
}

/* The plan counts what the workspace holds, and the inner values of experts, which a backend keeps. */
static void work(void) {
    static const plumb_backend_ops ops = {
        .allocate = count, .release = release, .quantized_bytes = quantized};
    plumb_model_sizes s = released_sizes();
    static const int64_t rows[] = {1, 256, 1024};
    for (int i = 0; i < 3; i++) {
        counting_backend backend = {.base = {.ops = &ops}};
        plumb_network network = {.config = &s.config,
                                 .backend = &backend.base,
                                 .top_k = s.config.index_topk,
                                 .pool_blocks = s.config.candidate_blocks};
        plumb_error err = {0};
        T_CHECK(plumb__workspace_reserve(&network, rows[i], &err) == PLUMB_OK, "%s: %s", err.field,
                err.found);
        int64_t planned = plumb__model_work_bytes(&s.config, rows[i]);
        T_CHECK(backend.bytes <= planned && (double)planned < 1.7 * (double)backend.bytes,
                "%" PRId64 " rows: %" PRId64 " planned, %" PRId64 " allocated", rows[i], planned,
                backend.bytes);
        plumb__workspace_free(&network);
    }
}

/* ---- The split ---------------------------------------------------------------------------------- */

static const int64_t giga = 1000000000;

static void system_share(void) {
    static const struct {
        int64_t memory, system; /* MB */
    } rows[] = {{128000, 16000}, {64000, 8000}, {32000, 4000}, {16000, 4000}, {6000, 3000}, {1000, 500}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        T_CHECK(plumb__budget_system_bytes(rows[i].memory * 1000000) == rows[i].system * 1000000,
                "%" PRId64 " MB", rows[i].memory);
}

static void split(void) {
    plumb_model_sizes s = released_sizes();
    plumb_error err = {0};
    plumb_budget b;
    plumb_budget_request request = {.memory = 128 * giga, .context = 65536, .chunk = 2048};
    T_CHECK(plumb__budget_split(&s, &request, &b, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    /* Codes and scales end inside pages: up to two pages more, in whole pages. */
    int64_t page = PLUMB_READ_ALIGNMENT, slot = (18800640 + 2 * page + page - 1) / page * page;
    int64_t left = 112 * giga - 8522921408 - plumb__model_session_bytes(&s.config, 65536) -
                   plumb__model_work_bytes(&s.config, 2048);
    T_CHECK(b.slot_bytes == slot && b.slots == left / slot && b.second_slots == 0 && b.unused == 0,
            "%" PRId64 " slots of %" PRId64, b.slots, b.slot_bytes);
    T_CHECK(b.system + b.dense + b.session + b.work + b.slots * b.slot_bytes <= b.memory, "more than all");

    /* A device holds weights and session; memory behind it holds experts only. */
    request.device_memory = 141 * giga;
    T_CHECK(plumb__budget_split(&s, &request, &b, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    left += (141 - 112) * giga - 141 * giga / 16;
    T_CHECK(b.slots == left / slot && b.second_slots == 112 * giga / slot, "%" PRId64 " and %" PRId64,
            b.slots, b.second_slots);

    /* No more slots than experts. */
    request = (plumb_budget_request){.memory = 512 * giga, .context = 65536, .chunk = 2048};
    T_CHECK(plumb__budget_split(&s, &request, &b, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    T_CHECK(b.slots == 15360 && b.unused > 0, "%" PRId64 " slots", b.slots);
    T_CHECK(b.system + b.dense + b.session + b.work + b.slots * b.slot_bytes + b.unused == b.memory,
            "not all of it");
    request.device_memory = 141 * giga;
    T_CHECK(plumb__budget_split(&s, &request, &b, &err) == PLUMB_OK && b.slots + b.second_slots == 15360,
            "%" PRId64 " and %" PRId64, b.slots, b.second_slots);
}

static void chosen(void) {
    plumb_model_sizes s = released_sizes();
    plumb_error err = {0};
    plumb_budget b;
    static const struct {
        int64_t memory, context, chunk, expected_context, expected_chunk;
    } rows[] = {
        {128, 0, 0, 65536, 8192},
        {128, 1000, 0, 1000, 1000},   /* no chunk is longer than the context */
        {128, 1000, 5000, 1000, 1000},
        {16, 0, 0, 65536, 256},       /* an eighth of 12 - 8.63 GB, at 0.98 MB a row */
        {16, 0, 77, 65536, 77},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plumb_budget_request request = {
            .memory = rows[i].memory * giga, .context = rows[i].context, .chunk = rows[i].chunk};
        T_CHECK(plumb__budget_split(&s, &request, &b, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
        T_CHECK(b.context == rows[i].expected_context && b.chunk == rows[i].expected_chunk,
                "%zu: context %" PRId64 ", chunk %" PRId64, i, b.context, b.chunk);
    }
}

/* What does not fit is refused before anything runs, with the sum and its parts. */
static void refused(void) {
    plumb_model_sizes s = released_sizes();
    static const struct {
        int64_t memory, device, context, chunk;
        const char *field, *found, *part;
    } rows[] = {
        {8, 0, 4096, 128, "memory", "8.000 GB, 4.000 of it usable", "dense weights 8.523"},
        {16, 0, 16384, 8192, "memory", "16.000 GB, 12.000 of it usable", "a chunk of 8192 rows 8."},
        {16, 0, 1 << 22, 128, "memory", "16.000 GB, 12.000 of it usable", "session of 4194304 positions 3.799"},
        {128, 9, 4096, 128, "device memory", "9.000 GB, 8.000 of it usable", "12 expert slots 0.226"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plumb_budget_request request = {.memory = rows[i].memory * giga,
                                        .device_memory = rows[i].device * giga,
                                        .context = rows[i].context,
                                        .chunk = rows[i].chunk};
        plumb_budget b = {.slots = -1};
        plumb_error err = {0};
        plumb_status status = plumb__budget_split(&s, &request, &b, &err);
        T_CHECK(status == PLUMB_ERROR_MEMORY && b.slots == -1, "%zu: status %d", i, (int)status);
        T_CHECK(!strcmp(err.field, rows[i].field) && !strcmp(err.found, rows[i].found), "%zu: %s %s", i,
                err.field, err.found);
        T_CHECK(strstr(err.expected, rows[i].part) != NULL, "%zu: %s", i, err.expected);
    }
    /* Twelve slots, and not one byte less. */
    plumb_budget b;
    plumb_error err = {0};
    int64_t page = PLUMB_READ_ALIGNMENT, slot = (18800640 + 2 * page + page - 1) / page * page;
    int64_t needed = 8522921408 + plumb__model_session_bytes(&s.config, 4096) +
                     plumb__model_work_bytes(&s.config, 128) + 12 * slot;
    plumb_budget_request request = {.memory = needed + 4 * giga, .context = 4096, .chunk = 128};
    T_CHECK(plumb__budget_split(&s, &request, &b, &err) == PLUMB_OK && b.slots == 12, "%s", err.expected);
    request.memory--;
    T_CHECK(plumb__budget_split(&s, &request, &b, &err) == PLUMB_ERROR_MEMORY, "a byte less");
}

T_MAIN({"bytes", bytes}, {"macs", macs}, {"session", session}, {"work", work},
       {"system_share", system_share}, {"split", split}, {"chosen", chosen}, {"refused", refused})
