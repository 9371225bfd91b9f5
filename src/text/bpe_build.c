/* The tables of byte-pair encoding, made once at load: pairs, derivations, prefix tree. */
#include "text/bpe.h"

#include <stdlib.h>

#include "base/error.h"

typedef struct builder {
    plumb__bpe *bpe;
    const plumb__tokenizer_json *file;
    plumb_error *err;
    char *bytes;         /* room for the longest merge */
    int32_t (*parts)[3]; /* (merges) ids of left, right, result */
} builder;

static plumb_status refuse(const builder *b, const char *field, int64_t index, plumb__text192 found,
                           const char *expected) {
    return plumb__fail(b->err, PLUMB_ERROR_FORMAT, b->file->path, field, index, found.s, "%s",
                       expected);
}

static plumb_status find_bytes(const builder *b) {
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        b->bpe->byte_id[byte] = plumb__vocabulary_find(b->bpe->vocabulary, &c, 1);
        if (b->bpe->byte_id[byte] < 0)
            return refuse(b, "model.vocab", -1, plumb__format("no token for byte 0x%02x", byte),
                          "all 256 bytes");
    }
    return PLUMB_OK;
}

/* Ids of one merge.  A part is at least one byte, so a result is longer than its parts and no token
 * derives from itself. */
static plumb_status resolve(const builder *b, int64_t rank) {
    plumb__merge_entry merge = b->file->merges[rank];
    const plumb__vocabulary *v = b->bpe->vocabulary;
    size_t left = plumb__unspell(merge.left, b->bytes);
    size_t right = left == SIZE_MAX ? SIZE_MAX : plumb__unspell(merge.right, b->bytes + left);
    if (left == SIZE_MAX || right == SIZE_MAX || left == 0 || right == 0)
        return refuse(b, "model.merges", rank, plumb__format("a part that spells no bytes"),
                      "two tokens in byte-level spelling");
    int32_t *ids = b->parts[rank];
    ids[0] = plumb__vocabulary_find(v, b->bytes, left);
    ids[1] = plumb__vocabulary_find(v, b->bytes + left, right);
    ids[2] = plumb__vocabulary_find(v, b->bytes, left + right);
    if (ids[0] >= 0 && ids[1] >= 0 && ids[2] >= 0) return PLUMB_OK;
    const char *which = ids[0] < 0 ? "left part" : ids[1] < 0 ? "right part" : "result";
    return refuse(b, "model.merges", rank,
                  plumb__format("\"%.*s %.*s\", whose %s is not in model.vocab",
                                merge.left.size > 60 ? 60 : (int)merge.left.size, merge.left.bytes,
                                merge.right.size > 60 ? 60 : (int)merge.right.size,
                                merge.right.bytes, which),
                  "merges of known tokens");
}

static plumb_status add_pair(const builder *b, int64_t rank) {
    plumb__bpe *bpe = b->bpe;
    const int32_t *ids = b->parts[rank];
    uint64_t key = plumb__pair_key(ids[0], ids[1]), hash = plumb__hash_key(key);
    uint64_t i = hash & bpe->pair_mask, bit = hash >> (64 - PLUMB_PAIR_FILTER_BITS);
    bpe->pair_filter[bit / 64] |= UINT64_C(1) << (bit % 64);
    for (; bpe->pairs[i].key; i = (i + 1) & bpe->pair_mask)
        if (bpe->pairs[i].key == key)
            return refuse(b, "model.merges", rank,
                          plumb__format("the merge of rank %d again", bpe->pairs[i].rank),
                          "every merge once");
    bpe->pairs[i] = (plumb__pair_slot){key, (int32_t)rank, ids[2]};
    return PLUMB_OK;
}

