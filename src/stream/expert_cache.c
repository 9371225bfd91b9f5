#include "stream/expert_cache_parts.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdlib.h>

enum {
    WARMING = 4, /* loads of the hot list under way at a time */
    PREPARED = 8 /* pieces of memory ready for slots that were never used */
};

/* ---- Life ------------------------------------------------------------------------------------ */

static plumb_status allocate(plumb_expert_cache *c, const plumb_expert_cache_options *options,
                             plumb_error *err) {
    int64_t experts = c->config->experts;
    plumb_status status = plumb__slot_table_open(c->config->layers * experts, options->slots,
                                                 options->eviction, &c->table, err);
    if (status != PLUMB_OK) return status;
    c->wanted = calloc((size_t)experts, sizeof *c->wanted);
    c->out = calloc((size_t)experts, sizeof *c->out);
    c->ahead = calloc((size_t)experts, sizeof *c->ahead);
    if (!c->wanted || !c->out || !c->ahead)
        return plumb__fail_memory(err, "expert cache", (size_t)experts * sizeof *c->wanted);
    return PLUMB_OK;
}

plumb_status plumb__expert_cache_open(const plumb_checkpoint *checkpoint,
                                      const plumb_expert_cache_options *options,
                                      plumb_expert_cache **out, plumb_error *err) {
    plumb_read_queue *queue;
    plumb_status status =
        plumb__read_queue_open(options->reader, options->piece_bytes, &queue, err);
    if (status != PLUMB_OK) {
        options->reader->ops->close(options->reader);
        return status;
    }
    plumb_expert_cache *c = calloc(1, sizeof *c);
    if (!c) {
        plumb__read_queue_close(queue);
        return plumb__fail_memory(err, "expert cache", sizeof *c);
    }
    c->checkpoint = checkpoint;
    c->config = plumb__checkpoint_config(checkpoint);
    c->queue = queue;
    c->backend = options->backend;
    c->uncached = options->uncached;
    c->log = options->log;
    c->log_user = options->log_user;
    c->target = options->slots;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->arrived, NULL);
    pthread_cond_init(&c->room_free, NULL);
    status = allocate(c, options, err);
    if (status == PLUMB_OK) status = plumb__expert_files_open(c, err);
    if (status == PLUMB_OK) status = plumb__expert_rooms_open(c, err);
    if (status == PLUMB_OK) status = plumb__expert_table_open(c, err);
    c->slot_bytes = plumb__expert_layout_bytes(c->config, c->alignment);
    if (status == PLUMB_OK)
        status = plumb__slot_memory_open(plumb__read_queue_reader(queue), c->backend, c->slot_bytes,
                                         options->uncached ? PREPARED : 0, &c->memory, err);
    if (status == PLUMB_OK) *out = c;
    else plumb__expert_cache_close(c);
    return status;
}

/* A load that nobody wants any more. */
static void stop_load(plumb_expert_cache *c, expert_slot *slot) {
    if (!slot->loading) return;
    slot->given_up = !plumb__read_queue_cancel(c->queue, &slot->load);
    if (slot->given_up) return; /* ends with the pieces that are under way */
    slot->loading = false;
    if (slot->warming) c->warming--;
    slot->warming = false;
    plumb__slot_unpin(&c->table, slot->number);
    plumb__slot_drop(&c->table, slot->number);
}

