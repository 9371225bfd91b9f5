/* The k best of a row's values, larger first, equal ones by smaller index, listed ascending
 * (docs/arithmetic.md section 7), without sorting: the key of the k-th best is found byte by byte from
 * counts, then every simdgroup lists what is better in its part of the values.
 *
 * All counting is in integers, so the order in which threads come to it does not show. */
#include "backend/metal/kernels/candidates.h"

enum {
    SELECT_SIMDGROUPS = PLUMB_METAL_SELECT / PLUMB_METAL_SIMD,
    /* Places in threadgroup memory. */
    SELECT_COUNTS = 0,                  /* [256]: a counter for each value of a byte */
    SELECT_TOTALS = PLUMB_METAL_SELECT, /* [simdgroups] */
    SELECT_TIES = SELECT_TOTALS + SELECT_SIMDGROUPS, /* [simdgroups] */
    SELECT_BYTE = SELECT_TIES + SELECT_SIMDGROUPS,
    SELECT_LARGER
};

/* Threadgroup memory and the calling thread's place among those that share it. */
struct select_team {
    threadgroup atomic_uint *word;
    uint thread_index, simdgroup, lane;
};

static inline uint select_get(thread const select_team &team, uint place) {
    return atomic_load_explicit(&team.word[place], memory_order_relaxed);
}
static inline void select_put(thread const select_team &team, uint place, uint value) {
    atomic_store_explicit(&team.word[place], value, memory_order_relaxed);
}
static inline void select_add(thread const select_team &team, uint place, uint value) {
    atomic_fetch_add_explicit(&team.word[place], value, memory_order_relaxed);
}

/* An unsigned key with the order of the value: subnormals and zeros of both signs are the same. */
static inline uint select_key(float value) {
    uint bits = plumb__bits_of(value), magnitude = bits & 0x7FFFFFFFu;
    magnitude = magnitude < 0x00800000u ? 0 : magnitude;
    return 0x80000000u + (bits >> 31 ? 0u - magnitude : magnitude);
}

/* Sum over this lane and those before it. */
static inline uint select_running_sum(uint x, uint lane) {
    for (uint step = 1; step < PLUMB_METAL_SIMD; step *= 2) {
        uint before = simd_shuffle_up(x, (ushort)step);
        x += lane >= step ? before : 0;
    }
    return x;
}

/* A bit for each lane where it is true. */
static inline uint select_votes(bool x) { return (uint)(simd_vote::vote_t)simd_ballot(x); }

/* Counts each value of the byte at `shift` among the keys that share the bytes above it.  Neighbours
 * often have the same byte: a thread adds a run of them at once, or all would wait for one counter. */
static inline void select_count(thread const select_team &team, device const float *value, uint n,
                                uint prefix, uint shift) {
    uint fixed = shift == 24 ? 0 : ~0u << (shift + 8), run_byte = 0, run = 0;
    for (uint i = team.thread_index; i < n; i += PLUMB_METAL_SELECT) {
        uint key = select_key(value[i]), byte = key >> shift & 255u;
        if ((key & fixed) != prefix) continue;
        if (byte != run_byte && run > 0) {
            select_add(team, SELECT_COUNTS + run_byte, run);
            run = 0;
        }
        run_byte = byte;
        run++;
    }
    if (run > 0) select_add(team, SELECT_COUNTS + run_byte, run);
}

/* The key of the k-th best; `larger` receives the number of keys above it.  A thread owns a counter,
 * the first one that of the largest byte. */
static inline uint select_edge(thread const select_team &team, device const float *value, uint n,
                               uint k, thread uint &larger) {
    uint prefix = 0, byte = PLUMB_METAL_SELECT - 1 - team.thread_index;
    larger = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        select_put(team, SELECT_COUNTS + byte, 0);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        select_count(team, value, n, prefix, (uint)shift);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint of_byte = select_get(team, SELECT_COUNTS + byte);
        uint running = select_running_sum(of_byte, team.lane);
        if (team.lane == PLUMB_METAL_SIMD - 1)
            select_put(team, SELECT_TOTALS + team.simdgroup, running);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint above = larger + running - of_byte;
        for (uint s = 0; s < team.simdgroup; s++) above += select_get(team, SELECT_TOTALS + s);
        if (above < k && k <= above + of_byte) { /* true of exactly one */
            select_put(team, SELECT_BYTE, byte);
            select_put(team, SELECT_LARGER, above);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        prefix |= select_get(team, SELECT_BYTE) << shift;
        larger = select_get(team, SELECT_LARGER);
    }
    return prefix;
}

