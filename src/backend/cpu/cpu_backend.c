/* Life of the CPU backend: which kernels, which threads, which scratch memory. */
#include "backend/cpu/cpu_backend.h"

#include "arith/float_env.h"
#include "base/alloc.h"
#include "base/error.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static plumb_status choose_kernels(const char *level, const plumb_cpu_kernels **kernels,
                                   plumb_error *err) {
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int n = plumb__cpu_kernel_levels(levels);
    if (!level) {
        *kernels = levels[0];
        return PLUMB_OK;
    }
    for (int i = 0; i < n; i++)
        if (!strcmp(level, levels[i]->level)) {
            *kernels = levels[i];
            return PLUMB_OK;
        }
    char names[128] = "";
    for (int i = 0; i < n; i++) {
        if (i) strcat(names, ", ");
        strcat(names, levels[i]->level);
    }
    return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, "cpu level", -1, level,
                       "one this machine has: %s", names);
}

/* Grows a buffer without keeping its contents. */
static void *reserve(plumb_cpu_backend *cpu, plumb_cpu_buffer *buffer, int64_t bytes) {
    if (bytes > buffer->bytes) {
        plumb__free_aligned(buffer->memory);
        buffer->memory = plumb__alloc_aligned(bytes, 1);
        buffer->bytes = buffer->memory ? bytes : 0;
        if (!buffer->memory) plumb__cpu_fault(cpu, PLUMB_ERROR_MEMORY);
    }
    return buffer->memory;
}

void *plumb__cpu_scratch(plumb_cpu_backend *cpu, int thread, int64_t bytes) {
    return reserve(cpu, &cpu->scratch[thread], bytes);
}

void *plumb__cpu_work_buffer(plumb_cpu_backend *cpu, plumb_cpu_work which, int64_t bytes) {
    return reserve(cpu, &cpu->work[which], bytes);
}

void plumb__cpu_fault(plumb_cpu_backend *cpu, plumb_status status) {
    /* The first one: without memory, numbers mean nothing. */
    int none = PLUMB_OK;
    (void)atomic_compare_exchange_strong(&cpu->fault, &none, (int)status);
}

int64_t plumb__cpu_grain(int64_t cost) {
    enum { WORTH_WAKING = 32768 }; /* multiply-adds in the time it takes to wake a thread */
    return cost <= 0 ? WORTH_WAKING : 1 + WORTH_WAKING / cost;
}

static void cpu_close(plumb_backend *b) {
    plumb_cpu_backend *cpu = (plumb_cpu_backend *)b;
    if (cpu->pool && cpu->scratch)
        for (int t = 0; t < plumb__pool_threads(cpu->pool); t++)
            plumb__free_aligned(cpu->scratch[t].memory);
    for (int i = 0; i < PLUMB_WORK_COUNT; i++) plumb__free_aligned(cpu->work[i].memory);
    free(cpu->scratch);
    plumb__pool_destroy(cpu->pool);
    free(cpu);
}

static void *cpu_allocate(plumb_backend *b, int64_t bytes) {
    (void)b;
    return plumb__alloc_aligned(bytes, 1);
}

static void cpu_release(plumb_backend *b, void *memory) {
    (void)b;
    plumb__free_aligned(memory);
}

static void cpu_begin(plumb_backend *b) {
    plumb__float_env_enter(&((plumb_cpu_backend *)b)->float_env);
}

static void cpu_end(plumb_backend *b) {
    plumb__float_env_leave(((plumb_cpu_backend *)b)->float_env);
}

static plumb_status cpu_check(plumb_backend *b) {
    return (plumb_status)atomic_exchange(&((plumb_cpu_backend *)b)->fault, (int)PLUMB_OK);
}

/* Operations are done when their call returns. */
static void cpu_wait(plumb_backend *b) { (void)b; }

static int64_t cpu_memory_limit(plumb_backend *b) {
    (void)b;
    return 0;
}

