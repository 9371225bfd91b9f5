/* A whole grid: what is bound is checked, then the groups run in an order that the seed decides. */
#include "crew.h"
#include "scheduler.h"

extern "C" {
#include "arith/float_env.h"
}

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace emulated {
namespace {

bool refuse(char *fault, const emulated_dispatch &d, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool refuse(char *fault, const emulated_dispatch &d, const char *format, ...) {
    char what[EMULATED_FAULT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(fault, EMULATED_FAULT_BYTES, "kernel %s: %s", d.kernel->name, what);
    return false;
}

bool check_argument(const emulated_dispatch &d, const emulated_parameter &p, char *fault) {
    if (p.space == EMULATED_THREADGROUP) {
        if (d.threadgroup_bytes[p.index] < p.element_bytes)
            return refuse(fault, d, "threadgroup(%d), %s: no memory", p.index, p.name);
        return true;
    }
    if (!d.buffer[p.index])
        return refuse(fault, d, "buffer(%d), %s: nothing is bound", p.index, p.name);
    if (d.buffer_bytes[p.index] < p.element_bytes)
        return refuse(fault, d, "buffer(%d), %s: %lld bytes, less than one element of %lld",
                      p.index, p.name, static_cast<long long>(d.buffer_bytes[p.index]),
                      static_cast<long long>(p.element_bytes));
    if (reinterpret_cast<uintptr_t>(d.buffer[p.index]) % static_cast<uintptr_t>(p.alignment))
        return refuse(fault, d, "buffer(%d), %s: not aligned to %lld bytes", p.index, p.name,
                      static_cast<long long>(p.alignment));
    return true;
}

bool check(const emulated_dispatch &d, char *fault) {
    uint64_t threads = 1, groups = 1;
    for (int i = 0; i < 3; i++) {
        if (d.threads[i] == 0 || d.groups[i] == 0)
            return refuse(fault, d, "a grid without threads: %u groups of %u in dimension %d",
                          d.groups[i], d.threads[i], i);
        threads = threads > EMULATED_MAX_THREADS ? threads : threads * d.threads[i];
        groups = groups > UINT32_MAX ? groups : groups * d.groups[i];
    }
    if (threads > EMULATED_MAX_THREADS)
        return refuse(fault, d, "%u x %u x %u threads in a group, at most %d", d.threads[0],
                      d.threads[1], d.threads[2], EMULATED_MAX_THREADS);
    if (groups > UINT32_MAX) return refuse(fault, d, "too many groups");
    int64_t bytes = 0;
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const int64_t own = d.threadgroup_bytes[i];
        if (own < 0 || own % 16 || own > EMULATED_MAX_THREADGROUP_BYTES - bytes)
            return refuse(fault, d,
                          "threadgroup(%d): %lld bytes, not a multiple of 16 or more than %d "
                          "in all",
                          i, static_cast<long long>(own), EMULATED_MAX_THREADGROUP_BYTES);
        bytes += own;
    }
    for (int i = 0; i < d.kernel->n_parameters; i++)
        if (!check_argument(d, d.kernel->parameter[i], fault)) return false;
    return true;
}

uint32_t gcd(uint32_t a, uint32_t b) {
    return b ? gcd(b, a % b) : a;
}

/* Groups in random order: a walk through them with a step prime to their number. */
class random_order {
  public:
    random_order(uint32_t n, uint64_t seed) : n(n), taken(0) {
        random_numbers random(seed);
        start = random.below(n);
        do step = random.below(n) + 1;
        while (gcd(step, n) != 1);
    }
    /* False: all are taken.  Several threads may ask. */
    bool take(uint32_t *group) {
        const uint64_t i = taken++;
        *group = static_cast<uint32_t>((start + i * step) % n);
        return i < n;
    }
    void stop() { taken = n; }

  private:
    uint32_t n, start, step;
    std::atomic<uint64_t> taken;
};

/* Runs groups until there are none, or one fails. */
void run_groups(const emulated_dispatch &d, random_order &order, std::atomic<bool> &failed,
                char *fault) {
    static thread_local scheduler host_thread;
    catch_signals();
    uint64_t saved;
    plumb__float_env_enter(&saved);
    char own_fault[EMULATED_FAULT_BYTES];
    if (d.kernel->is_watched) host_thread.races.begin_grid(d);
    for (uint32_t g; order.take(&g);) {
        const triple group = {g % d.groups[0], g / d.groups[0] % d.groups[1],
                              g / d.groups[0] / d.groups[1]};
        if (host_thread.run(d, group, d.seed * 0x9E3779B97F4A7C15u + g, own_fault)) continue;
        order.stop();
        if (!failed.exchange(true)) memcpy(fault, own_fault, sizeof own_fault);
    }
    plumb__float_env_leave(saved);
}

bool run(const emulated_dispatch &d, char *fault) {
    /* Below this, waking a thread takes longer than what it would do. */
    constexpr uint32_t WORTH_SHARING = 4096;
    static thread_local crew others;
    const uint32_t n = d.groups[0] * d.groups[1] * d.groups[2];
    random_order order(n, d.seed);
    std::atomic<bool> failed(false);
    if (d.host_threads > 1 && n > 1 && !d.kernel->is_watched &&
        uint64_t{n} * d.threads[0] * d.threads[1] * d.threads[2] >= WORTH_SHARING)
        others.run(d.host_threads - 1, [&] { run_groups(d, order, failed, fault); });
    else
        run_groups(d, order, failed, fault);
    return !failed;
}

} // namespace
} // namespace emulated

extern "C" bool emulated_run(const emulated_dispatch *dispatch, char fault[EMULATED_FAULT_BYTES]) {
    fault[0] = '\0';
    if (!emulated::check(*dispatch, fault)) return false;
    return emulated::run(*dispatch, fault);
}