/* Where the chosen go: positions of a pool, or the indices themselves. */
struct select_list {
    device int *out;
    device const int *pool; /* of the row, if `pooled` */
    uint block_size, pooled;
};

static inline void select_write(thread const select_list &list, uint place, uint i) {
    list.out[place] = (int)(list.pooled ? pooled_position(list.pool, list.block_size, i) : i);
}

/* Lists the keys above the edge and the first `ties` of those at it, ascending.  A simdgroup goes through
 * its part of the values twice: to tell the others how many are its own, and to place them. */
static inline void select_best(thread const select_team &team, device const float *value, uint n,
                               uint edge, uint ties, thread const select_list &list) {
    uint part = blocks_of(n, PLUMB_METAL_SELECT) * PLUMB_METAL_SIMD;
    uint begin = team.simdgroup * part, larger = 0, equal = 0;
    uint end = begin + part < n ? begin + part : n;
    for (uint i = begin + team.lane; i < end; i += PLUMB_METAL_SIMD) {
        uint key = select_key(value[i]);
        larger += key > edge;
        equal += key == edge;
    }
    larger = select_running_sum(larger, team.lane);
    equal = select_running_sum(equal, team.lane);
    if (team.lane == PLUMB_METAL_SIMD - 1) {
        select_put(team, SELECT_TOTALS + team.simdgroup, larger);
        select_put(team, SELECT_TIES + team.simdgroup, equal);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    larger = equal = 0;
    for (uint s = 0; s < team.simdgroup; s++) {
        larger += select_get(team, SELECT_TOTALS + s);
        equal += select_get(team, SELECT_TIES + s);
    }
    for (uint first = begin; first < end; first += PLUMB_METAL_SIMD) {
        uint i = first + team.lane, key = i < end ? select_key(value[i]) : 0; /* 0: below any value */
        uint above = select_votes(key > edge), at = select_votes(key == edge);
        uint before = (1u << team.lane) - 1; /* the lanes before this one */
        uint larger_before = larger + popcount(above & before);
        uint equal_before = equal + popcount(at & before);
        if (key > edge || (key == edge && equal_before < ties))
            select_write(list, larger_before + (equal_before < ties ? equal_before : ties), i);
        larger += popcount(above);
        equal += popcount(at);
    }
}

kernel void select_top(device plumb_metal_control &control [[buffer(0)]],
                       constant plumb_metal_select &args [[buffer(1)]],
                       device const float *value [[buffer(2)]],    /* [rows][value_stride] */
                       device const int *pool [[buffer(3)]],       /* [rows][pool_blocks] */
                       device const int *pool_count [[buffer(4)]], /* [rows] */
                       device int *out [[buffer(5)]],              /* [rows][k] */
                       device int *out_count [[buffer(6)]],        /* [rows] */
                       threadgroup atomic_uint *word [[threadgroup(0)]],
                       uint row [[threadgroup_position_in_grid]],
                       uint thread_index [[thread_index_in_threadgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]]) {
    if (plumb_halted(control)) return;
    select_team team = {word, thread_index, simdgroup, lane};
    select_list list = {out + (ulong)row * args.k, pool + (ulong)row * args.pool_blocks,
                        args.block_size, args.use_pool};
    uint n = visible_keys(args.position, row, args.ratio), k = args.k;
    if (args.blocks) n = blocks_of(n, args.block_size);
    else if (args.use_pool) n = pooled_keys(list.pool, (uint)pool_count[row], args.block_size, n);
    if (thread_index == 0) out_count[row] = (int)(n < k ? n : k);
    if (n <= k) {
        for (uint i = thread_index; i < n; i += PLUMB_METAL_SELECT) select_write(list, i, i);
        return;
    }
    if (k == 0) return;
    uint larger;
    value += (ulong)row * args.value_stride;
    uint edge = select_edge(team, value, n, k, larger);
    select_best(team, value, n, edge, k - larger, list);
}
