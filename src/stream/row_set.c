#include "stream/row_set.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* At most half of the buckets are in use, so a search is short. */
static int bucket_bits(int64_t n) {
    int bits = 1;
    while (((int64_t)1 << bits) < 2 * n) bits++;
    return bits;
}

void plumb__row_set_free(plumb_row_set *set) {
    free(set->place);
    free(set->distinct);
    free(set->bucket);
    *set = (plumb_row_set){0};
}

static plumb_status reserve(plumb_row_set *set, int64_t n, plumb_error *err) {
    if (n <= set->capacity) return PLUMB_OK;
    plumb__row_set_free(set);
    size_t buckets = (size_t)1 << bucket_bits(n);
    set->place = malloc((size_t)n * sizeof *set->place);
    set->distinct = malloc((size_t)n * sizeof *set->distinct);
    set->bucket = malloc(buckets * sizeof *set->bucket);
    if (!set->place || !set->distinct || !set->bucket) {
        plumb__row_set_free(set);
        return plumb__fail_memory(err, "row numbers", buckets * sizeof *set->bucket);
    }
    set->capacity = n;
    return PLUMB_OK;
}

/* The number's bucket: the one that holds it, or the free one where it belongs. */
static int32_t *find(const plumb_row_set *set, int64_t number, int bits) {
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t at = (uint64_t)number * 0x9E3779B97F4A7C15u >> (64 - bits);
    while (set->bucket[at] >= 0 && set->distinct[set->bucket[at]] != number) at = (at + 1) & mask;
    return &set->bucket[at];
}

plumb_status plumb__row_set_make(plumb_row_set *set, const int64_t *numbers, int64_t n,
                                 plumb_error *err) {
    set->n = set->n_distinct = 0;
    plumb_status status = reserve(set, n, err);
    if (status != PLUMB_OK || n == 0) return status;
    int bits = bucket_bits(n);
    memset(set->bucket, -1, ((size_t)1 << bits) * sizeof *set->bucket);
    for (int64_t i = 0; i < n; i++) {
        int32_t *bucket = find(set, numbers[i], bits);
        if (*bucket < 0) {
            *bucket = (int32_t)set->n_distinct;
            set->distinct[set->n_distinct++] = numbers[i];
        }
        set->place[i] = *bucket;
    }
    set->n = n;
    return PLUMB_OK;
}