static void cpu_copy(plumb_backend *b, const void *from, void *to, int64_t bytes) {
    (void)b;
    memcpy(to, from, (size_t)bytes);
}

static int64_t cpu_quantized_bytes(plumb_backend *b, int64_t rows, int64_t k) {
    return plumb__cpu_quantized_bytes((plumb_cpu_backend *)b, rows, k);
}

/* Scratch that threads keep is small, and that of a search is bounded by the context. */
static int64_t cpu_working_bytes(plumb_backend *b, int64_t rows, int64_t widest, int64_t places,
                                 int64_t inter) {
    int64_t act = (int64_t)sizeof(plumb_act), pointer = (int64_t)sizeof(void *);
    return rows * widest * (int64_t)sizeof(float) + 2 * places * inter * act +
           cpu_quantized_bytes(b, places, inter) + 3 * places * pointer;
}

static void *cpu_prepare(plumb_backend *b, const plumb_matrix *w, int64_t *bytes) {
    const plumb_cpu_kernels *kernels = ((plumb_cpu_backend *)b)->kernels;
    *bytes = kernels->prepared_bytes(w);
    void *notes = *bytes > 0 ? plumb__alloc_aligned(*bytes, 1) : NULL;
    if (notes) kernels->prepare(w, notes);
    return notes;
}

static void enter_float_env(void) {
    uint64_t unused;
    plumb__float_env_enter(&unused);
}

static const plumb_backend_ops cpu_ops = {
    .name = "cpu",
    .close = cpu_close,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .begin = cpu_begin,
    .end = cpu_end,
    .prepare = cpu_prepare,
    .wait = cpu_wait,
    .check = cpu_check,
    .memory_limit = cpu_memory_limit,
    .copy = cpu_copy,
    .working_bytes = cpu_working_bytes,
    .quantized_bytes = cpu_quantized_bytes,
    .quantize = plumb__cpu_quantize,
    .linear_quantized = plumb__cpu_linear_quantized,
    .linear = plumb__cpu_linear,
    .rms_norm = plumb__cpu_rms_norm,
    .rotate = plumb__cpu_rotate,
    .hc_mix = plumb__cpu_hc_mix,
    .hc_collapse = plumb__cpu_hc_collapse,
    .hc_update = plumb__cpu_hc_update,
    .pack_window = plumb__cpu_pack_window,
    .pack_compressed = plumb__cpu_pack_compressed,
    .pack_index = plumb__cpu_pack_index,
    .compress_pairs = plumb__cpu_compress_pairs,
    .attention = plumb__cpu_attention,
    .index_weights = plumb__cpu_index_weights,
    .index_select = plumb__cpu_index_select,
    .route = plumb__cpu_route,
    .experts = plumb__cpu_experts,
    .experts_sum = plumb__cpu_experts_sum,
    .engram_gate = plumb__cpu_engram_gate,
};

plumb_status plumb__cpu_backend_create(int threads, const char *level, plumb_backend **backend,
                                       const char **chosen, plumb_error *err) {
    plumb_status status = plumb__float_env_self_test(err);
    if (status != PLUMB_OK) return status;
    plumb_cpu_backend *cpu = calloc(1, sizeof *cpu);
    if (!cpu) return plumb__fail_memory(err, "backend", sizeof *cpu);
    cpu->base.ops = &cpu_ops;
    status = choose_kernels(level, &cpu->kernels, err);
    if (status == PLUMB_OK) status = plumb__pool_create(threads, enter_float_env, &cpu->pool, err);
    if (status == PLUMB_OK) {
        cpu->scratch = calloc((size_t)threads, sizeof *cpu->scratch);
        if (!cpu->scratch) status = plumb__fail_memory(err, "scratch", (size_t)threads * 16);
    }
    if (status != PLUMB_OK) {
        cpu_close(&cpu->base);
        return status;
    }
    *chosen = cpu->kernels->level;
    *backend = &cpu->base;
    return PLUMB_OK;
}
