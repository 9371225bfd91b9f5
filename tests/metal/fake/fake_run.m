/* The constants of setBytes are copied to the end of a page, with a page behind it that may not be
 * touched, as buffers have one (fake_buffer.m). */
#import "fake_run.h"

#import "fake_parts.h"
#import "fake_queue.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static const size_t CONSTANTS_BYTES = (size_t)2 * PAGE * EMULATED_ARGUMENTS;

uint8_t *fake_map_constants(void) {
    uint8_t *pages = mmap(NULL, CONSTANTS_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    bool ok = true;
    for (size_t i = 0; i < EMULATED_ARGUMENTS; i++) {
        ok &= !mprotect(pages + i * 2 * PAGE, PAGE, PROT_READ | PROT_WRITE);
    }
    if (ok) return pages;
    munmap(pages, CONSTANTS_BYTES);
    return NULL;
}

void fake_unmap_constants(uint8_t *constants) {
    if (constants) munmap(constants, CONSTANTS_BYTES);
}

static void bind_buffers(const fake_dispatch *dispatch, uint8_t *constants, emulated_dispatch *to) {
    for (int i = 0; i < to->kernel->n_parameters; i++) {
        const emulated_parameter *p = &to->kernel->parameter[i];
        if (p->space == EMULATED_THREADGROUP) {
            to->threadgroup_bytes[p->index] = dispatch->threadgroup_bytes[p->index];
            continue;
        }
        const fake_binding *binding = &dispatch->binding[p->index];
        int64_t bytes = fake_bound_bytes(binding);
        const uint8_t *start = fake_bound_start(binding);
        if (binding->bytes) {
            uint8_t *end = constants + (size_t)2 * PAGE * (size_t)p->index + PAGE;
            start = memcpy(end - (bytes + p->alignment - 1) / p->alignment * p->alignment, start,
                           (size_t)bytes);
        }
        to->buffer[p->index] = (void *)(uintptr_t)start;
        to->buffer_bytes[p->index] = bytes;
    }
}

/* Flips a bit of the last buffer that the kernel writes, other than the control block, if it is the
 * kernel that is to be wrong. */
static void spoil_if_wrong(const emulated_dispatch *dispatch) {
    fake_state *state = fake_lock();
    const char *wrong = state->options.wrong_kernel;
    int64_t bit = state->options.wrong_bit;
    fake_unlock();
    if (!wrong || strcmp(wrong, dispatch->kernel->name)) return;
    int last = 0;
    for (int i = 0; i < dispatch->kernel->n_parameters; i++) {
        const emulated_parameter *p = &dispatch->kernel->parameter[i];
        if (p->space == EMULATED_DEVICE && p->writable && p->index > last) last = p->index;
    }
    if (last > 0) ((uint8_t *)dispatch->buffer[last])[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

bool fake_run(FakeCommandBuffer *buffer, const fake_dispatch *dispatch,
              char fault[EMULATED_FAULT_BYTES]) {
    const emulated_kernel *kernel = dispatch->pipeline->kernel;
    emulated_dispatch run = {.kernel = kernel, .seed = fake_random()};
    memcpy(run.groups, dispatch->groups, sizeof run.groups);
    memcpy(run.threads, dispatch->threads, sizeof run.threads);
    bool ok = fake_check_addresses(buffer, dispatch, fault);
    if (ok) {
        fake_parts parts;
        bind_buffers(dispatch, buffer->queue->constants, &run);
        fake_separate_parts(dispatch, &parts, &run);
        ok = emulated_run(&run, fault);
        if (ok) spoil_if_wrong(&run);
        fake_join_parts(dispatch, &parts);
    }
    if (!ok) {
        fake_object_to("%s: %s", kernel->name, fault);
        return false;
    }
    fake_state *state = fake_lock();
    state->counters.dispatches++;
    fake_unlock();
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const emulated_parameter *p = fake_parameter(kernel, false, i);
        if (p && p->writable) [dispatch->binding[i].buffer checkMargins:kernel->name];
    }
    return true;
}
