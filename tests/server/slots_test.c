/* Which slot takes a job: cases by hand. */
#include "server/slots.h"
#include "t.h"

#define IDLE true, true
#define BUSY false, true

typedef struct choice {
    const char *why;
    plumb_slot_view slot[3]; /* idle, has a session, length, known, shared, age */
    int n;
    plumb_placement wanted;
} choice;

static const choice choices[] = {
    {"nothing idle", {{BUSY, 9, 9, 0, 0}, {BUSY, 9, 9, 9, 0}}, 2, {-1, -1}},
    {"a conversation goes on", {{IDLE, 500, 500, 500, 3}, {true, false, 0, 0, 0, 0}}, 2, {0, -1}},
    {"the one that shares most goes on", {{IDLE, 90, 90, 80, 1}, {IDLE, 100, 100, 95, 1}}, 2, {1, -1}},
    {"an answer that is asked for again", {{IDLE, 500, 500, 440, 3}, {true, false, 0, 0, 0, 0}}, 2, {0, -1}},
    {"a branch leaves the long one alone", {{IDLE, 5000, 5000, 1000, 3}, {true, false, 0, 0, 0, 0}}, 2, {1, 0}},
    {"a branch, and no other slot", {{IDLE, 5000, 5000, 1000, 3}}, 1, {0, -1}},
    {"what a busy one has is copied", {{BUSY, 5000, 5000, 4000, 0}, {IDLE, 300, 300, 2, 4}}, 2, {1, 0}},
    {"the same beginning twice is not copied", {{BUSY, 900, 900, 800, 0}, {IDLE, 800, 800, 800, 4}}, 2, {1, -1}},
    {"two tokens are not copied", {{BUSY, 900, 900, 2, 0}, {true, false, 0, 0, 0, 0}}, 2, {1, -1}},
    {"a short question spares the long one", {{IDLE, 50000, 50000, 1, 9}, {IDLE, 30, 30, 1, 0}}, 2, {1, -1}},
    {"but not for ever", {{IDLE, 50000, 50000, 1, 5000}, {IDLE, 30, 30, 1, 1}}, 2, {0, -1}},
    {"of equals the older", {{IDLE, 400, 400, 1, 2}, {IDLE, 400, 400, 1, 7}, {IDLE, 400, 400, 1, 5}}, 3, {1, -1}},
    {"an empty session before a new one", {{IDLE, 0, 0, 0, 0}, {true, false, 0, 0, 0, 0}}, 2, {0, -1}},
    {"a new one before what is of use", {{IDLE, 700, 700, 1, 3}, {true, false, 0, 0, 0, 0}}, 2, {1, -1}},
    {"a prompt that was cut short goes on", {{IDLE, 0, 3000, 3000, 3}, {true, false, 0, 0, 0, 0}}, 2, {0, -1}},
    {"and is spared by others", {{IDLE, 0, 3000, 1, 3}, {IDLE, 20, 20, 1, 0}}, 2, {1, -1}},
    {"but cannot be copied", {{BUSY, 0, 3000, 3000, 3}, {IDLE, 20, 20, 1, 0}}, 2, {1, -1}},
};

static void test_choices(void) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const choice *c = &choices[i];
        plumb_placement found = plumb__slots_choose(c->slot, c->n);
        T_CHECK(found.slot == c->wanted.slot && found.source == c->wanted.source, "%s: %d from %d", c->why, found.slot,
                found.source);
    }
}

T_MAIN({"choices", test_choices})
