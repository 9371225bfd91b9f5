/* The emulator: right kernels give their results under any schedule, wrong ones are caught and named. */
#include "emulator.h"

#include "t.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 16384, SEEDS = 20 }; /* a multiple of any page */

/* A page between two that may not be touched. */
static uint8_t *guarded_page(void) {
    uint8_t *at = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    T_CHECK(at != MAP_FAILED && mprotect(at + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0, "no memory");
    return at + PAGE;
}
static void free_guarded_page(uint8_t *page) { munmap(page - PAGE, 3 * PAGE); }

static emulated_dispatch grid(const char *kernel, uint32_t groups, uint32_t threads) {
    emulated_dispatch d = {.kernel = emulated_kernel_find(kernel),
                           .groups = {groups, 1, 1},
                           .threads = {threads, 1, 1}};
    T_CHECK(d.kernel, "no kernel %s", kernel);
    return d;
}

static void bind(emulated_dispatch *d, int index, void *memory, size_t bytes) {
    d->buffer[index] = memory;
    d->buffer_bytes[index] = (int64_t)bytes;
}

static void must_run(const emulated_dispatch *d) {
    char fault[EMULATED_FAULT_BYTES];
    const bool ok = emulated_run(d, fault);
    T_CHECK(ok && !fault[0], "%s", fault);
}

/* Fails, and says each of the words (separated by '|') in that order. */
static void must_fail(const emulated_dispatch *d, const char *words) {
    char fault[EMULATED_FAULT_BYTES], list[EMULATED_FAULT_BYTES];
    const bool ok = emulated_run(d, fault);
    T_CHECK(!ok, "expected: %s", words);
    if (ok) return;
    snprintf(list, sizeof list, "%s", words);
    const char *at = fault;
    for (char *word = strtok(list, "|"); word && at; word = strtok(NULL, "|")) {
        at = strstr(at, word);
        T_CHECK(at, "'%s' is not in: %s", word, fault);
    }
}

/* ---- right kernels ----------------------------------------------------------------------------- */

static void flat(void) {
    float x[1000], y[1024];
    uint32_t n = 1000;
    for (int i = 0; i < 1000; i++) x[i] = (float)i;
    for (int i = 0; i < 1024; i++) y[i] = -7.0f;
    emulated_dispatch d = grid("scale", 4, 256);
    bind(&d, 0, x, sizeof x);
    bind(&d, 1, &n, sizeof n);
    bind(&d, 2, y, sizeof y);
    must_run(&d);
    for (int i = 0; i < 1024; i++) {
        const float expected = i < 1000 ? x[i] * 2.0f + 1.0f : -7.0f;
        T_CHECK(y[i] == expected, "y[%d] = %g", i, (double)y[i]);
    }
}

/* The tree by hand: level by level, the upper half onto the lower. */
static float tree(const float *x) {
    float a[32];
    memcpy(a, x, sizeof a);
    for (int d = 16; d > 0; d /= 2)
        for (int i = 0; i < d; i++) a[i] += a[i + d];
    return a[0];
}

static void lane_sums(void) {
    float x[8 * 96], y[8 * 3];
    for (int i = 0; i < 8 * 96; i++) x[i] = 1.0f / (float)(3 * i + 1);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        emulated_dispatch d = grid("lane_sums", 8, 96);
        d.seed = seed;
        bind(&d, 0, x, sizeof x);
        bind(&d, 1, y, sizeof y);
        memset(y, 0, sizeof y);
        must_run(&d);
        for (int i = 0; i < 24; i++) T_CHECK(y[i] == tree(x + 32 * i), "y[%d] = %a", i, (double)y[i]);
    }
}

/* Runs a kernel that reverses n floats of a group in threadgroup memory; how many are as they should be. */
static int reverse(const char *kernel, uint32_t n, uint64_t seed, float factor, float plus) {
    float x[512];
    int right = 0;
    for (uint32_t i = 0; i < n; i++) x[i] = (float)i;
    emulated_dispatch d = grid(kernel, 1, n);
    bind(&d, 0, x, n * sizeof x[0]);
    d.threadgroup_bytes[0] = (int64_t)(n * sizeof x[0]);
    d.seed = seed;
    must_run(&d);
    for (uint32_t i = 0; i < n; i++) right += x[i] == (float)i * factor + plus;
    return right;
}

