/* The table by which a backend finds experts itself, and the promise that nothing of it gives way. */
#include "stream/expert_cache_parts.h"

#include "base/error.h"

plumb_status plumb__expert_table_open(plumb_expert_cache *c, plumb_error *err) {
    if (!c->backend || !c->backend->ops->address) return PLUMB_OK;
    int64_t bytes = c->table.keys * (int64_t)sizeof *c->addresses;
    c->addresses = c->backend->ops->allocate(c->backend, bytes);
    return c->addresses ? PLUMB_OK : plumb__fail_memory(err, "expert table", (size_t)bytes);
}

void plumb__expert_table_close(plumb_expert_cache *c) {
    if (c->addresses) c->backend->ops->release(c->backend, c->addresses);
}

const plumb_expert_addresses *plumb__expert_cache_addresses(const plumb_expert_cache *c) {
    return c->addresses;
}

static plumb_expert_addresses addresses_of(const plumb_expert_cache *c, const expert_slot *slot) {
    plumb_expert_addresses all;
    uint64_t memory = c->backend->ops->address(c->backend, slot->memory);
    for (int i = 0; i < PLUMB_EXPERT_PAYLOADS; i++)
        all.payload[i] = memory + (uint64_t)slot->layout.place[i];
    return all;
}

/* What the slot has for the table: a key, or none. */
static int64_t key_to_list(const plumb_expert_cache *c, const expert_slot *slot) {
    int64_t key = c->table.slot[slot->number].key;
    return slot->ready && key >= 0 ? key : PLUMB_SLOT_EMPTY;
}

static bool is_listed(const plumb_expert_cache *c, const expert_slot *slot) {
    return slot->listed == key_to_list(c, slot) && slot->listed_memory == slot->memory;
}

/* The device is idle: now, and only now, may its table change.  First what is in a slot no more, since it
 * may be in another. */
static void list_experts(plumb_expert_cache *c) {
    for (int64_t i = 0; i < c->slot_room; i++)
        if (c->slot[i] && !is_listed(c, c->slot[i]) && c->slot[i]->listed >= 0)
            c->addresses[c->slot[i]->listed] = (plumb_expert_addresses){{0}};
    for (int64_t i = 0; i < c->slot_room; i++) {
        expert_slot *slot = c->slot[i];
        if (!slot || is_listed(c, slot)) continue;
        slot->listed = key_to_list(c, slot);
        slot->listed_memory = slot->memory;
        if (slot->listed >= 0) c->addresses[slot->listed] = addresses_of(c, slot);
    }
}

bool plumb__expert_cache_hold(plumb_expert_cache *c, int64_t rows) {
    enum { DECODING = 8 }; /* more rows miss in nearly every layer, unless all experts are here */
    if (!c->addresses) return false;
    pthread_mutex_lock(&c->lock);
    bool holds = c->table.eviction != PLUMB_EVICT_OLDEST &&
                 (rows <= DECODING || c->table.slots == c->table.keys);
    if (holds) list_experts(c);
    c->table.frozen = holds;
    pthread_mutex_unlock(&c->lock);
    return holds;
}

void plumb__expert_cache_let_go(plumb_expert_cache *c) {
    pthread_mutex_lock(&c->lock);
    c->table.frozen = false;
    pthread_mutex_unlock(&c->lock);
}

void plumb__expert_cache_used(plumb_expert_cache *c, int64_t layer, const int32_t *ids,
                              const int32_t *rows, int64_t n) {
    pthread_mutex_lock(&c->lock);
    for (int64_t i = 0; i < n; i++) {
        int64_t number = plumb__slot_find(&c->table, layer * c->config->experts + ids[i]);
        if (number < 0) continue;
        plumb__slot_use(&c->table, number, rows[i]);
        expert_slot *slot = c->slot[number];
        if (slot->guessed) { /* as a request would see it: it had to be read, and the guess was right */
            c->stats.misses++;
            c->stats.ahead_useful++;
        } else {
            c->stats.hits++;
        }
        slot->guessed = false;
    }
    pthread_mutex_unlock(&c->lock);
}
