/* Prompts that begin alike, evaluated once.
 *
 * Jobs that come together often have a long beginning in common that nobody has evaluated yet: the instructions of a
 * program that asks several things at once.  The first of them in a slot reads it and stops there for a moment; the
 * others wait for that, and go on with a copy.  Each waits only for slots that were taken before its own, so that
 * never two wait for each other, and only for one that goes on: if that one is cancelled, the next is the first. */
#include "server/scheduler_state.h"

/* A stop in a prompt costs the windows above the last compressed keys once more, and a wait costs patience. */
enum { QUANTA_WORTH_A_STOP = 2 };

static int64_t common_beginning(const plumb_tokens *a, const plumb_tokens *b) {
    int64_t most = a->count < b->count ? a->count : b->count, n = 0;
    while (n < most && a->ids[n] == b->ids[n]) n++;
    return n;
}

static int64_t known(const plumb_slot *slot, const plumb_tokens *prompt) {
    return plumb_session_known(slot->session, prompt->ids, prompt->count);
}

/* How many of the prompt's tokens a copy of the slot's session has: not those of a prompt that is not read whole. */
static int64_t lent(const plumb_slot *slot, const plumb_tokens *prompt) {
    int64_t n = known(slot, prompt), length = plumb_session_length(slot->session);
    return n < length ? n : length;
}

/* Where in its prompt `reader` has what `slot` waits for; 0: it does not wait for that one. */
static int64_t awaited_place(const plumb_scheduler *s, const plumb_slot *slot, const plumb_slot *reader) {
    if (slot->doing != PLUMB_SLOT_PROMPT || !plumb__slot_runs(reader, PLUMB_SLOT_PROMPT)) return 0;
    if (reader->used >= slot->used) return 0;
    if (reader->job->generation->echo || slot->job->generation->echo) return 0; /* which are told token by token */
    const plumb_tokens *prompt = &slot->job->prompt;
    int64_t place = common_beginning(&reader->job->prompt, prompt);
    if (place - known(slot, prompt) < QUANTA_WORTH_A_STOP * s->options.quantum) return 0;
    bool comes_there = lent(reader, prompt) < place && known(reader, &reader->job->prompt) <= place;
    return comes_there ? place : 0;
}

bool plumb__scheduler_waits(const plumb_scheduler *s, const plumb_slot *slot) {
    for (int i = 0; i < s->usable_slots; i++)
        if (awaited_place(s, slot, &s->slots[i]) > 0) return true;
    return false;
}

int64_t plumb__scheduler_next_stop(const plumb_scheduler *s, const plumb_slot *slot) {
    int64_t stop = slot->job->prompt.count;
    for (int i = 0; i < s->usable_slots; i++) {
        int64_t place = awaited_place(s, &s->slots[i], slot);
        if (place > 0 && place < stop) stop = place;
    }
    return stop;
}

void plumb__scheduler_take_common(plumb_scheduler *s, plumb_slot *slot) {
    const plumb_tokens *prompt = &slot->job->prompt;
    const plumb_slot *source = NULL;
    int64_t most = known(slot, prompt) + QUANTA_WORTH_A_STOP * s->options.quantum - 1;
    for (int i = 0; i < s->usable_slots; i++) {
        const plumb_slot *other = &s->slots[i];
        if (!other->session || lent(other, prompt) <= most) continue;
        source = other;
        most = lent(other, prompt);
    }
    if (source && plumb__scheduler_copy(s, slot, source)) plumb__slot_set_cached(slot, most);
}