static void barriers(void) {
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (uint32_t n = 4; n <= 512; n *= 2) {
            const int right = reverse("reverse_twice", n, seed, 2.0f, 1.0f);
            T_CHECK(right == (int)n, "%d of %u with seed %d", right, n, (int)seed);
        }
}

static void atomics(void) {
    uint32_t x[1024], histogram[8] = {0}, largest = 0, bits = 0;
    for (uint32_t i = 0; i < 1024; i++) {
        x[i] = i * 2654435761u >> 20;
        histogram[x[i] % 8]++;
        largest = x[i] > largest ? x[i] : largest;
        bits |= 1u << (x[i] % 32);
    }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint32_t counts[11] = {0};
        emulated_dispatch d = grid("count_values", 4, 256);
        d.seed = seed;
        bind(&d, 0, x, sizeof x);
        bind(&d, 1, counts, sizeof counts);
        d.threadgroup_bytes[0] = 32;
        must_run(&d);
        T_CHECK(!memcmp(counts, histogram, sizeof histogram), "histogram with seed %d", (int)seed);
        T_CHECK(counts[8] == largest, "%u", counts[8]);
        T_CHECK(counts[9] == bits, "%x", counts[9]);
        T_CHECK(counts[10] == 3 * 1024, "%u", counts[10]);
    }
}

static void simd_functions(void) {
    uint32_t x[32], y[320], votes = 0, largest = 0, smallest = UINT32_MAX;
    for (uint32_t i = 0; i < 32; i++) {
        x[i] = (i * 37 + 11) % 101;
        votes |= (uint32_t)(x[i] % 3 == 0) << i;
        largest = x[i] > largest ? x[i] : largest;
        smallest = x[i] < smallest ? x[i] : smallest;
    }
    bool has_40 = false;
    for (int i = 0; i < 32; i++) has_40 |= x[i] == 40;
    emulated_dispatch d = grid("simd_functions", 1, 32);
    bind(&d, 0, x, sizeof x);
    bind(&d, 1, y, sizeof y);
    must_run(&d);
    for (uint32_t i = 0; i < 32; i++) {
        const uint32_t expected[10] = {x[31 - i], i + 3 < 32 ? x[i + 3] : x[i], i >= 5 ? x[i - 5] : x[i],
                                       x[i ^ 9], x[7], votes, (uint32_t)has_40 + 2, largest, smallest,
                                       x[i ^ 1] * 100 + (i ^ 1)};
        for (int f = 0; f < 10; f++)
            T_CHECK(y[32 * f + (int)i] == expected[f], "function %d, lane %u: %u, not %u", f, i,
                    y[32 * f + (int)i], expected[f]);
    }
}

static void positions(void) {
    const uint32_t threads[3] = {5, 3, 4}, groups[3] = {2, 3, 1};
    const uint32_t all[3] = {10, 9, 4};
    static uint32_t y[10 * 9 * 4][8];
    emulated_dispatch d = grid("positions", 1, 1);
    memcpy(d.threads, threads, sizeof threads);
    memcpy(d.groups, groups, sizeof groups);
    bind(&d, 0, y, sizeof y);
    must_run(&d);
    for (uint32_t z = 0; z < all[2]; z++)
        for (uint32_t j = 0; j < all[1]; j++)
            for (uint32_t i = 0; i < all[0]; i++) {
                const uint32_t index = (z % 4 * 3 + j % 3) * 5 + i % 5;
                const uint32_t expected[8] = {i % 5 + 100 * (j % 3) + 10000 * (z % 4), index,
                                              i / 5 + 100 * (j / 3) + 10000 * (z / 4), 40305,
                                              302, index / 32, 2, 1};
                T_CHECK(!memcmp(y[(z * 9 + j) * 10 + i], expected, sizeof expected), "%u, %u, %u", i, j, z);
            }
}

