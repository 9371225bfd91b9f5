/* Runs a check on the CPU backend of every instruction level that this machine has. */
#ifndef PLUMB_TESTS_ORACLE_LEVELS_H
#define PLUMB_TESTS_ORACLE_LEVELS_H

#include "backend/cpu/cpu_backend.h"
#include "t.h"

static inline void for_every_level(void (*check)(plumb_backend *backend, const char *level)) {
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int count = plumb__cpu_kernel_levels(levels);
    for (int i = 0; i < count; i++) {
        plumb_backend *backend;
        const char *chosen;
        plumb_error err;
        plumb_status status =
            plumb__cpu_backend_create(1, levels[i]->level, &backend, &chosen, &err);
        T_CHECK(status == PLUMB_OK && !strcmp(chosen, levels[i]->level), "%s", levels[i]->level);
        if (status != PLUMB_OK) continue;
        backend->ops->begin(backend);
        check(backend, chosen);
        T_CHECK(backend->ops->check(backend) == PLUMB_OK, "%s: a fault was raised", chosen);
        backend->ops->end(backend);
        backend->ops->close(backend);
    }
}

/* The kernels behind a backend that for_every_level made. */
static inline const plumb_cpu_kernels *kernels_of(const plumb_backend *backend) {
    return ((const plumb_cpu_backend *)backend)->kernels;
}

#endif
