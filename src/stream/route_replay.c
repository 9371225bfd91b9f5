#include "stream/route_replay.h"

#include "base/error.h"

#include <stdlib.h>

typedef struct cache {
    plumb_slot_table table;
    int64_t *held;    /* [experts] slots pinned for the group */
    int64_t *missing; /* [experts] places in the group */
    int64_t n_held;
} cache;

static void hold(cache *c, int64_t slot, int64_t uses) {
    plumb__slot_pin(&c->table, slot);
    plumb__slot_use(&c->table, slot, uses);
    c->held[c->n_held++] = slot;
}

static void let_go(cache *c) {
    while (c->n_held > 0) plumb__slot_unpin(&c->table, c->held[--c->n_held]);
}

/* What the cache does for one batch in one layer: the experts it has compute while the others are
 * read, so all of them stay until the layer is done.  A group that is larger than the cache goes
 * through it in parts.  Returns the hits. */
static int64_t serve(cache *c, const plumb_route_group *group, int64_t experts) {
    int64_t n_missing = 0, first = group->layer * experts, gone;
    for (int64_t i = 0; i < group->n; i++) {
        int64_t slot = plumb__slot_find(&c->table, first + group->id[i]);
        if (slot >= 0)
            hold(c, slot, group->uses[i]);
        else
            c->missing[n_missing++] = i;
    }
    for (int64_t m = 0; m < n_missing; m++) {
        int64_t i = c->missing[m];
        if (c->table.pinned == c->table.slots) let_go(c);
        int64_t slot = plumb__slot_claim(&c->table, first + group->id[i], &gone);
        hold(c, slot, group->uses[i]);
        if (gone >= 0 && plumb__slot_is_sweep(group->n, experts)) plumb__slot_pass(&c->table, slot);
    }
    let_go(c);
    return group->n - n_missing;
}

static void count(plumb_replay_count *kind, const plumb_route_group *group, bool starts,
                  int64_t hits) {
    if (starts) {
        kind->batches++;
        kind->tokens += group->rows;
    }
    kind->wanted += group->n;
    kind->hits += hits;
}

static plumb_status replay_groups(plumb_route_trace *trace, cache *caches, plumb_replay *replays,
                                  int64_t n, plumb_error *err) {
    int64_t batch = -1, experts = plumb__route_trace_shape(trace)->experts;
    bool decodes = false, more = true;
    for (;;) {
        plumb_route_group group;
        plumb_status status = plumb__route_trace_next(trace, &group, &more, err);
        if (status != PLUMB_OK || !more) return status;
        bool starts = group.batch != batch;
        batch = group.batch;
        if (starts) decodes = group.rows == 1;
        for (int64_t i = 0; i < n; i++) {
            plumb_replay *r = &replays[i];
            count(decodes ? &r->decode : &r->prefill, &group, starts,
                  serve(&caches[i], &group, experts));
        }
    }
}

static void close_cache(cache *c) {
    plumb__slot_table_free(&c->table);
    free(c->held);
    free(c->missing);
}

static plumb_status open_cache(const plumb_route_shape *shape, const plumb_replay *replay, cache *c,
                               plumb_error *err) {
    int64_t keys = shape->layers * shape->experts;
    /* More slots than there are experts stay empty. */
    int64_t slots = replay->slots < keys ? replay->slots : keys;
    plumb_status status = plumb__slot_table_open(keys, slots, replay->eviction, &c->table, err);
    if (status != PLUMB_OK) return status;
    size_t bytes = (size_t)shape->experts * sizeof *c->held;
    c->held = malloc(bytes);
    c->missing = malloc(bytes);
    return c->held && c->missing ? PLUMB_OK : plumb__fail_memory(err, "replay", bytes);
}

static int64_t distinct(const plumb_slot_table *table) {
    int64_t n = 0;
    for (int64_t key = 0; key < table->keys; key++) n += table->uses[key] > 0;
    return n;
}

plumb_status plumb__route_replay(const char *path, plumb_route_shape *shape, plumb_replay *replays,
                                 int64_t n, plumb_error *err) {
    plumb_route_trace *trace = NULL;
    plumb_status status = plumb__route_trace_open(path, &trace, err);
    if (status != PLUMB_OK) return status;
    plumb_route_shape found = *plumb__route_trace_shape(trace);
    cache *caches = calloc((size_t)n, sizeof *caches);
    if (!caches) status = plumb__fail_memory(err, "replay", (size_t)n * sizeof *caches);
    for (int64_t i = 0; i < n && status == PLUMB_OK; i++) {
        replays[i] = (plumb_replay){.slots = replays[i].slots, .eviction = replays[i].eviction};
        status = open_cache(&found, &replays[i], &caches[i], err);
    }
    if (status == PLUMB_OK) status = replay_groups(trace, caches, replays, n, err);
    for (int64_t i = 0; caches && i < n; i++) {
        if (status == PLUMB_OK) replays[i].distinct = distinct(&caches[i].table);
        close_cache(&caches[i]);
    }
    free(caches);
    plumb__route_trace_close(trace);
    if (status == PLUMB_OK) *shape = found;
    return status;
}

double plumb__replay_hit_rate(const plumb_replay_count *count) {
    return count->wanted > 0 ? (double)count->hits / (double)count->wanted : 0;
}

double plumb__replay_misses(const plumb_replay_count *count) {
    return count->tokens > 0 ? (double)(count->wanted - count->hits) / (double)count->tokens : 0;
}
