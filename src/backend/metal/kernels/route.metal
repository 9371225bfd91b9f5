/* The router of one row by one simdgroup (model.md 4.8): the k best of score + bias, larger first, equal:
 * smaller id first, listed in ascending id with their weights.  The bias selects and never weighs.
 *
 * A lane looks after every 32nd expert.  k rounds find each the best behind the one before, in the order
 * (key, id), which is total, so that every round finds one, whatever the values are.  All experts up to the
 * last one found are then listed in one ascending pass. */
#include "backend/metal/kernels/common.h"

/* An expert as selection sees it: keys have the order of the values, and NaN has a place too.  Of zeros there
 * is but one, since a sum of a score, which is not negative, never is -0. */
struct route_choice {
    uint key, id;
};

static inline route_choice route_choice_of(float value, uint id) {
    uint bits = plumb__bits_of(value), magnitude = bits & 0x7FFFFFFFu;
    route_choice c;
    c.key = 0x80000000u + (bits >> 31 ? 0 - magnitude : magnitude);
    c.id = id;
    return c;
}

static inline bool route_before(route_choice a, route_choice b) {
    return a.key > b.key || (a.key == b.key && a.id < b.id);
}

/* The first of all lanes' choices, in every lane. */
static inline route_choice route_first(route_choice own) {
    for (ushort other = PLUMB_METAL_SIMD / 2; other > 0; other /= 2) {
        route_choice its;
        its.key = simd_shuffle_xor(own.key, other);
        its.id = simd_shuffle_xor(own.id, other);
        if (route_before(its, own)) own = its;
    }
    return own;
}

/* The k-th in order.  biased: [experts]. */
static inline route_choice route_last(threadgroup const float *biased, uint experts, uint k, uint lane) {
    route_choice last;
    for (uint found = 0; found < k; found++) {
        route_choice best;
        best.key = 0; /* behind every expert */
        best.id = ~0u;
        for (uint e = lane; e < experts; e += PLUMB_METAL_SIMD) {
            route_choice c = route_choice_of(biased[e], e);
            if ((found == 0 || route_before(last, c)) && route_before(c, best)) best = c;
        }
        last = route_first(best);
    }
    return last;
}

kernel void route(device plumb_metal_control &control [[buffer(0)]],
                  constant plumb_metal_route &args [[buffer(1)]],
                  device const float *logits [[buffer(2)]], /* [rows][experts] */
                  device const float *bias [[buffer(3)]],   /* [experts] */
                  device int *ids [[buffer(4)]],            /* [rows][k] */
                  device float *weights [[buffer(5)]],      /* [rows][k] */
                  threadgroup float *score [[threadgroup(0)]], /* [2][experts] */
                  uint3 group [[threadgroup_position_in_grid]],
                  uint lane [[thread_index_in_simdgroup]]) {
    if (plumb_halted(control)) return;
    threadgroup float *biased = score + args.experts;
    logits += (ulong)group.x * args.experts;
    ids += (ulong)group.x * args.k;
    weights += (ulong)group.x * args.k;
    for (uint e = lane; e < args.experts; e += PLUMB_METAL_SIMD) {
        score[e] = plumb__sqrt(plumb__softplus(logits[e]));
        biased[e] = score[e] + bias[e];
        if (!plumb_finite(biased[e])) plumb_fault(control);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup); /* other lanes will write there */
    route_choice last = route_last(biased, args.experts, args.k, lane);

    /* Scores of the chosen, in ascending id, take the place of what was looked at already: a vote needs
     * what every lane has read. */
    uint listed = 0;
    for (uint first = 0; first < args.experts; first += PLUMB_METAL_SIMD) {
        uint e = first + lane;
        bool chosen = e < args.experts && !route_before(last, route_choice_of(biased[e], e));
        uint lanes = (uint)(simd_vote::vote_t)simd_ballot(chosen);
        uint at = listed + popcount(lanes & ((1u << lane) - 1));
        if (chosen) {
            ids[at] = (int)e;
            biased[at] = score[e];
        }
        listed += popcount(lanes);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    float sum = 0.0f;
    for (uint i = 0; i < args.k; i++) sum = sum + biased[i];
    for (uint i = lane; i < args.k; i += PLUMB_METAL_SIMD)
        weights[i] = biased[i] / (sum + 1e-20f) * args.route_scale;
}