void plumb__expert_cache_close(plumb_expert_cache *c) {
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->next_warm = c->n_warm;
    for (int64_t i = 0; i < c->slot_room; i++)
        if (c->slot[i]) stop_load(c, c->slot[i]);
    pthread_mutex_unlock(&c->lock);
    plumb__read_queue_wait_idle(c->queue);
    for (int64_t i = 0; i < c->slot_room; i++) {
        if (!c->slot[i]) continue;
        plumb__expert_unmap(c, c->slot[i]);
        free(c->slot[i]->fault);
        free(c->slot[i]);
    }
    plumb__expert_table_close(c);
    plumb__slot_memory_close(c->memory);
    plumb__read_queue_close(c->queue);
    plumb__expert_files_close(c);
    plumb__slot_table_free(&c->table);
    free(c->slot);
    free(c->wanted);
    free(c->out);
    free(c->ahead);
    free(c->warm);
    free(c->rooms);
    pthread_cond_destroy(&c->room_free);
    pthread_cond_destroy(&c->arrived);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- Beginning loads ------------------------------------------------------------------------- */

static int64_t key_of(const plumb_expert_cache *c, int64_t layer, int64_t id) {
    return layer * c->config->experts + id;
}

/* Takes slots out of use, or brings them back, until there are as many as there should be: those in
 * use stay for now. */
static void settle(plumb_expert_cache *c) {
    plumb_error ignored; /* without memory for the table there are fewer slots */
    if (c->table.slots < c->target)
        (void)!plumb__slot_table_grow(&c->table, c->target, &ignored);
    while (c->table.slots > c->target) {
        int64_t number = plumb__slot_retire(&c->table);
        if (number < 0) break;
        if (number < c->slot_room && c->slot[number]) plumb__expert_unmap(c, c->slot[number]);
    }
    plumb__slot_memory_limit(c->memory, c->table.slots);
}

/* Requested experts first; then those read ahead, which must leave half of the slots alone. */
static plumb_status begin_loads(plumb_expert_cache *c, plumb_error *err) {
    for (; c->next_wanted < c->n_wanted; c->next_wanted++) {
        wanted_expert *w = &c->wanted[c->next_wanted];
        if (w->slot >= 0) continue;
        bool displaced;
        plumb_status status = plumb__expert_load(c, w->key, true, &w->slot, &displaced, err);
        if (status != PLUMB_OK || w->slot < 0) return status;
        c->slot[w->slot]->requested = true;
        plumb__slot_pin(&c->table, w->slot);
        plumb__slot_use(&c->table, w->slot, w->rows);
        if (displaced && c->sweeps) plumb__slot_pass(&c->table, w->slot);
    }
    for (; c->next_ahead < c->n_ahead && c->held_ahead < c->table.slots / 2; c->next_ahead++) {
        int64_t key = c->ahead[c->next_ahead], number = plumb__slot_find(&c->table, key);
        plumb_error ignored; /* it will be met again when the expert is needed */
        bool is_here = number >= 0, displaced = false;
        if (!is_here &&
            (plumb__expert_load(c, key, false, &number, &displaced, &ignored) != PLUMB_OK || number < 0))
            return PLUMB_OK;
        if (displaced && c->ahead_sweeps) plumb__slot_pass(&c->table, number);
        expert_slot *slot = c->slot[number];
        if (slot->ahead) continue;
        slot->guessed = !is_here;
        slot->ahead = true;
        c->held_ahead++;
        plumb__slot_pin(&c->table, number);
    }
    return PLUMB_OK;
}

void plumb__expert_go_on_warming(plumb_expert_cache *c) {
    plumb_error ignored;
    while (c->next_warm < c->n_warm && c->warming < WARMING && c->table.used < c->table.slots) {
        int64_t key = c->warm[c->next_warm++], number;
        if (plumb__slot_find(&c->table, key) >= 0) continue;
        bool displaced;
        if (plumb__expert_load(c, key, false, &number, &displaced, &ignored) != PLUMB_OK ||
            number < 0) {
            c->next_warm = c->n_warm;
            return;
        }
        c->slot[number]->warming = true;
        c->warming++;
    }
}

void plumb__expert_cache_warm(plumb_expert_cache *c, const int32_t *keys, int64_t n) {
    int32_t *copy = malloc((size_t)n * sizeof *copy);
    if (!copy) return; /* a cold start, then */
    for (int64_t i = 0; i < n; i++) copy[i] = keys[i];
    pthread_mutex_lock(&c->lock);
    free(c->warm);
    c->warm = copy;
    c->n_warm = n;
    c->next_warm = 0;
    plumb__expert_go_on_warming(c);
    pthread_mutex_unlock(&c->lock);
}

/* ---- Read ahead ------------------------------------------------------------------------------ */

/* What was read ahead may give way again; what is not needed and not there yet is not read. */
static void release_ahead(plumb_expert_cache *c) {
    for (int64_t i = 0; i < c->next_ahead; i++) {
        int64_t number = plumb__slot_find(&c->table, c->ahead[i]);
        if (number < 0 || !c->slot[number]->ahead) continue;
        expert_slot *slot = c->slot[number];
        slot->ahead = false;
        c->held_ahead--;
        plumb__slot_unpin(&c->table, number);
        if (slot->guessed && slot->requested) c->stats.ahead_useful++;
        if (slot->guessed && !slot->requested) c->stats.ahead_wasted++;
        slot->guessed = false;
        if (!slot->requested) stop_load(c, slot);
    }
    c->n_ahead = c->next_ahead = 0;
}

void plumb__expert_cache_read_ahead(plumb_expert_cache *c, int64_t layer, const int32_t *ids,
                                    int64_t n) {
    plumb_error ignored;
    pthread_mutex_lock(&c->lock);
    release_ahead(c);
    if (!ids) n = c->config->experts;
    for (int64_t i = 0; i < n; i++) c->ahead[i] = key_of(c, layer, ids ? ids[i] : i);
    c->n_ahead = n;
    c->ahead_sweeps = plumb__slot_is_sweep(n, c->config->experts);
    (void)!begin_loads(c, &ignored);
    pthread_mutex_unlock(&c->lock);
}

/* ---- Requests -------------------------------------------------------------------------------- */

plumb_status plumb__expert_cache_request(plumb_expert_cache *c, int64_t layer, const int32_t *ids,
                                         const int32_t *rows, int64_t n, plumb_error *err) {
    pthread_mutex_lock(&c->lock);
    c->sweeps = plumb__slot_is_sweep(n, c->config->experts);
    /* First hold on to what is here: nothing of it may give way to the rest. */
    for (int64_t i = 0; i < n; i++) {
        int64_t key = key_of(c, layer, ids[i]), number = plumb__slot_find(&c->table, key);
        c->wanted[i] = (wanted_expert){.key = key, .slot = number, .rows = rows[i]};
        if (number < 0 || !c->slot[number]->ready || c->slot[number]->guessed) c->stats.misses++;
        else c->stats.hits++;
        if (number < 0) continue;
        c->slot[number]->requested = true;
        plumb__slot_pin(&c->table, number);
        bool passing = c->sweeps && c->table.slot[number].passing; /* read ahead in this sweep */
        plumb__slot_use(&c->table, number, rows[i]);
        if (passing) plumb__slot_pass(&c->table, number);
        if (c->slot[number]->loading) plumb__read_queue_urge(c->queue, &c->slot[number]->load);
    }
    c->n_wanted = n;
    c->next_wanted = c->n_taken = 0;
    release_ahead(c);
    settle(c);
    plumb_status status = begin_loads(c, err);
    pthread_mutex_unlock(&c->lock);
    if (status != PLUMB_OK) plumb__expert_cache_abandon(c);
    return status;
}

/* A requested expert that failed to load, or NULL. */
static const expert_slot *find_failed(const plumb_expert_cache *c) {
    for (int64_t i = 0; i < c->n_wanted; i++) {
        if (c->wanted[i].slot < 0 || c->wanted[i].taken) continue;
        const expert_slot *slot = c->slot[c->wanted[i].slot];
        if (!slot->loading && !slot->ready) return slot;
    }
    return NULL;
}

static int64_t take_ready(plumb_expert_cache *c, int64_t most, int32_t *which,
                          plumb_expert *experts) {
    int64_t count = 0;
    for (int64_t i = 0; i < c->n_wanted && count < most; i++) {
        wanted_expert *w = &c->wanted[i];
        if (w->slot < 0 || w->taken || !c->slot[w->slot]->ready) continue;
        const expert_slot *slot = c->slot[w->slot];
        w->taken = true;
        which[count] = (int32_t)i;
        experts[count++] = plumb__expert_layout_bind(&slot->layout, slot->memory);
        c->out[c->n_out++] = w->slot;
    }
    c->n_taken += count;
    return count;
}

static plumb_status failed(const expert_slot *slot, plumb_error *err) {
    if (!slot->fault) return plumb__fail_memory(err, "expert", sizeof *slot->fault);
    if (err) *err = *slot->fault;
    return slot->fault->status;
}

plumb_status plumb__expert_cache_take(plumb_expert_cache *c, int64_t most, bool wait,
                                      int32_t *which, plumb_expert *experts, int64_t *count,
                                      plumb_error *err) {
    plumb_status status = PLUMB_OK;
    double started = 0;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        *count = take_ready(c, most, which, experts);
        if (*count > 0 || !wait || c->n_taken == c->n_wanted) break;
        const expert_slot *slot = find_failed(c);
        if (slot) {
            status = failed(slot, err);
            break;
        }
        status = begin_loads(c, err);
        if (status != PLUMB_OK) break;
        if (started == 0) started = plumb__now();
        pthread_cond_wait(&c->arrived, &c->lock);
    }
    if (started > 0) c->stats.wait_seconds += plumb__now() - started;
    pthread_mutex_unlock(&c->lock);
    return status;
}

