/* The emulator: right kernels give their results under any schedule, wrong ones are caught. */
#include "emulator.h"

#include "t.h"

#include <stdlib.h>

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

static void flat(void) {
    float x[1000], y[1000] = {0};
    uint32_t n = 1000;
    for (int i = 0; i < 1000; i++) x[i] = (float)i;
    emulated_dispatch d = grid("scale", 4, 256);
    bind(&d, 0, x, sizeof x);
    bind(&d, 1, &n, sizeof n);
    bind(&d, 2, y, sizeof y);
    char fault[256];
    T_CHECK(emulated_run(&d, fault), "%s", fault);
    for (int i = 0; i < 1000; i++) T_CHECK(y[i] == x[i] * 2.0f + 1.0f, "y[%d] = %g", i, (double)y[i]);
}

static void reverse(void) {
    for (uint64_t seed = 0; seed < 10; seed++) {
        float x[512];
        for (int i = 0; i < 512; i++) x[i] = (float)i;
        emulated_dispatch d = grid("reverse_twice", 2, 256);
        bind(&d, 0, x, sizeof x);
        d.threadgroup_bytes[0] = 1024;
        d.seed = seed;
        char fault[256];
        T_CHECK(emulated_run(&d, fault), "%s", fault);
        for (int i = 0; i < 512; i++) T_CHECK(x[i] == 2.0f * (float)i + 1.0f, "x[%d] = %g", i, (double)x[i]);
    }
}

T_MAIN({"flat", flat}, {"reverse", reverse})
