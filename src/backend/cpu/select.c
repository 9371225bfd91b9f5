#include "backend/cpu/select.h"

#include "arith/portable.h"

/* An unsigned key with the order of the value: subnormals and -0 count as +0. */
static uint32_t order_key(float value) {
    uint32_t u = plumb__bits_of(value);
    if ((u & 0x7FFFFFFFu) < 0x00800000u) u = 0;
    return (u >> 31) ? ~u : u | 0x80000000u;
}

/* The key of the k-th best, found byte by byte from the top: among the keys that share the bytes
 * fixed so far, count each value of the next byte and walk down from the largest.  *above
 * receives the number of keys larger than it. */
static uint32_t kth_key(const float *value, int64_t n, int64_t k, int64_t *above) {
    uint32_t prefix = 0;
    int64_t larger = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int64_t count[256] = {0};
        uint32_t fixed = shift == 24 ? 0u : ~0u << (shift + 8);
        for (int64_t i = 0; i < n; i++) {
            uint32_t key = order_key(value[i]);
            if ((key & fixed) == prefix) count[key >> shift & 255u]++;
        }
        int byte = 255;
        while (larger + count[byte] < k) larger += count[byte--];
        prefix |= (uint32_t)byte << shift;
    }
    *above = larger;
    return prefix;
}

int64_t plumb__select_top(const float *value, int64_t n, int64_t k, int32_t *out) {
    if (k >= n) {
        for (int64_t i = 0; i < n; i++) out[i] = (int32_t)i;
        return n;
    }
    if (k <= 0) return 0;
    int64_t above;
    uint32_t edge = kth_key(value, n, k, &above);
    int64_t ties = k - above, taken = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t key = order_key(value[i]);
        if (key > edge || (key == edge && ties-- > 0)) out[taken++] = (int32_t)i;
    }
    return taken;
}
