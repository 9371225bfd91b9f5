/* Selection without sorting: the key of the k-th best is found byte by byte from counts, then one pass
 * lists what is better.  Values are turned into keys a group at a time, a loop that vectorises; what
 * then remains to do value by value is an increment, or nothing at all. */
#include "backend/cpu/select.h"

#include "arith/portable.h"

enum {
    GROUP = 32,
    TABLES = 8 /* of counters, by turns: most keys share few bytes, and one would wait for itself */
};

/* An unsigned key with the order of the value: subnormals and zeros of both signs are the same.  The
 * lower bits of a bf16 value stay zero. */
static uint32_t order_key(float value) {
    uint32_t u = plumb__bits_of(value), magnitude = u & 0x7FFFFFFFu;
    magnitude = magnitude < 0x00800000u ? 0 : magnitude;
    return 0x80000000u + (u >> 31 ? 0u - magnitude : magnitude);
}

/* Keys of a group; zeros, the smallest, stand in for values that a last group lacks. */
static void group_keys(const float *value, int64_t n, uint32_t key[GROUP]) {
    if (n >= GROUP) {
        for (int i = 0; i < GROUP; i++) key[i] = order_key(value[i]);
        return;
    }
    for (int i = 0; i < GROUP; i++) key[i] = i < n ? order_key(value[i]) : 0;
}

typedef struct byte_counts {
    int32_t of[TABLES][256];
} byte_counts;

/* Counts each top byte.  Returns the bits in which some of the keys differ from the first. */
static uint32_t count_top_bytes(const float *value, int64_t n, byte_counts *count) {
    uint32_t first_key = order_key(value[0]), differ = 0;
    for (int64_t first = 0; first < n; first += GROUP) {
        uint32_t key[GROUP];
        group_keys(value + first, n - first, key);
        for (int i = 0; i < GROUP; i++) count->of[i % TABLES][key[i] >> 24]++;
        for (int i = 0; i < GROUP; i++) differ |= key[i] ^ first_key;
    }
    return differ;
}

/* Counts each value of the byte at `shift` among the keys that share the bytes above it. */
static void count_bytes(const float *value, int64_t n, uint32_t prefix, int shift,
                        byte_counts *count) {
    uint32_t fixed = ~0u << (shift + 8);
    for (int64_t first = 0; first < n; first += GROUP) {
        uint32_t key[GROUP], byte[GROUP], some = 0;
        group_keys(value + first, n - first, key);
        for (int i = 0; i < GROUP; i++) some |= (key[i] & fixed) == prefix;
        if (!some) continue;
        int counted = 0;
        for (int i = 0; i < GROUP; i++) {
            byte[counted] = key[i] >> shift & 255u;
            counted += (key[i] & fixed) == prefix;
        }
        for (int i = 0; i < counted; i++) count->of[i % TABLES][byte[i]]++;
    }
}

/* The key of the k-th best; *above receives the number of keys larger than it. */
static uint32_t kth_key(const float *value, int64_t n, int64_t k, int64_t *above) {
    uint32_t prefix = 0, used = 0;
    int64_t larger = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        byte_counts count = {0};
        if (shift == 24) used = count_top_bytes(value, n, &count);
        else if (used >> shift & 255u) count_bytes(value, n, prefix, shift, &count);
        if (!(used >> shift & 255u)) { /* as in the first: the lower half, where values are bf16 */
            prefix |= order_key(value[0]) & 255u << shift;
            continue;
        }
        int byte = 256;
        int64_t of_byte = 0;
        do {
            larger += of_byte;
            of_byte = 0;
            byte--;
            for (int t = 0; t < TABLES; t++) of_byte += count.of[t][byte];
        } while (larger + of_byte < k);
        prefix |= (uint32_t)byte << shift;
    }
    *above = larger;
    return prefix;
}

static uint32_t largest(const uint32_t key[GROUP]) {
    uint32_t most = 0;
    for (int i = 0; i < GROUP; i++) most = key[i] > most ? key[i] : most;
    return most;
}

int64_t plumb__select_top(const float *value, int64_t n, int64_t k, int32_t *out) {
    if (k >= n) {
        for (int64_t i = 0; i < n; i++) out[i] = (int32_t)i;
        return n;
    }
    if (k <= 0) return 0;
    int64_t above, taken = 0;
    uint32_t edge = kth_key(value, n, k, &above);
    for (int64_t first = 0, ties = k - above; taken < k; first += GROUP) {
        uint32_t key[GROUP];
        group_keys(value + first, n - first, key);
        if (largest(key) < edge) continue;
        for (int i = 0; i < GROUP && taken < k; i++) {
            int64_t tie = key[i] == edge;
            out[taken] = (int32_t)(first + i); /* stays unless the next one takes its place */
            taken += (key[i] > edge) | (tie & (ties > 0));
            ties -= tie;
        }
    }
    return taken;
}
