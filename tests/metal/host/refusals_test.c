/* Machines that the Metal backend does not run on: each is refused with the reason, and nothing of the
 * attempt is left. */
#include "metal/host/bench.h"
#include "backend/metal/metal_kernels.h"

#include "t.h"

typedef void (*change)(fake_metal_options *o);

static void absent(fake_metal_options *o) { o->absent = true; }
static void older_family(fake_metal_options *o) { o->metal3 = false; }
static void own_memory(fake_metal_options *o) { o->unified_memory = false; }
static void macos_14(fake_metal_options *o) { o->residency_sets = false; }
static void small_threadgroups(fake_metal_options *o) { o->threadgroup_bytes = 16384; }
static void few_threads(fake_metal_options *o) { o->max_threads = 128; }
static void other_language(fake_metal_options *o) { o->compile_error = "unknown type name 'half'"; }
static void no_such_kernel(fake_metal_options *o) { o->missing_kernel = "rotate"; }
static void no_pipeline(fake_metal_options *o) { o->refused_kernel = "route"; }
static void other_division(fake_metal_options *o) { o->wrong_kernel = "hc_mix"; }

static const struct {
    change change;
    const char *field, *found, *expected;
} refusals[] = {
    {absent, "metal", "no Metal device", "a Mac with an Apple GPU"},
    {older_family, "fake M2", "an older GPU family", "one that supports Metal 3"},
    {own_memory, "fake M2", "memory of its own", "a GPU that shares the processor's memory"},
    {macos_14, "fake M2", "a system without residency sets", "macOS 15 or later"},
    {small_threadgroups, "fake M2", "16384 bytes of threadgroup memory", "at least 32768"},
    {few_threads, "copy", "groups of 128 threads", "at least 256"},
    {other_language, "kernels", "unknown type name 'half'", "a text that this system compiles"},
    {no_such_kernel, "rotate", "no function of that name", "a kernel that this system compiles"},
    {no_pipeline, "route", NULL, "a kernel that this system compiles"},
    {other_division, "self test of metal: operation hc_mix, kernel hc_mix, element", NULL, NULL},
};

static plumb_error refusal(const fake_metal_options *options) {
    fake_metal_configure(options);
    plumb_backend *b = NULL;
    plumb_error err = {0};
    plumb_status status = plumb__metal_backend_create(&b, &err);
    T_CHECK(status == PLUMB_ERROR_UNSUPPORTED && err.status == status, "%s",
            plumb_status_name(status));
    T_CHECK(b == NULL, "a backend in spite of all");
    if (b) b->ops->close(b);
    return err;
}

static void machines(void) {
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        fake_metal_options options = fake_metal_defaults();
        options.name = "fake M2";
        refusals[i].change(&options);
        plumb_error err = refusal(&options);
        T_CHECK(!strcmp(err.field, refusals[i].field), "%s", err.field);
        T_CHECK(!refusals[i].found || !strcmp(err.found, refusals[i].found), "%s", err.found);
        T_CHECK(!refusals[i].expected || !strcmp(err.expected, refusals[i].expected), "%s",
                err.expected);
        bench_nothing_left(refusals[i].field);
    }
}

/* The lowest bit of a kernel's results, except where they are rounded before they are seen: of the inner
 * activations, which are quantised, a factor of two. */
static int64_t bit_that_shows(plumb_metal_kernel kernel) {
    return kernel == KERNEL_EXPERTS_GATE_UP ? 7 : 0;
}

/* A kernel of which one bit is wrong: the self test names it. */
static void wrong_kernels(void) {
    for (int k = 0; k < KERNEL_COUNT; k++) {
        const char *name = plumb__metal_kernel_forms[k].name;
        fake_metal_options options = fake_metal_defaults();
        options.wrong_kernel = name;
        options.wrong_bit = bit_that_shows((plumb_metal_kernel)k);
        plumb_error err = refusal(&options);
        const char *kernels = strstr(err.field, ", kernel ");
        T_CHECK(kernels && strstr(kernels, name), "%s: %s", name, err.field);
        bench_nothing_left(name);
    }
}

/* The host asks for safe maths, or this compiler would not take its text. */
static void strict_compiler(void) {
    fake_metal_options options = fake_metal_defaults();
    options.compiler_is_strict = true;
    bench_close(bench_open(&options));
}

/* Without memory for buffers opening fails as such, wherever it happens. */
static void no_memory(void) {
    for (int64_t bytes = 1; bytes < 1 << 23; bytes *= 8) {
        fake_metal_options options = fake_metal_defaults();
        options.memory_bytes = (uint64_t)bytes;
        fake_metal_configure(&options);
        plumb_backend *b = NULL;
        plumb_error err = {0};
        plumb_status status = plumb__metal_backend_create(&b, &err);
        bool enough = bytes > 1 << 20;
        T_CHECK(status == (enough ? PLUMB_OK : PLUMB_ERROR_MEMORY), "%" PRId64 " bytes: %s", bytes,
                plumb_status_name(status));
        if (b) b->ops->close(b);
        bench_nothing_left("no memory");
    }
}

/* A GPU that fails while it is tested is told from one with other bits. */
static void broken_device(void) {
    static const struct {
        int64_t code;
        plumb_status status;
    } failures[] = {{8 /* out of memory */, PLUMB_ERROR_MEMORY}, {2 /* timeout */, PLUMB_ERROR_IO}};
    for (int i = 0; i < 2; i++)
        for (int64_t commit = 1; commit <= 31; commit += 10) {
            fake_metal_options options = fake_metal_defaults();
            options.fail_commit = commit;
            options.fail_code = failures[i].code;
            fake_metal_configure(&options);
            plumb_backend *b = NULL;
            plumb_error err = {0};
            plumb_status status = plumb__metal_backend_create(&b, &err);
            T_CHECK(status == failures[i].status, "commit %" PRId64 ": %s", commit, err.field);
            if (b) b->ops->close(b);
            bench_nothing_left("broken");
        }
}

T_MAIN({"machines", machines}, {"wrong_kernels", wrong_kernels},
       {"strict_compiler", strict_compiler}, {"no_memory", no_memory},
       {"broken_device", broken_device})
