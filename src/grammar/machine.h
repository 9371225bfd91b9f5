/* Readings of a text, moved on by bytes.
 *
 * Where a text can be read in several ways they are followed side by side, PLUMB__MOST_READINGS of them; what
 * is beyond is let go, and only means that some text cannot be said.  Frames, where rules go on at their end,
 * are interned: equal stacks are one number, so that equal readings are found to be equal. */
#ifndef PLUMB_GRAMMAR_MACHINE_H
#define PLUMB_GRAMMAR_MACHINE_H

#include "grammar/lexeme.h"

typedef struct plumb__frame {
    int32_t node, count; /* go on there, with the count that was */
    int32_t parent;      /* -1: none */
    int32_t depth;       /* 0 for the lowest */
} plumb__frame;

typedef struct plumb__machine {
    const plumb_grammar *grammar;
    plumb__frame *frames;
    int64_t n_frames, frames_capacity;
    int32_t *slots; /* hash table of frames, a power of two of them; -1: free */
    int64_t n_slots;
    int32_t passed[PLUMB__MOST_PASSED][3]; /* splits that the current step has been through */
    int n_passed;
    bool out_of_memory; /* stays */
} plumb__machine;

/* A set of readings in an array of the caller's. */
typedef struct plumb__readings {
    plumb__reading *items;
    int count, capacity;
} plumb__readings;

bool plumb__machine_open(plumb__machine *m, const plumb_grammar *grammar);
void plumb__machine_close(plumb__machine *m);
/* The frame's number; -1 without memory. */
int32_t plumb__frame_push(plumb__machine *m, int32_t node, int32_t count, int32_t parent, int32_t depth);

/* Begins a step: what was passed before may be passed again. */
static inline void plumb__begin_step(plumb__machine *m) { m->n_passed = 0; }
/* Adds the lexemes and control tokens that can come next at a reading, each once. */
void plumb__enter(plumb__machine *m, plumb__reading reading, plumb__readings *to);
/* Adds what comes of `from` with a byte. */
void plumb__advance(plumb__machine *m, const plumb__reading *from, int count, uint8_t byte, plumb__readings *to);
/* The same with the control token. */
void plumb__advance_control(plumb__machine *m, const plumb__reading *from, int count, plumb__readings *to);
bool plumb__has_node(const plumb__readings *set, int32_t node);

/* Forgets every frame but those that the readings stand on, and renumbers these.  False: no memory, and no
 * reading is of use any more. */
bool plumb__machine_compact(plumb__machine *m, plumb__readings *set);

#endif
