/* What a test binds to a kernel is looked at before it runs: kernels/arguments.h says what must be. */
#ifndef PLUMB_TESTS_METAL_KERNELS_BINDINGS_H
#define PLUMB_TESTS_METAL_KERNELS_BINDINGS_H

#include "emulator.h"

#include <inttypes.h>

#include "t.h"

/* All that the kernel takes is there, at starts of its alignment. */
static inline void bindings_are_there(const emulated_dispatch *d) {
    const emulated_kernel *k = d->kernel;
    for (int i = 0; i < k->n_parameters; i++) {
        const emulated_parameter *p = &k->parameter[i];
        if (p->space == EMULATED_THREADGROUP) {
            T_CHECK(d->threadgroup_bytes[p->index] > 0, "%s %s", k->name, p->name);
            continue;
        }
        uintptr_t start = (uintptr_t)d->buffer[p->index];
        T_CHECK(start != 0 && start % (uintptr_t)p->alignment == 0, "%s %s at %" PRIxPTR, k->name,
                p->name, start);
    }
}

/* What one argument writes is no other's (arguments.h). */
static inline void bindings_share_nothing(const emulated_dispatch *d) {
    for (int i = 0; i < d->kernel->n_parameters; i++)
        for (int j = 0; j < d->kernel->n_parameters; j++) {
            const emulated_parameter *p = &d->kernel->parameter[i], *q = &d->kernel->parameter[j];
            if (i == j || !p->writable || p->space == EMULATED_THREADGROUP ||
                q->space == EMULATED_THREADGROUP)
                continue;
            const char *a = d->buffer[p->index], *b = d->buffer[q->index];
            T_CHECK(a + d->buffer_bytes[p->index] <= b || b + d->buffer_bytes[q->index] <= a,
                    "%s: %s and %s share memory", d->kernel->name, p->name, q->name);
        }
}

static inline void bindings_check(const emulated_dispatch *dispatch) {
    bindings_are_there(dispatch);
    bindings_share_nothing(dispatch);
}

#endif