/* Subnormals read and written as zero of their sign, no contraction: docs/arithmetic.md section 2. */
static void arithmetic(void) {
    static const struct {
        uint32_t x, sum, product, fused, root, quotient;
    } cases[] = {
        /* x: x + x, x * 0.5, fma(x, x, -1), sqrt(x), 1 / x */
        {0x3F800000, 0x40000000, 0x3F000000, 0x00000000, 0x3F800000, 0x3F800000},
        {0x40000000, 0x40800000, 0x3F800000, 0x40400000, 0x3FB504F3, 0x3F000000},
        {0x40400000, 0x40C00000, 0x3FC00000, 0x41000000, 0x3FDDB3D7, 0x3EAAAAAB},
        {0x00400000, 0x00000000, 0x00000000, 0xBF800000, 0x00000000, 0x7F800000}, /* reads as 0 */
        {0x00800000, 0x01000000, 0x00000000, 0xBF800000, 0x20000000, 0x7E800000}, /* half is flushed */
        {0x80800000, 0x81000000, 0x80000000, 0xBF800000, 0x7FC00000, 0xFE800000}, /* keeping its sign */
    };
    enum { N = sizeof cases / sizeof cases[0] };
    uint32_t x[N], y[N][6];
    for (int i = 0; i < N; i++) x[i] = cases[i].x;
    emulated_dispatch d = grid("arithmetic", 1, N);
    bind(&d, 0, x, sizeof x);
    bind(&d, 1, y, sizeof y);
    must_run(&d);
    for (int i = 0; i < N; i++) {
        const uint32_t expected[5] = {cases[i].sum, cases[i].product, cases[i].fused, cases[i].root,
                                      cases[i].quotient};
        for (int f = 0; f < 5; f++) {
            const bool both_nan = (expected[f] & 0x7FFFFFFF) > 0x7F800000 && (y[i][f] & 0x7FFFFFFF) > 0x7F800000;
            T_CHECK(y[i][f] == expected[f] || both_nan, "case %d, %d: 0x%08X, not 0x%08X", i, f, y[i][f],
                    expected[f]);
        }
    }
    /* (1 + 2^-12)^2 - (1 + 2^-11) is 0 when the product is rounded, 2^-24 when it is not. */
    x[0] = 0x3F800800;
    d.threads[0] = 1;
    must_run(&d);
    T_CHECK(y[0][5] == 0, "contracted: 0x%08X", y[0][5]);
}

/* The order of threads and groups comes from the seed alone, and lets nobody pass a barrier early. */
static void order(void) {
    enum { GROUPS = 4, THREADS = 64, N = GROUPS * THREADS };
    static uint32_t when[2][3 * N];
    int other_first_group = 0, ascending[3] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (int again = 0; again < 2; again++) {
            uint32_t clock = 0;
            emulated_dispatch d = grid("arrivals", GROUPS, THREADS);
            d.seed = seed;
            bind(&d, 0, when[again], sizeof when[0]);
            bind(&d, 1, &clock, sizeof clock);
            must_run(&d);
            T_CHECK(clock == 3 * N, "%u arrivals", clock);
        }
        T_CHECK(!memcmp(when[0], when[1], sizeof when[0]), "another order with seed %d", (int)seed);
        other_first_group += when[0][0] >= THREADS;
        for (int step = 0; step < 3; step++)
            for (int i = 0; i < N - 1; i++) {
                const uint32_t *at = &when[0][step * N + i];
                ascending[step] += at[0] < at[1];
                for (int j = 0; step == 1 && j < THREADS; j++)
                    T_CHECK(at[0] > when[0][i / THREADS * THREADS + j], "thread %d passed a barrier early", i);
            }
    }
    T_CHECK(other_first_group > SEEDS / 2, "group 0 was first %d times", SEEDS - other_first_group);
    for (int step = 0; step < 3; step++) /* half of all neighbours, if drawn */
        T_CHECK(ascending[step] > SEEDS * N * 4 / 10 && ascending[step] < SEEDS * N * 6 / 10,
                "step %d: %d of %d in order", step, ascending[step], SEEDS * N);
}

/* Many groups on several threads: the same results, and one fault of many. */
static void host_threads(void) {
    enum { N = 64 * 96 };
    static float x[N], y[N / 32];
    for (int i = 0; i < N; i++) x[i] = 1.0f / (float)(3 * i + 1);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        emulated_dispatch d = grid("lane_sums", 64, 96);
        d.seed = seed;
        d.host_threads = 1 + (int)seed % 4;
        bind(&d, 0, x, sizeof x);
        bind(&d, 1, y, sizeof y);
        memset(y, 0, sizeof y);
        must_run(&d);
        for (int i = 0; i < N / 32; i++) T_CHECK(y[i] == tree(x + 32 * i), "y[%d] = %a", i, (double)y[i]);
        d.kernel = emulated_kernel_find("skipped_barrier");
        must_fail(&d, "kernel skipped_barrier, group (|which thread 5 does not reach");
    }
}

/* ---- wrong kernels ----------------------------------------------------------------------------- */

