/* Getting one expert into a slot: descriptors, memory, the load, and the checks when it is there. */
#include "stream/expert_cache_parts.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Files ----------------------------------------------------------------------------------- */

plumb_status plumb__expert_files_open(plumb_expert_cache *c, plumb_error *err) {
    int64_t n = plumb__checkpoint_shards(c->checkpoint);
    c->fd = malloc((size_t)n * sizeof *c->fd);
    if (!c->fd) return plumb__fail_memory(err, "shards", (size_t)n * sizeof *c->fd);
    for (int64_t i = 0; i < n; i++) c->fd[i] = -1;
    c->alignment = 1;
    for (int64_t i = 0; i < n && c->uncached; i++) {
        bool uncached;
        char why[160];
        plumb_status status = plumb__checkpoint_open_uncached(c->checkpoint, i, &c->fd[i],
                                                              &uncached, why, sizeof why, err);
        if (status != PLUMB_OK) return status;
        /* Pages that one shard needs do the others no harm. */
        if (uncached) c->alignment = PLUMB_READ_ALIGNMENT;
        if (c->log && i == 0)
            c->log(c->log_user, PLUMB_LOG_INFO, plumb__format("files of experts: %s", why).s);
    }
    return PLUMB_OK;
}

void plumb__expert_files_close(plumb_expert_cache *c) {
    int64_t n = plumb__checkpoint_shards(c->checkpoint);
    for (int64_t i = 0; c->fd && i < n; i++)
        if (c->fd[i] >= 0) (void)close(c->fd[i]);
    free(c->fd);
}

static int file_of(const plumb_expert_cache *c, int shard) {
    return c->fd[shard] >= 0 ? c->fd[shard] : plumb__checkpoint_shard_fd(c->checkpoint, shard);
}

/* ---- Unpacking ------------------------------------------------------------------------------- */

/* Made once: a load must not fail, or wait for the system, for want of memory. */
plumb_status plumb__expert_rooms_open(plumb_expert_cache *c, plumb_error *err) {
    plumb_expert_layout any;
    plumb_status status = plumb__expert_layout_find(c->checkpoint, 0, 0, c->alignment, &any, err);
    if (status != PLUMB_OK || !plumb__expert_layout_is_packed(&any)) return status;
    int64_t bytes = plumb__expert_unpack_room(c->config);
    c->rooms = malloc((size_t)(PLUMB_UNPACKERS * bytes));
    if (!c->rooms)
        return plumb__fail_memory(err, "unpacking experts", (size_t)(PLUMB_UNPACKERS * bytes));
    for (; c->n_rooms < PLUMB_UNPACKERS; c->n_rooms++)
        c->room[c->n_rooms] = c->rooms + c->n_rooms * bytes;
    return PLUMB_OK;
}

/* On a thread of the reader.  Other reads stay in flight, and other threads unpack as well. */
static void unpack(expert_slot *slot) {
    plumb_expert_cache *c = slot->cache;
    if (!plumb__expert_layout_is_packed(&slot->layout)) return;
    pthread_mutex_lock(&c->lock);
    while (c->n_rooms == 0) pthread_cond_wait(&c->room_free, &c->lock);
    uint8_t *room = c->room[--c->n_rooms];
    pthread_mutex_unlock(&c->lock);
    double started = plumb__now();
    plumb__expert_unpack(&slot->layout, slot->memory, room);
    double seconds = plumb__now() - started;
    pthread_mutex_lock(&c->lock);
    c->room[c->n_rooms++] = room;
    c->stats.unpack_seconds += seconds;
    pthread_cond_signal(&c->room_free);
    pthread_mutex_unlock(&c->lock);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

void plumb__expert_unmap(plumb_expert_cache *c, expert_slot *slot) {
    if (slot->memory) plumb__slot_memory_give_back(c->memory, slot->memory);
    slot->memory = NULL;
}

/* The record of a slot, made when the slot is first used. */
static expert_slot *slot_at(plumb_expert_cache *c, int64_t number) {
    if (number >= c->slot_room) {
        int64_t room = c->slot_room;
        expert_slot **grown = plumb__grow(c->slot, &room, c->table.capacity, sizeof *grown);
        if (!grown) return NULL;
        memset(grown + c->slot_room, 0, (size_t)(room - c->slot_room) * sizeof *grown);
        c->slot = grown;
        c->slot_room = room;
    }
    if (!c->slot[number]) {
        expert_slot *slot = calloc(1, sizeof *slot);
        if (!slot) return NULL;
        slot->cache = c;
        slot->number = number;
        slot->listed = PLUMB_SLOT_EMPTY;
        c->slot[number] = slot;
    }
    return c->slot[number];
}

/* ---- Loads ----------------------------------------------------------------------------------- */

/* The name of the payload that a place in a shard belongs to: the page of an uncached read begins
 * before it. */
static const char *payload_at(const plumb_expert_layout *layout, int shard, int64_t offset) {
    const plumb_tensor *first = NULL;
    for (int i = 0; i < PLUMB_EXPERT_PAYLOADS; i++) {
        const plumb_tensor *t = layout->tensor[i];
        if (t->shard == shard && offset < plumb__expert_layout_end(layout, i) &&
            (!first || t->offset < first->offset))
            first = t;
    }
    return first ? first->name : layout->tensor[0]->name;
}

/* On a thread of the reader: is what arrived what the checkpoint said, and are they numbers?  Unpacks
 * it in between. */
static plumb_status check(expert_slot *slot, int error, int extent, int64_t offset,
                          plumb_error *err) {
    const plumb_expert_layout *layout = &slot->layout;
    const plumb_checkpoint *checkpoint = slot->cache->checkpoint;
    if (error) {
        int shard = layout->run[extent].shard;
        return plumb__fail(err, error == ECANCELED ? PLUMB_ERROR_CANCELLED : PLUMB_ERROR_IO,
                           plumb__checkpoint_shard_path(checkpoint, shard),
                           payload_at(layout, shard, offset), offset,
                           error == ENODATA ? "end of file" : strerror(error), "%lld bytes from %lld on",
                           (long long)layout->run[extent].needed,
                           (long long)layout->run[extent].offset);
    }
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < layout->n_runs && status == PLUMB_OK; i++) {
        const plumb_tensor *first = NULL;
        for (int t = 0; t < PLUMB_EXPERT_PAYLOADS && !first; t++)
            if (layout->tensor[t]->shard == layout->run[i].shard) first = layout->tensor[t];
        status = plumb__checkpoint_check_unchanged(checkpoint, first, err);
    }
    if (status == PLUMB_OK) unpack(slot);
    for (int i = 0; i < PLUMB_EXPERT_PAYLOADS && status == PLUMB_OK; i++)
        status = plumb__checkpoint_check_values(checkpoint, layout->tensor[i], 0,
                                                layout->tensor[i]->bytes,
                                                slot->memory + layout->place[i], err);
    return status;
}

