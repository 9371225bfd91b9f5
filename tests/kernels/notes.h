/* A level's notes about a matrix, as the model has them made when it loads. */
#ifndef PLUMB_TESTS_KERNELS_NOTES_H
#define PLUMB_TESTS_KERNELS_NOTES_H

#include "backend/cpu/kernels/kernels.h"
#include "kernels/arena.h"

/* Sealed, in the arena; NULL when the level makes none. */
static inline const void *prepared_notes(const plumb_cpu_kernels *kernels, const plumb_matrix *w) {
    int64_t bytes = kernels->prepared_bytes(w);
    if (bytes == 0) return NULL;
    void *notes = arena_scratch(bytes);
    kernels->prepare(w, notes);
    arena_seal(notes);
    return notes;
}

#endif