static void missing_barriers(void) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int right = reverse("missing_barrier", 64, seed, -1.0f, 63.0f);
        T_CHECK(right < 60, "missing_barrier: %d of 64 right with seed %d", right, (int)seed);
        right = reverse("missing_second_barrier", 64, seed, -2.0f, 126.0f);
        T_CHECK(right < 60, "missing_second_barrier: %d of 64 right with seed %d", right, (int)seed);
    }
}

static void meetings(void) {
    static const struct {
        const char *kernel, *fault;
    } cases[] = {
        {"skipped_barrier", "waits at the barrier of line |which thread 5 does not reach: it has returned"},
        {"two_barriers", "is at line |while thread |waits at line |diverged code"},
        {"barrier_in_loop", "waits at the barrier of line |which thread 0 does not reach: it has returned"},
        {"diverged_simd", "waits at simd_shuffle_down of line |does not reach: it has returned"},
        {"diverged_calls", "is at line |diverged code"},
        {"diverged_helper", "is at line |diverged code"},
        {"lane_outside", "thread 31: simd_shuffle at line |of lane 32, which there is not"},
        {"uneven_distance", "simd_shuffle_down at line |with "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            float x[64] = {0};
            emulated_dispatch d = grid(cases[i].kernel, 1, strcmp(cases[i].kernel, "lane_outside") ? 64 : 32);
            d.seed = seed;
            bind(&d, 0, x, sizeof x);
            must_fail(&d, cases[i].fault);
        }
    barriers(); /* nothing is left of them */
}

static void threadgroup_memory(void) {
    static const struct {
        int32_t at;
        uint32_t read;
        const char *fault; /* writing is always seen, reading in half the groups */
    } cases[] = {
        {16, 0, "threadgroup(0)|64"}, {-1, 0, "threadgroup(0)|-4"},
        {100, 0, "threadgroup(0)|400"}, {-50, 0, "threadgroup(0)|-200"},
        {16, 1, "outside threadgroup(0), byte 64 of 64"},
        {-1, 1, "outside threadgroup(0), byte -4 of 64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int caught = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            float x[1] = {0};
            int32_t at = cases[i].at;
            uint32_t read = cases[i].read;
            emulated_dispatch d = grid("threadgroup_access", 1, 8);
            d.seed = seed;
            d.threadgroup_bytes[0] = 64;
            bind(&d, 0, x, sizeof x);
            bind(&d, 1, &at, sizeof at);
            bind(&d, 2, &read, sizeof read);
            char fault[EMULATED_FAULT_BYTES];
            if (read && emulated_run(&d, fault)) {
                T_CHECK(x[0] != x[0], "read %g outside", (double)x[0]);
                continue;
            }
            must_fail(&d, cases[i].fault);
            caught++;
        }
        T_CHECK(caught >= (cases[i].read ? 3 : SEEDS), "case %d: caught %d of %d", (int)i, caught, SEEDS);
    }
}

static void device_memory(void) {
    uint8_t *page = guarded_page();
    static const struct {
        bool at_end;
        int32_t at;
        uint32_t read;
        const char *fault;
    } cases[] = {
        {true, 16, 0, "kernel device_access, group (0, 0, 0), thread 3: |outside buffer(0), byte 64 of 64"},
        {true, 16, 1, "thread 3: |outside buffer(0), byte 64 of 64"},
        {false, -1, 0, "thread 3: |outside buffer(0), byte -4 of 64"},
        {false, -1, 1, "thread 3: |outside buffer(0), byte -4 of 64"},
        {true, 3, 0, NULL},
        {true, 3, 1, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t at = cases[i].at;
        uint32_t read = cases[i].read;
        emulated_dispatch d = grid("device_access", 1, 8);
        bind(&d, 0, cases[i].at_end ? page + PAGE - 64 : page, 64);
        bind(&d, 1, &at, sizeof at);
        bind(&d, 2, &read, sizeof read);
        if (cases[i].fault) must_fail(&d, cases[i].fault);
        else must_run(&d);
    }
    free_guarded_page(page);
}

static void undefined_behaviour(void) {
    /* What to do, with which number, and the result or 0: undefined. */
    static const int32_t cases[][3] = {
        {0, 2, 3},          {0, 0, 0},           /* 7 / x */
        {1, 2, 28},         {1, 32, 0},  {1, -1, 0}, /* 7 << x */
        {2, 0x40E00000, 7}, {2, 0x7FC00000, 0}, {2, 0x4F000000, 0}, /* float to int: NaN, 2^31 */
        {3, 3, 3},          {3, 4, 0},   {3, -1, 0}, /* an array of four */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t x[3] = {cases[i][0], cases[i][1], 0};
        emulated_dispatch d = grid("undefined", 1, 1);
        bind(&d, 0, x, sizeof x);
        if (cases[i][2]) must_run(&d);
        else must_fail(&d, "kernel undefined, |thread 0: undefined behaviour at *(run_undefined+");
        T_CHECK(x[2] == cases[i][2], "case %d: %d", (int)i, (int)x[2]);
    }
    int32_t x[1] = {0};
    emulated_dispatch d = grid("endless", 1, 1);
    bind(&d, 0, x, sizeof x);
    must_fail(&d, "thread 0: its stack is full");
}

/* ---- what is bound ------------------------------------------------------------------------------- */

static void bindings(void) {
    float x[64] = {0};
    uint32_t n = 64;
    emulated_dispatch good = grid("scale", 1, 64), d = good;
    bind(&good, 0, x, sizeof x);
    bind(&good, 1, &n, sizeof n);
    bind(&good, 2, x, sizeof x);
    d = good, d.buffer[2] = NULL, must_fail(&d, "buffer(2), y: nothing is bound");
    d = good, d.buffer_bytes[1] = 3, must_fail(&d, "buffer(1), s: 3 bytes|one element of 4");
    d = good, d.buffer[0] = (char *)x + 2, must_fail(&d, "buffer(0), x: not aligned to 4");
    d = good, d.threads[0] = 1025, must_fail(&d, "1025 x 1 x 1 threads|at most 1024");
    d = good, d.threads[1] = d.threads[2] = UINT32_MAX, must_fail(&d, "at most 1024");
    d = good, d.groups[1] = 0, must_fail(&d, "without threads");
    d = good, d.groups[0] = d.groups[1] = 1u << 31, must_fail(&d, "too many groups");
    d = good, d.threadgroup_bytes[4] = 24, must_fail(&d, "threadgroup(4): 24 bytes");
    d = good, d.threadgroup_bytes[4] = d.threadgroup_bytes[5] = 32752, must_fail(&d, "threadgroup(5)");
    must_run(&good);
    d = grid("reverse_twice", 1, 64);
    bind(&d, 0, x, sizeof x);
    must_fail(&d, "threadgroup(0), t: no memory");
}

static void table(void) {
    const emulated_kernel *all;
    const int n = emulated_kernel_list(&all);
    T_CHECK(n > 10 && !strcmp(all[0].name, "scale"), "%d kernels", n);
    T_CHECK(!emulated_kernel_find("nothing"), "a kernel that there is not");
    const emulated_kernel *k = emulated_kernel_find("threadgroup_access");
    static const emulated_parameter expected[] = {
        {"x", EMULATED_DEVICE, 0, true, 4, 4},
        {"at", EMULATED_CONSTANT, 1, false, 4, 4},
        {"s", EMULATED_CONSTANT, 2, false, 4, 4},
        {"t", EMULATED_THREADGROUP, 0, true, 4, 4},
    };
    T_CHECK(k && k->n_parameters == 4, "parameters");
    for (int i = 0; k && i < 4; i++) {
        const emulated_parameter *p = &k->parameter[i], *e = &expected[i];
        T_CHECK(!strcmp(p->name, e->name) && p->space == e->space && p->index == e->index &&
                    p->writable == e->writable && p->element_bytes == e->element_bytes &&
                    p->alignment == e->alignment, "parameter %d, %s", i, p->name);
    }
    T_CHECK(!emulated_kernel_find("scale")->parameter[0].writable, "a const buffer");
}

static void source_text(void) {
    FILE *f = fopen(PROJECT_DIR "/tests/metal/emulator/samples.metal", "rb");
    T_CHECK(f, "samples.metal");
    if (!f) return;
    static char text[65536];
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    T_CHECK(n == strlen(emulated_source_text()) && !strcmp(text, emulated_source_text()), "another text");
}

T_MAIN({"flat", flat}, {"lane_sums", lane_sums}, {"barriers", barriers}, {"atomics", atomics},
       {"simd_functions", simd_functions}, {"positions", positions}, {"arithmetic", arithmetic},
       {"order", order}, {"host_threads", host_threads},
       {"missing_barriers", missing_barriers}, {"meetings", meetings},
       {"threadgroup_memory", threadgroup_memory}, {"device_memory", device_memory},
       {"undefined_behaviour", undefined_behaviour}, {"bindings", bindings}, {"table", table},
       {"source_text", source_text})
