/* Watched kernels: those whose accesses are in order run under any schedule, the others are refused under
 * every one, also where their results would be right. */
#include "emulator.h"

#include "t.h"

enum { GROUPS = 2, THREADS = 64, SEEDS = 20 };

static bool run(const char *kernel, uint64_t seed, char fault[EMULATED_FAULT_BYTES]) {
    uint32_t x[GROUPS * THREADS], total = 0;
    for (uint32_t i = 0; i < GROUPS * THREADS; i++) x[i] = i;
    emulated_dispatch d = {.kernel = emulated_kernel_find(kernel),
                           .buffer = {x, x, &total},
                           .buffer_bytes = {sizeof x, sizeof x, sizeof total},
                           .threadgroup_bytes = {THREADS * sizeof x[0], 16},
                           .groups = {GROUPS, 1, 1},
                           .threads = {THREADS, 1, 1},
                           .seed = seed,
                           .host_threads = 2};
    T_CHECK(d.kernel && d.kernel->is_watched, "%s", kernel);
    return d.kernel && emulated_run(&d, fault);
}

static void in_order(void) {
    static const char *const kernels[] = {"two_barriers", "all_read", "lanes", "through_the_device",
                                          "counted"};
    char fault[EMULATED_FAULT_BYTES] = "";
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
        for (uint64_t seed = 0; seed < SEEDS; seed++)
            T_CHECK(run(kernels[k], seed, fault), "%s", fault);
}

static void not_in_order(void) {
    static const struct {
        const char *kernel, *memory; /* and of what the fault must speak */
        const char *one, *other;     /* what is done, in whichever order the two came */
    } cases[] = {
        {"read_at_once", "threadgroup(0)", "reads", "writes"},
        {"read_behind_a_vote", "threadgroup(0)", "reads", NULL},
        {"written_while_read", "threadgroup(0)", "reads", "writes"},
        {"written_while_many_read", "threadgroup(0)", "reads", "writes"},
        {"written_by_a_reader", "threadgroup(0)", "reads", "writes"},
        {"written_twice", "threadgroup(0)", "writes", NULL},
        {"wrong_flag", "threadgroup(0)", "reads", NULL},
        {"wrong_simd_flag", "threadgroup(0)", "reads", NULL},
        {"wrong_device_flag", "buffer(0)", "reads", "writes"},
        {"barrier_of_lanes_only", "threadgroup(0)", "reads", "writes"},
        {"groups_write", "buffer(0)", "writes", NULL},
        {"groups_read", "buffer(0)", "reads", "writes"},
        {"half_a_word", "threadgroup(0)", "reads", "writes"},
        {"not_cleared_yet", "threadgroup(1)", "updates", "writes"},
        {"not_counted_yet", "threadgroup(1)", "updates", "reads"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            char fault[EMULATED_FAULT_BYTES] = "";
            T_CHECK(!run(cases[c].kernel, seed, fault), "%s, seed %d", cases[c].kernel, (int)seed);
            T_CHECK(strstr(fault, cases[c].memory) && strstr(fault, "nothing orders the two"), "%s: %s",
                    cases[c].kernel, fault);
            T_CHECK(strstr(fault, cases[c].one) || (cases[c].other && strstr(fault, cases[c].other)),
                    "%s: %s", cases[c].kernel, fault);
        }
}

T_MAIN({"in_order", in_order}, {"not_in_order", not_in_order})
