#include "stream/slot_table.h"

#include "base/error.h"

#include <stdlib.h>

const char *plumb__eviction_name(plumb_eviction eviction) {
    static const char *const names[PLUMB_EVICTIONS] = {"lru", "age/(1+uses)", "ring"};
    return names[eviction];
}

plumb_status plumb__slot_table_open(int64_t keys, int64_t slots, plumb_eviction eviction,
                                    plumb_slot_table *table, plumb_error *err) {
    *table = (plumb_slot_table){.keys = keys, .eviction = eviction};
    table->slot_of = calloc((size_t)keys, sizeof *table->slot_of);
    table->uses = calloc((size_t)keys, sizeof *table->uses);
    plumb_status status = table->slot_of && table->uses
                              ? plumb__slot_table_grow(table, slots, err)
                              : plumb__fail_memory(err, "expert slots", (size_t)keys * 8);
    for (int64_t i = 0; i < keys && status == PLUMB_OK; i++) table->slot_of[i] = -1;
    if (status != PLUMB_OK) plumb__slot_table_free(table);
    return status;
}

void plumb__slot_table_free(plumb_slot_table *table) {
    free(table->slot);
    free(table->slot_of);
    free(table->uses);
    *table = (plumb_slot_table){0};
}

int64_t plumb__slot_find(const plumb_slot_table *table, int64_t key) { return table->slot_of[key]; }

/* Is a's turn to give way before b's? */
static bool goes_first(const plumb_slot_table *t, const plumb_slot *a, const plumb_slot *b) {
    if (t->eviction == PLUMB_EVICT_OLDEST) return a->loaded < b->loaded;
    if (a->passing != b->passing) return a->passing;
    if (t->eviction == PLUMB_EVICT_LRU) return a->last_use < b->last_use;
    /* age_a / (1 + uses_a) > age_b / (1 + uses_b), without dividing. */
    int64_t age_a = t->clock - a->last_use, age_b = t->clock - b->last_use;
    return (double)age_a * (1.0 + t->uses[b->key]) > (double)age_b * (1.0 + t->uses[a->key]);
}

/* An empty slot, else the one that gives way, else -1. */
static int64_t choose(const plumb_slot_table *t) {
    int64_t best = -1;
    for (int64_t i = 0; i < t->capacity; i++) {
        const plumb_slot *slot = &t->slot[i];
        if (slot->key == PLUMB_SLOT_EMPTY) return i;
        if (slot->key == PLUMB_SLOT_RETIRED || slot->pins > 0 || t->frozen) continue;
        if (best < 0 || goes_first(t, slot, &t->slot[best])) best = i;
    }
    return best;
}

int64_t plumb__slot_claim(plumb_slot_table *table, int64_t key, int64_t *evicted) {
    *evicted = -1;
    if (table->pinned == table->slots) return -1;
    int64_t chosen = choose(table);
    if (chosen < 0) return -1;
    plumb_slot *slot = &table->slot[chosen];
    if (slot->key >= 0) {
        *evicted = slot->key;
        plumb__slot_drop(table, chosen);
    }
    table->clock++;
    *slot = (plumb_slot){.key = key, .last_use = table->clock, .loaded = table->clock};
    table->slot_of[key] = (int32_t)chosen;
    table->used++;
    return chosen;
}

void plumb__slot_use(plumb_slot_table *table, int64_t slot, int64_t uses) {
    uint32_t *held = &table->uses[table->slot[slot].key];
    *held = uses > (int64_t)(UINT32_MAX - *held) ? UINT32_MAX : *held + (uint32_t)uses;
    table->slot[slot].last_use = ++table->clock;
    table->slot[slot].passing = false;
}

void plumb__slot_pass(plumb_slot_table *table, int64_t slot) { table->slot[slot].passing = true; }

bool plumb__slot_is_sweep(int64_t n, int64_t experts) { return 2 * n > experts; }

void plumb__slot_pin(plumb_slot_table *table, int64_t slot) {
    if (table->slot[slot].pins++ == 0) table->pinned++;
}

void plumb__slot_unpin(plumb_slot_table *table, int64_t slot) {
    if (--table->slot[slot].pins == 0) table->pinned--;
}

void plumb__slot_drop(plumb_slot_table *table, int64_t slot) {
    if (table->slot[slot].key < 0) return;
    table->slot_of[table->slot[slot].key] = -1;
    table->slot[slot] = (plumb_slot){.key = PLUMB_SLOT_EMPTY};
    table->used--;
}

int64_t plumb__slot_retire(plumb_slot_table *table) {
    int64_t chosen = choose(table);
    if (chosen < 0) return -1;
    plumb__slot_drop(table, chosen);
    table->slot[chosen].key = PLUMB_SLOT_RETIRED;
    table->slots--;
    return chosen;
}

plumb_status plumb__slot_table_grow(plumb_slot_table *table, int64_t slots, plumb_error *err) {
    for (int64_t i = 0; i < table->capacity && table->slots < slots; i++) {
        if (table->slot[i].key != PLUMB_SLOT_RETIRED) continue;
        table->slot[i].key = PLUMB_SLOT_EMPTY;
        table->slots++;
    }
    if (table->slots >= slots) return PLUMB_OK;
    int64_t capacity = table->capacity + slots - table->slots;
    plumb_slot *moved = realloc(table->slot, (size_t)capacity * sizeof *moved);
    if (!moved) return plumb__fail_memory(err, "expert slots", (size_t)capacity * sizeof *moved);
    for (int64_t i = table->capacity; i < capacity; i++)
        moved[i] = (plumb_slot){.key = PLUMB_SLOT_EMPTY};
    table->slot = moved;
    table->capacity = capacity;
    table->slots = slots;
    return PLUMB_OK;
}
