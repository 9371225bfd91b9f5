/* Which slot takes a job; see slots.h. */
#include "server/slots.h"

enum {
    FEW_TOKENS = 64,  /* of a conversation that went on otherwise: no pity */
    COPIED_TOKENS = 4 /* fewer are evaluated as quickly as copied */
};

bool plumb__slot_runs(const plumb_slot *slot, plumb_slot_doing doing) {
    return slot->doing == doing && !slot->full && !slot->job->dead;
}

void plumb__slot_set_cached(plumb_slot *slot, int64_t known) {
    int64_t total = slot->job->prompt.count;
    slot->usage.cached_tokens = known < total ? known : total - 1;
}

/* How many tokens are gone when this prompt takes the slot. */
static int64_t loss(const plumb_slot_view *v) { return v->known > v->shared ? v->known - v->shared : 0; }

/* How many of the prompt's tokens a copy of it has: not those of a prompt that was cut short. */
static int64_t lent(const plumb_slot_view *v) { return v->shared < v->length ? v->shared : v->length; }

static bool shares_more(const plumb_slot_view *a, const plumb_slot_view *b) {
    return a->shared != b->shared ? a->shared > b->shared : loss(a) < loss(b);
}

/* Whether losing a is less of a pity than losing b. */
static bool is_cheaper(const plumb_slot_view *a, const plumb_slot_view *b) {
    double worth_a = (double)loss(a) / (1.0 + (double)a->age), worth_b = (double)loss(b) / (1.0 + (double)b->age);
    if (worth_a < worth_b || worth_a > worth_b) return worth_a < worth_b;
    if (a->shared != b->shared) return a->shared > b->shared;
    if (a->has_session != b->has_session) return a->has_session; /* memory is taken when it must be */
    return a->age > b->age;
}

plumb_placement plumb__slots_choose(const plumb_slot_view *slots, int n) {
    int best = -1, cheapest = -1, source = 0;
    for (int i = 0; i < n; i++) {
        const plumb_slot_view *v = &slots[i];
        if (lent(v) > lent(&slots[source])) source = i;
        if (!v->idle) continue;
        if (best < 0 || shares_more(v, &slots[best])) best = i;
        if (cheapest < 0 || is_cheaper(v, &slots[cheapest])) cheapest = i;
    }
    if (best < 0) return (plumb_placement){-1, -1};
    bool continues = loss(&slots[best]) <= FEW_TOKENS && loss(&slots[best]) <= slots[best].shared;
    int chosen = continues ? best : cheapest;
    bool copies = lent(&slots[source]) >= slots[chosen].shared + COPIED_TOKENS;
    return (plumb_placement){chosen, copies ? source : -1};
}
