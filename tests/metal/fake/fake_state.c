/* The state of the fake. It is initialised once and never ends: Metal's default device is one per
 * process, and so is this. Errors have a lock of their own, so that they can be recorded anywhere.
 */
#include "fake_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAX_ERRORS = 64, ERROR_BYTES = 320 };

static struct {
    pthread_mutex_t lock;
    int count;
    char text[MAX_ERRORS][ERROR_BYTES];
} errors = {.lock = PTHREAD_MUTEX_INITIALIZER};

static fake_state state = {.lock = PTHREAD_MUTEX_INITIALIZER, .steps = FAKE_METAL_ALL};
static pthread_once_t once = PTHREAD_ONCE_INIT;

fake_metal_options fake_metal_defaults(void) {
    return (fake_metal_options){
        .seed = 1,
        .delay_us_max = 20,
        .name = "Apple M2 Max (fake)",
        .metal3 = true,
        .apple_family = 8,
        .unified_memory = true,
        .residency_sets = true,
        .working_set_bytes = UINT64_C(48) << 30,
        .max_buffer_bytes = UINT64_C(36) << 30,
        .threadgroup_bytes = 32 << 10,
        .max_threads = 1024,
        .fail_code = 8, /* MTLCommandBufferErrorOutOfMemory */
    };
}

static void start(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&state.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    state.options = fake_metal_defaults();
    state.random = state.options.seed;
}

fake_state *fake_lock(void) {
    pthread_once(&once, start);
    pthread_mutex_lock(&state.lock);
    return &state;
}

void fake_unlock(void) {
    pthread_mutex_unlock(&state.lock);
}

int64_t fake_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool fake_wait(int64_t deadline_ns) {
    struct timespec until = {.tv_sec = deadline_ns / 1000000000,
                             .tv_nsec = deadline_ns % 1000000000};
    if (fake_clock_ns() >= deadline_ns) return false;
    pthread_cond_timedwait(&state.changed, &state.lock, &until);
    return true;
}

void fake_changed(void) {
    pthread_cond_broadcast(&state.changed);
}

/* SplitMix64: any seed will do, and every run with the same calls gives the same numbers. */
static uint64_t next_random(void) {
    uint64_t z = state.random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t fake_clock_tick(void) {
    return ++state.clock;
}

uint64_t fake_random(void) {
    fake_lock();
    uint64_t number = next_random();
    fake_unlock();
    return number;
}

void fake_delay(void) {
    fake_lock();
    while (state.steps == 0) pthread_cond_wait(&state.changed, &state.lock);
    if (state.steps > 0) state.steps--;
    int64_t range = state.options.delay_us_max - state.options.delay_us_min + 1;
    int64_t us = state.options.delay_us_min;
    if (range > 1) us += (int64_t)(next_random() % (uint64_t)range);
    fake_unlock();
    struct timespec nap = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    if (us > 0) nanosleep(&nap, NULL);
}

void fake_metal_configure(const fake_metal_options *options) {
    fake_lock();
    state.options = *options;
    state.random = options->seed;
    state.counters.commits = state.counters.dispatches = state.counters.waits = 0;
    state.counters.most_autoreleased = state.counters.autoreleased;
    fake_unlock();
    pthread_mutex_lock(&errors.lock);
    errors.count = 0;
    pthread_mutex_unlock(&errors.lock);
}

fake_metal_counters fake_metal_count(void) {
    fake_metal_counters counters = fake_lock()->counters;
    fake_unlock();
    return counters;
}

void fake_metal_allow(int64_t steps) {
    fake_lock();
    state.steps = steps;
    fake_changed();
    fake_unlock();
}

void fake_metal_settle(void) {
    fake_lock();
    while (state.unfinished > 0) pthread_cond_wait(&state.changed, &state.lock);
    fake_unlock();
}

void fake_object_to(const char *format, ...) {
    pthread_mutex_lock(&errors.lock);
    if (errors.count < MAX_ERRORS) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(errors.text[errors.count], ERROR_BYTES, format, arguments);
        va_end(arguments);
        errors.count++;
    }
    pthread_mutex_unlock(&errors.lock);
}

int fake_metal_errors(void) {
    pthread_mutex_lock(&errors.lock);
    int count = errors.count;
    pthread_mutex_unlock(&errors.lock);
    return count;
}

const char *fake_metal_error(int i) {
    return i < fake_metal_errors() ? errors.text[i] : NULL;
}

bool fake_metal_said(const char *text) {
    for (int i = 0; i < fake_metal_errors(); i++) {
        if (strstr(errors.text[i], text)) return true;
    }
    return false;
}

/* For LeakSanitizer: what GNUstep Base and its runtime keep when they start. Objects of the fake
 * are counted instead. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libobjc.so\nleak:libgnustep-base.so\n";
}
const char *__lsan_default_options(void);
const char *__lsan_default_options(void) {
    return "print_suppressions=0";
}
