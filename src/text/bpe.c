/* Encoding a piece by search (bpe.h says why this is the encoding).
 *
 * From the left, take the longest token that stays apart from the one before it; where none does,
 * step back and take the next shorter one.  A prefix of the piece has but one encoding, so the
 * search enters a place at most once: it is linear even where it steps back, and it seldom does.  A
 * piece costs a walk down the prefix tree and a few look-ups of pairs per token. */
#include "text/bpe.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"

void plumb__bpe_scratch_free(plumb__bpe_scratch *scratch) {
    free(scratch->symbols);
    free(scratch->heap);
    *scratch = (plumb__bpe_scratch){0};
}

plumb_status plumb__tokens_reserve(plumb_tokens *tokens, int64_t more, plumb_error *err) {
    if (more <= tokens->capacity - tokens->count) return PLUMB_OK;
    int32_t *grown =
        more > INT64_MAX - tokens->count
            ? NULL
            : plumb__grow(tokens->ids, &tokens->capacity, tokens->count + more, sizeof *grown);
    if (!grown) return plumb__fail_memory(err, "token ids", (size_t)more * sizeof *grown);
    tokens->ids = grown;
    return PLUMB_OK;
}

/* Encode left and right side by side and watch the two symbols at the boundary.  Read backwards in
 * time, the left one is first `left` itself, then its right part, then that one's right part, down
 * to a byte; the right one runs down the left parts.  Each lives from its own merge (`born`) until
 * the merge that swallows it.  The boundary falls if two that are alive together have a merge which
 * comes before either is swallowed.  Equal ranks go left to right: the left symbol's own swallowing
 * wins against the boundary, the boundary wins against the right symbol's. */
bool plumb__bpe_stay_apart(const plumb__bpe *bpe, int32_t left, int32_t right, int32_t limit) {
    const plumb__derivation *d = bpe->derivations;
    int32_t left_ends = limit, right_ends = limit;
    for (;;) {
        const plumb__pair_slot *pair = plumb__bpe_pair(bpe, left, right);
        if (pair && pair->rank < left_ends && pair->rank <= right_ends) return false;
        if (d[left].born < 0 && d[right].born < 0) return true;
        if (d[left].born > d[right].born) {
            left_ends = d[left].born;
            left = d[left].right;
        } else {
            right_ends = d[right].born;
            right = d[right].left;
        }
    }
}

/* The longest token that `bytes` begin with; every single byte is one. */
static int32_t longest_token(const plumb__bpe *bpe, const char *bytes, size_t size,
                             int64_t *steps) {
    uint32_t n_tokens = (uint32_t)bpe->vocabulary->size;
    uint32_t node = (uint32_t)bpe->byte_id[(unsigned char)bytes[0]];
    uint32_t longest = node;
    size_t at = 1;
    for (; at < size; at++) {
        uint32_t key = (node << 8 | (unsigned char)bytes[at]) + 1;
        uint64_t i = plumb__hash_key(key) & bpe->edge_mask;
        while (bpe->edges[i].key != key && bpe->edges[i].key != 0) i = (i + 1) & bpe->edge_mask;
        if (bpe->edges[i].key == 0) break;
        node = bpe->edges[i].target;
        if (node < n_tokens) longest = node;
    }
    *steps += (int64_t)at;
    return (int32_t)longest;
}

/* Returns false if there is no result, which the fact in bpe.h rules out.  `tokens` has room. */
static bool search(const plumb__bpe *bpe, const char *piece, size_t size, int64_t *steps,
                   plumb_tokens *tokens) {
    const plumb__vocabulary *v = bpe->vocabulary;
    int64_t first = tokens->count;
    size_t at = 0;
    int32_t candidate = longest_token(bpe, piece, size, steps);
    for (;;) {
        int32_t before = tokens->count > first ? tokens->ids[tokens->count - 1] : -1;
        for (; candidate >= 0; candidate = bpe->derivations[candidate].shorter) {
            ++*steps;
            if (before < 0 || plumb__bpe_stay_apart(bpe, before, candidate, PLUMB_NEVER)) break;
        }
        if (candidate >= 0) {
            tokens->ids[tokens->count++] = candidate;
            at += plumb__token(v, candidate).size;
            if (at == size) return true;
            candidate = longest_token(bpe, piece + at, size - at, steps);
        } else {
            if (before < 0) return false;
            tokens->count--;
            at -= plumb__token(v, before).size;
            candidate = bpe->derivations[before].shorter;
        }
    }
}

plumb_status plumb__bpe_encode(const plumb__bpe *bpe, const char *piece, size_t size,
                               plumb__bpe_scratch *scratch, plumb_tokens *tokens,
                               plumb_error *err) {
    if (size == 0) return PLUMB_OK;
    if (!bpe->ordered) return plumb__bpe_merge(bpe, piece, size, scratch, tokens, err);
    plumb_status status = plumb__tokens_reserve(tokens, (int64_t)size, err);
    if (status != PLUMB_OK) return status;
    if (search(bpe, piece, size, &scratch->steps, tokens)) return PLUMB_OK;
    return plumb__bpe_merge(bpe, piece, size, scratch, tokens, err);
}