static void give_back(plumb_expert_cache *c) {
    for (int64_t i = 0; i < c->n_out; i++) {
        c->slot[c->out[i]]->requested = false;
        plumb__slot_unpin(&c->table, c->out[i]);
    }
    c->n_out = 0;
}

void plumb__expert_cache_give_back(plumb_expert_cache *c) {
    plumb_error ignored; /* `take` begins what is still missing, and reports */
    pthread_mutex_lock(&c->lock);
    give_back(c);
    (void)!begin_loads(c, &ignored);
    pthread_mutex_unlock(&c->lock);
}

void plumb__expert_cache_abandon(plumb_expert_cache *c) {
    pthread_mutex_lock(&c->lock);
    give_back(c);
    for (int64_t i = 0; i < c->n_wanted; i++) {
        if (c->wanted[i].slot < 0 || c->wanted[i].taken) continue;
        expert_slot *slot = c->slot[c->wanted[i].slot];
        slot->requested = false;
        plumb__slot_unpin(&c->table, slot->number);
        if (slot->loading) stop_load(c, slot);
        else if (!slot->ready) plumb__expert_drop_failed(c, slot);
    }
    c->n_wanted = c->next_wanted = c->n_taken = 0;
    release_ahead(c);
    pthread_mutex_unlock(&c->lock);
}

