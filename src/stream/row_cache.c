#include "stream/row_cache.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

plumb_status plumb__row_cache_init(plumb_row_cache *cache, int64_t slots, int64_t row_bytes,
                                   plumb_error *err) {
    *cache = (plumb_row_cache){.slots = slots, .row_bytes = row_bytes};
    if (slots == 0) return PLUMB_OK;
    size_t bytes = (size_t)(slots * row_bytes);
    cache->key = malloc((size_t)slots * sizeof *cache->key);
    cache->bytes = malloc(bytes); /* not touched before it is used */
    if (!cache->key || !cache->bytes) {
        plumb__row_cache_free(cache);
        return plumb__fail_memory(err, "row cache", bytes);
    }
    for (int64_t i = 0; i < slots; i++) cache->key[i] = -1;
    return PLUMB_OK;
}

void plumb__row_cache_free(plumb_row_cache *cache) {
    free(cache->key);
    free(cache->bytes);
    *cache = (plumb_row_cache){0};
}

bool plumb__row_cache_get(const plumb_row_cache *cache, int64_t key, uint8_t *into) {
    if (cache->slots == 0) return false;
    int64_t slot = key % cache->slots;
    if (cache->key[slot] != key) return false;
    memcpy(into, cache->bytes + slot * cache->row_bytes, (size_t)cache->row_bytes);
    return true;
}

void plumb__row_cache_put(plumb_row_cache *cache, int64_t key, const uint8_t *from) {
    if (cache->slots == 0) return;
    int64_t slot = key % cache->slots;
    cache->key[slot] = key;
    memcpy(cache->bytes + slot * cache->row_bytes, from, (size_t)cache->row_bytes);
}
