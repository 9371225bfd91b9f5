#include "store/prefix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { LENGTH_DIGITS = 9, HASH_DIGITS = 32 };
static const char ending[] = ".plumb-session";

plumb_status plumb__prefix_chain(const int32_t *tokens, int64_t length, plumb_prefix_chain *chain,
                                 plumb_error *err) {
    int64_t blocks = length / PLUMB_PREFIX_BLOCK;
    uint64_t *hash = malloc((size_t)(blocks + 1) * sizeof *hash); /* never of size 0 */
    if (!hash)
        return plumb__fail_memory(err, "beginnings of tokens", (size_t)blocks * sizeof *hash);
    XXH3_state_t state;
    (void)XXH3_64bits_reset(&state);
    for (int64_t i = 0; i < blocks; i++) {
        const int32_t *block = tokens + i * PLUMB_PREFIX_BLOCK;
        (void)XXH3_64bits_update(&state, block, PLUMB_PREFIX_BLOCK * sizeof *block);
        hash[i] = XXH3_64bits_digest(&state);
    }
    *chain = (plumb_prefix_chain){hash, blocks};
    return PLUMB_OK;
}

void plumb__prefix_chain_free(plumb_prefix_chain *chain) {
    free(chain->hash);
    *chain = (plumb_prefix_chain){0};
}

int64_t plumb__prefix_shared(const plumb_prefix_chain *a, const plumb_prefix_chain *b) {
    int64_t low = 0, high = a->blocks < b->blocks ? a->blocks : b->blocks;
    while (low < high) { /* the first `low` blocks agree, those from `high` on do not */
        int64_t middle = low + (high - low) / 2;
        if (a->hash[middle] == b->hash[middle])
            low = middle + 1;
        else
            high = middle;
    }
    return low * PLUMB_PREFIX_BLOCK;
}

int64_t plumb__prefix_common(const int32_t *a, int64_t a_length, const int32_t *b,
                             int64_t b_length) {
    int64_t most = a_length < b_length ? a_length : b_length, n = 0;
    while (n < most && a[n] == b[n]) n++;
    return n;
}

plumb_prefix_id plumb__prefix_id(const uint8_t model[16], uint32_t arithmetic_revision,
                                 const int32_t *tokens, int64_t length) {
    XXH3_state_t state;
    (void)XXH3_128bits_reset(&state);
    (void)XXH3_128bits_update(&state, model, 16);
    (void)XXH3_128bits_update(&state, &arithmetic_revision, sizeof arithmetic_revision);
    (void)XXH3_128bits_update(&state, tokens, (size_t)length * sizeof *tokens);
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    return (plumb_prefix_id){length, hash.high64, hash.low64};
}

bool plumb__prefix_id_equal(plumb_prefix_id a, plumb_prefix_id b) {
    return a.length == b.length && a.high == b.high && a.low == b.low;
}

void plumb__prefix_name(plumb_prefix_id id, char name[PLUMB_PREFIX_NAME_SIZE]) {
    (void)snprintf(name, PLUMB_PREFIX_NAME_SIZE, "%0*lld-%016llx%016llx%s", LENGTH_DIGITS,
                   (long long)id.length, (unsigned long long)id.high, (unsigned long long)id.low,
                   ending);
}

bool plumb__prefix_parse(const char *name, plumb_prefix_id *id) {
    char again[PLUMB_PREFIX_NAME_SIZE];
    if (strlen(name) != LENGTH_DIGITS + 1 + HASH_DIGITS + sizeof ending - 1) return false;
    char hash[2][17] = {{0}};
    memcpy(hash[0], name + LENGTH_DIGITS + 1, 16);
    memcpy(hash[1], name + LENGTH_DIGITS + 1 + 16, 16);
    plumb_prefix_id found = {strtoll(name, NULL, 10), strtoull(hash[0], NULL, 16),
                             strtoull(hash[1], NULL, 16)};
    /* Only what would be written is a name: no signs, spaces or capital letters. */
    plumb__prefix_name(found, again);
    if (found.length < 0 || strcmp(name, again) != 0) return false;
    *id = found;
    return true;
}