static plumb_status build_pairs(const builder *b) {
    const plumb__tokenizer_json *file = b->file;
    uint64_t slots = 16;
    while (slots < (uint64_t)file->n_merges * 2) slots *= 2;
    b->bpe->pair_mask = slots - 1;
    b->bpe->pairs = calloc(slots, sizeof *b->bpe->pairs);
    b->bpe->pair_filter =
        calloc((size_t)1 << PLUMB_PAIR_FILTER_BITS >> 6, sizeof *b->bpe->pair_filter);
    if (!b->bpe->pairs || !b->bpe->pair_filter)
        return plumb__fail_memory(b->err, "merges", slots * sizeof *b->bpe->pairs);
    for (int64_t rank = 0; rank < file->n_merges; rank++) {
        plumb_status status = resolve(b, rank);
        if (status == PLUMB_OK) status = add_pair(b, rank);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

/* Every merge that makes a token ranks before every merge that uses it: going through the ranks,
 * nothing is made that has already been used. */
static plumb_status check_order(const builder *b) {
    bool *used = calloc((size_t)b->bpe->vocabulary->size, sizeof *used);
    if (!used) return plumb__fail_memory(b->err, "merges", (size_t)b->bpe->vocabulary->size);
    bool ordered = true;
    for (int64_t rank = 0; rank < b->file->n_merges && ordered; rank++) {
        const int32_t *ids = b->parts[rank];
        used[ids[0]] = used[ids[1]] = true;
        ordered = !used[ids[2]];
    }
    b->bpe->ordered = ordered;
    free(used);
    return PLUMB_OK;
}

/* Finds, by rank, the merge that makes each token when it is encoded alone.  There is none for a
 * token whose parts merge across their boundary before they would merge as wholes; such a token
 * never comes out of an encoding. */
static plumb_status build_derivations(const builder *b) {
    plumb__bpe *bpe = b->bpe;
    int64_t size = bpe->vocabulary->size;
    bpe->derivations = malloc((size_t)size * sizeof *bpe->derivations);
    if (!bpe->derivations)
        return plumb__fail_memory(b->err, "merges", (size_t)size * sizeof *bpe->derivations);
    for (int64_t id = 0; id < size; id++)
        bpe->derivations[id] = (plumb__derivation){-1, -1, PLUMB_NEVER, -1};
    for (int byte = 0; byte < 256; byte++) bpe->derivations[bpe->byte_id[byte]].born = -1;
    for (int64_t rank = 0; rank < b->file->n_merges; rank++) {
        const int32_t *ids = b->parts[rank];
        plumb__derivation *result = &bpe->derivations[ids[2]];
        bool parts_exist = bpe->derivations[ids[0]].born != PLUMB_NEVER &&
                           bpe->derivations[ids[1]].born != PLUMB_NEVER;
        if (result->born != PLUMB_NEVER || !parts_exist) continue;
        if (!plumb__bpe_stay_apart(bpe, ids[0], ids[1], (int32_t)rank)) continue;
        *result = (plumb__derivation){ids[0], ids[1], (int32_t)rank, -1};
    }
    return PLUMB_OK;
}

/* ---- Prefix tree ---- */

/* Ids that encodings can hold, shorter ones first: then a token is entered after all of its
 * prefixes and before everything that it is a prefix of, and its node takes its id as number. */
static int32_t *by_length(const plumb__bpe *bpe, int64_t *count, size_t *total_bytes) {
    const plumb__vocabulary *v = bpe->vocabulary;
    size_t longest = 0;
    for (int64_t id = 0; id < v->size; id++) {
        size_t size = plumb__token(v, id).size;
        if (size > longest) longest = size;
    }
    int64_t *place = calloc(longest + 2, sizeof *place);
    int32_t *order = malloc((size_t)v->size * sizeof *order);
    *count = 0;
    *total_bytes = 0;
    if (place && order) {
        for (int64_t id = 0; id < v->size; id++) {
            if (bpe->derivations[id].born == PLUMB_NEVER) continue;
            place[plumb__token(v, id).size + 1]++;
            *total_bytes += plumb__token(v, id).size;
            ++*count;
        }
        for (size_t length = 1; length <= longest; length++) place[length] += place[length - 1];
        for (int64_t id = 0; id < v->size; id++)
            if (bpe->derivations[id].born != PLUMB_NEVER)
                order[place[plumb__token(v, id).size]++] = (int32_t)id;
    } else {
        free(order);
        order = NULL;
    }
    free(place);
    return order;
}

static plumb__edge_slot *edge(const plumb__bpe *bpe, uint32_t node, char byte, uint32_t *key) {
    *key = (node << 8 | (unsigned char)byte) + 1;
    uint64_t i = plumb__hash_key(*key) & bpe->edge_mask;
    while (bpe->edges[i].key != *key && bpe->edges[i].key != 0) i = (i + 1) & bpe->edge_mask;
    return &bpe->edges[i];
}

static plumb_status grow_edges(plumb__bpe *bpe, plumb_error *err) {
    plumb__edge_slot *old = bpe->edges;
    uint64_t old_slots = old ? bpe->edge_mask + 1 : 0, slots = old ? old_slots * 2 : 1024;
    bpe->edges = calloc(slots, sizeof *bpe->edges);
    if (!bpe->edges) {
        bpe->edges = old;
        return plumb__fail_memory(err, "prefix tree", slots * sizeof *old);
    }
    bpe->edge_mask = slots - 1;
    for (uint64_t i = 0; i < old_slots; i++) {
        if (!old[i].key) continue;
        uint64_t j = plumb__hash_key(old[i].key) & bpe->edge_mask;
        while (bpe->edges[j].key) j = (j + 1) & bpe->edge_mask;
        bpe->edges[j] = old[i];
    }
    free(old);
    return PLUMB_OK;
}

static plumb_status add_to_tree(plumb__bpe *bpe, int32_t id, int64_t *n_edges, plumb_error *err) {
    const plumb__vocabulary *v = bpe->vocabulary;
    plumb__slice token = plumb__token(v, id);
    uint32_t node = (uint32_t)bpe->byte_id[(unsigned char)token.bytes[0]], key;
    for (size_t at = 1; at < token.size; at++) {
        if (node < (uint32_t)v->size) bpe->derivations[id].shorter = (int32_t)node;
        plumb__edge_slot *slot = edge(bpe, node, token.bytes[at], &key);
        if (!slot->key) {
            bool last = at + 1 == token.size;
            *slot = (plumb__edge_slot){key, last ? (uint32_t)id : (uint32_t)bpe->n_nodes++};
            ++*n_edges;
            node = slot->target;
            if ((uint64_t)*n_edges * 4 > bpe->edge_mask * 3) {
                plumb_status status = grow_edges(bpe, err);
                if (status != PLUMB_OK) return status;
            }
            continue;
        }
        node = slot->target;
    }
    return PLUMB_OK;
}

static plumb_status build_tree(const builder *b) {
    plumb__bpe *bpe = b->bpe;
    int64_t count, n_edges = 0;
    size_t total_bytes;
    int32_t *order = by_length(bpe, &count, &total_bytes);
    if (!order) return plumb__fail_memory(b->err, "prefix tree", (size_t)bpe->vocabulary->size * 4);
    bpe->n_nodes = bpe->vocabulary->size;
    plumb_status status = PLUMB_OK;
    /* A node number and a byte share 32 bits. */
    if (total_bytes + (size_t)bpe->vocabulary->size >= 1u << 24)
        status = refuse(b, "model.vocab", -1, plumb__format("%zu bytes of tokens", total_bytes),
                        "less than 2^24");
    if (status == PLUMB_OK) status = grow_edges(bpe, b->err);
    for (int64_t i = 0; status == PLUMB_OK && i < count; i++)
        status = add_to_tree(bpe, order[i], &n_edges, b->err);
    free(order);
    return status;
}

plumb_status plumb__bpe_build(plumb__bpe *bpe, const plumb__vocabulary *vocabulary,
                              const plumb__tokenizer_json *file, plumb_error *err) {
    *bpe = (plumb__bpe){.vocabulary = vocabulary};
    builder b = {.bpe = bpe, .file = file, .err = err};
    size_t longest = 0;
    for (int64_t i = 0; i < file->n_merges; i++) {
        size_t size = file->merges[i].left.size + file->merges[i].right.size;
        if (size > longest) longest = size;
    }
    b.bytes = malloc(longest + 1);
    b.parts = malloc(((size_t)file->n_merges + 1) * sizeof *b.parts);
    plumb_status status = PLUMB_OK;
    if (!b.bytes || !b.parts)
        status = plumb__fail_memory(err, "merges", longest + (size_t)file->n_merges);
    if (status == PLUMB_OK) status = find_bytes(&b);
    if (status == PLUMB_OK) status = build_pairs(&b);
    if (status == PLUMB_OK) status = check_order(&b);
    if (status == PLUMB_OK && bpe->ordered) status = build_derivations(&b);
    if (status == PLUMB_OK && bpe->ordered) status = build_tree(&b);
    free(b.bytes);
    free(b.parts);
    return status;
}

void plumb__bpe_free(plumb__bpe *bpe) {
    free(bpe->pairs);
    free(bpe->pair_filter);
    free(bpe->derivations);
    free(bpe->edges);
    *bpe = (plumb__bpe){0};
}
