/* Moving readings on. */
#include "grammar/machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- Frames ---- */

static uint64_t frame_hash(int32_t node, int32_t count, int32_t parent, int32_t depth) {
    uint64_t hash = (uint64_t)(uint32_t)node << 32 | (uint32_t)parent;
    hash = (hash ^ hash >> 31) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= (uint64_t)(uint32_t)count << 32 | (uint32_t)depth;
    hash = (hash ^ hash >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return hash ^ hash >> 32;
}

static int32_t *slot_of(const plumb__machine *m, int32_t node, int32_t count, int32_t parent, int32_t depth) {
    uint64_t mask = (uint64_t)m->n_slots - 1, at = frame_hash(node, count, parent, depth) & mask;
    for (; m->slots[at] >= 0; at = (at + 1) & mask) {
        const plumb__frame *frame = &m->frames[m->slots[at]];
        if (frame->node == node && frame->count == count && frame->parent == parent && frame->depth == depth) break;
    }
    return &m->slots[at];
}

static bool make_slots(plumb__machine *m, int64_t n_slots) {
    int32_t *slots = malloc((size_t)n_slots * sizeof *slots);
    if (!slots) return false;
    free(m->slots);
    m->slots = slots;
    m->n_slots = n_slots;
    for (int64_t i = 0; i < n_slots; i++) slots[i] = -1;
    for (int64_t i = 0; i < m->n_frames; i++) {
        const plumb__frame *f = &m->frames[i];
        *slot_of(m, f->node, f->count, f->parent, f->depth) = (int32_t)i;
    }
    return true;
}

bool plumb__machine_open(plumb__machine *m, const plumb_grammar *grammar) {
    *m = (plumb__machine){.grammar = grammar};
    return make_slots(m, 256);
}

void plumb__machine_close(plumb__machine *m) {
    free(m->frames);
    free(m->slots);
}

int32_t plumb__frame_push(plumb__machine *m, int32_t node, int32_t count, int32_t parent, int32_t depth) {
    int32_t *slot = slot_of(m, node, count, parent, depth);
    if (*slot >= 0) return *slot;
    plumb__frame *grown = plumb__grow(m->frames, &m->frames_capacity, m->n_frames + 1, sizeof *grown);
    if (grown) m->frames = grown;
    if (!grown || (2 * m->n_frames >= m->n_slots && !make_slots(m, 2 * m->n_slots))) {
        m->out_of_memory = true;
        return -1;
    }
    m->frames[m->n_frames] = (plumb__frame){node, count, parent, depth};
    *slot_of(m, node, count, parent, depth) = (int32_t)m->n_frames;
    return (int32_t)m->n_frames++;
}

bool plumb__machine_compact(plumb__machine *m, plumb__readings *set) {
    plumb__machine fresh;
    if (!plumb__machine_open(&fresh, m->grammar)) {
        m->out_of_memory = true;
        return false;
    }
    for (int i = 0; i < set->count && !fresh.out_of_memory; i++) {
        int32_t stack[PLUMB__MOST_FRAMES + 2], size = 0, parent = -1;
        for (int32_t f = set->items[i].frame; f >= 0; f = m->frames[f].parent) stack[size++] = f;
        while (size > 0 && !fresh.out_of_memory) {
            const plumb__frame *frame = &m->frames[stack[--size]];
            parent = plumb__frame_push(&fresh, frame->node, frame->count, parent, frame->depth);
        }
        set->items[i].frame = parent;
    }
    plumb__machine_close(m);
    *m = fresh;
    return !m->out_of_memory;
}

/* ---- Steps ---- */

static bool same_reading(const plumb__reading *a, const plumb__reading *b) {
    return a->node == b->node && a->frame == b->frame && a->value == b->value && a->phase == b->phase &&
           a->count == b->count;
}

static void add(plumb__readings *to, const plumb__reading *reading) {
    for (int i = 0; i < to->count; i++)
        if (same_reading(&to->items[i], reading)) return;
    if (to->count < to->capacity) to->items[to->count++] = *reading;
}

/* Splits are what many ways meet at, so noting them is enough to pass everything once. */
static bool passed_before(plumb__machine *m, const plumb__reading *r) {
    for (int i = 0; i < m->n_passed; i++) {
        const int32_t *passed = m->passed[i];
        if (passed[0] == r->node && passed[1] == r->frame && passed[2] == r->count) return true;
    }
    if (m->n_passed == PLUMB__MOST_PASSED) return true;
    int32_t *passed = m->passed[m->n_passed++];
    passed[0] = r->node;
    passed[1] = r->frame;
    passed[2] = r->count;
    return false;
}

static void enter_loop(plumb__machine *m, const plumb__node *node, plumb__reading r, plumb__readings *to) {
    plumb__reading more = r, done = r;
    int32_t repeated = r.count;
    more.node = node->target;
    if (node->most != PLUMB__NO_LIMIT || repeated < node->least) more.count++;
    if (repeated < node->most) plumb__enter(m, more, to);
    done.node = node->next;
    done.count = 0;
    if (repeated >= node->least) plumb__enter(m, done, to);
}

void plumb__enter(plumb__machine *m, plumb__reading r, plumb__readings *to) {
    const plumb__node *node = plumb__node_at(m->grammar, r.node);
    const plumb__frame *frame = &m->frames[r.frame];
    if (frame->depth + node->need > PLUMB__MOST_FRAMES) return;
    int32_t end;
    switch ((plumb__node_kind)node->kind) {
    case PLUMB__NODE_END: {
        /* The frame stays where it is only as long as no other is made. */
        plumb__frame caller = *frame;
        r.node = caller.node;
        r.count = caller.count;
        r.frame = caller.parent;
        if (caller.parent < 0) add(to, &r);
        else plumb__enter(m, r, to);
        return;
    }
    case PLUMB__NODE_SPLIT:
        if (node->count > 1 && passed_before(m, &r)) return;
        for (int32_t i = 0; i < node->count; i++) {
            r.node = plumb__links_of(m->grammar)[node->first + i];
            plumb__enter(m, r, to);
        }
        return;
    case PLUMB__NODE_CALL:
        r.frame = plumb__frame_push(m, node->next, r.count, r.frame, frame->depth + 1);
        r.node = node->target;
        r.count = 0;
        if (r.frame >= 0) plumb__enter(m, r, to);
        return;
    case PLUMB__NODE_LOOP: enter_loop(m, node, r, to); return;
    default:
        end = plumb__lexeme_end(m->grammar, &r);
        if (plumb__lexeme_goes_on(m->grammar, &r)) add(to, &r);
        if (end < 0) return;
        r.node = end;
        r.value = 0;
        r.phase = 0;
        plumb__enter(m, r, to);
    }
}

void plumb__advance(plumb__machine *m, const plumb__reading *from, int count, uint8_t byte, plumb__readings *to) {
    plumb__begin_step(m);
    for (int i = 0; i < count; i++) {
        plumb__reading r = from[i];
        if (r.frame < 0) continue; /* a text that is finished or was left */
        if (plumb__lexeme_step(m->grammar, &r, byte, PLUMB__MOST_FRAMES - m->frames[r.frame].depth))
            plumb__enter(m, r, to);
    }
}

void plumb__advance_control(plumb__machine *m, const plumb__reading *from, int count, plumb__readings *to) {
    plumb__begin_step(m);
    for (int i = 0; i < count; i++) {
        const plumb__node *node = plumb__node_at(m->grammar, from[i].node);
        if (from[i].frame < 0 || node->kind != PLUMB__NODE_CONTROL) continue;
        plumb__reading r = from[i];
        r.node = node->next;
        plumb__enter(m, r, to);
    }
}

bool plumb__has_node(const plumb__readings *set, int32_t node) {
    for (int i = 0; i < set->count; i++)
        if (set->items[i].node == node) return true;
    return false;
}