/* ---- Size and figures ------------------------------------------------------------------------ */

void plumb__expert_cache_set_slots(plumb_expert_cache *c, int64_t slots, plumb_eviction eviction) {
    pthread_mutex_lock(&c->lock);
    c->table.eviction = eviction;
    c->target = slots < 1 ? 1 : slots < c->table.keys ? slots : c->table.keys;
    settle(c);
    pthread_mutex_unlock(&c->lock);
}

int64_t plumb__expert_cache_slot_bytes(const plumb_expert_cache *c) { return c->slot_bytes; }

void plumb__expert_cache_uses(plumb_expert_cache *c, uint32_t *uses) {
    pthread_mutex_lock(&c->lock);
    for (int64_t i = 0; i < c->table.keys; i++) uses[i] = c->table.uses[i];
    pthread_mutex_unlock(&c->lock);
}

void plumb__expert_cache_get_stats(plumb_expert_cache *c, plumb_expert_cache_stats *stats) {
    pthread_mutex_lock(&c->lock);
    *stats = c->stats;
    stats->slots = c->table.slots;
    stats->held = c->table.used;
    stats->bytes = plumb__slot_memory_bytes(c->memory);
    pthread_mutex_unlock(&c->lock);
    plumb__read_queue_stats(c->queue, &stats->reads);
}