void plumb__expert_drop_failed(plumb_expert_cache *c, expert_slot *slot) {
    free(slot->fault);
    slot->fault = NULL;
    plumb__slot_drop(&c->table, slot->number);
}

static void on_loaded(plumb_load *load, int error, int extent, int64_t offset) {
    expert_slot *slot = load->user;
    plumb_expert_cache *c = slot->cache;
    plumb_error fault;
    plumb_status status = check(slot, error, extent, offset, &fault);
    pthread_mutex_lock(&c->lock);
    bool failed = error == ECANCELED || (status != PLUMB_OK && slot->given_up);
    if (failed && (slot->requested || slot->ahead)) {
        /* Given up, and wanted again before the last piece was in: a fault of then may be one no more. */
        slot->given_up = false;
        plumb__read_queue_add(c->queue, load, slot->requested);
        pthread_mutex_unlock(&c->lock);
        return;
    }
    slot->loading = false;
    slot->ready = status == PLUMB_OK;
    plumb__slot_unpin(&c->table, slot->number);
    if (slot->warming) c->warming--;
    slot->warming = false;
    if (status != PLUMB_OK) {
        /* Whoever read ahead in vain will hear of it when it is needed. */
        if (slot->ahead) {
            plumb__slot_unpin(&c->table, slot->number);
            slot->ahead = false;
            c->held_ahead--;
        }
        if (slot->requested) {
            slot->fault = malloc(sizeof *slot->fault);
            if (slot->fault) *slot->fault = fault;
        } else {
            plumb__expert_drop_failed(c, slot);
        }
    }
    plumb__expert_go_on_warming(c);
    pthread_cond_broadcast(&c->arrived);
    pthread_mutex_unlock(&c->lock);
}

static void describe_load(plumb_expert_cache *c, expert_slot *slot) {
    plumb_load *load = &slot->load;
    *load = (plumb_load){.n_extents = slot->layout.n_runs, .done = on_loaded, .user = slot};
    for (int i = 0; i < load->n_extents; i++)
        load->extent[i] = (plumb_extent){.fd = file_of(c, slot->layout.run[i].shard),
                                         .offset = slot->layout.run[i].offset,
                                         .size = slot->layout.run[i].size,
                                         .needed = slot->layout.run[i].needed,
                                         .into = slot->memory + slot->layout.run[i].place};
}

/* A slot with memory for the key, or NULL when there is none now.  Where the system has no more memory,
 * there are as many slots as have some, and only what is urgent makes others give way for want of it;
 * without a single one *err tells. */
static expert_slot *claim(plumb_expert_cache *c, int64_t key, bool urgent, bool *displaced,
                          plumb_error *err) {
    for (bool again = true; again && c->table.slots > 0; again = urgent) {
        int64_t evicted, number = plumb__slot_claim(&c->table, key, &evicted);
        if (number < 0) return NULL;
        *displaced = evicted >= 0;
        expert_slot *slot = slot_at(c, number);
        if (slot && !slot->memory) slot->memory = plumb__slot_memory_take(c->memory);
        if (slot && slot->memory) return slot;
        plumb__slot_drop(&c->table, number);
        (void)plumb__slot_retire(&c->table);
        plumb__slot_memory_limit(c->memory, c->table.slots);
        c->target = c->table.slots > 0 ? c->table.slots : 1;
    }
    (void)plumb__fail_memory(err, "expert slot", (size_t)c->slot_bytes);
    return NULL;
}

plumb_status plumb__expert_load(plumb_expert_cache *c, int64_t key, bool urgent, int64_t *number,
                                bool *displaced, plumb_error *err) {
    *number = -1;
    *displaced = false;
    plumb_expert_layout layout;
    plumb_status status =
        plumb__expert_layout_find(c->checkpoint, key / c->config->experts, key % c->config->experts,
                                  c->alignment, &layout, err);
    if (status != PLUMB_OK) return status;
    expert_slot *slot = claim(c, key, urgent, displaced, err);
    if (!slot) return c->table.slots > 0 ? PLUMB_OK : PLUMB_ERROR_MEMORY;
    slot->layout = layout;
    slot->loading = true;
    slot->ready = slot->guessed = slot->given_up = false;
    plumb__slot_pin(&c->table, slot->number);
    describe_load(c, slot);
    plumb__read_queue_add(c->queue, &slot->load, urgent);
    *number = slot->number;
    return PLUMB_OK;
}
