/* Bounds on speed from first principles: bytes that must move over rates at which they can.
 *
 * Serial: reading, carrying and computing take turns.  Overlapped: all of them at once, so that the
 * slowest alone decides.  A program lies between the two; no program beats the second. */
#ifndef PLUMB_PLAN_BOUNDS_H
#define PLUMB_PLAN_BOUNDS_H

#include "plan/budget.h"
#include "plan/hit_rate.h"

/* Bytes a second; 0: no such part.  FLOP a second; 0: not known, and then no bound. */
typedef struct plumb_rates {
    double disk; /* of the engine's own pattern of reads */
    double memory;
    double device; /* memory of the device */
    double link;   /* from memory to the device */
    double compute;
} plumb_rates;

/* What moves, and how long each part of it takes. */
typedef struct plumb_cost {
    double disk_bytes, link_bytes, memory_bytes; /* memory: of the part that computes */
    double flop;
    double disk_seconds, link_seconds, memory_seconds;
    double compute_seconds; /* 0: not known */
} plumb_cost;

typedef struct plumb_bound {
    plumb_cost cost;
    double tokens;             /* that the cost is for */
    double serial, overlapped; /* tokens a second */
} plumb_bound;

/* Where a token finds an expert. */
typedef struct plumb_hits {
    double computing; /* in the memory that computes */
    double anywhere;  /* there, or in memory behind the device */
} plumb_hits;

/* One token at `position`. */
plumb_bound plumb__bound_decode(const plumb_model_sizes *sizes, const plumb_rates *rates,
                                plumb_hits hits, int64_t position);

/* Rows `begin` to `begin + rows` of a prompt that ends at `end`, in chunks of `chunk`.  Experts in
 * slots for `kept` (layer, expert) pairs are not read again by later chunks; `warm`: by the first
 * one neither. */
typedef struct plumb_prompt {
    int64_t begin, rows, end, chunk;
    int64_t kept_computing, kept_anywhere;
    bool warm;
} plumb_prompt;
plumb_bound plumb__bound_prefill(const plumb_model_sizes *sizes, const plumb_rates *rates,
                                 const plumb_prompt *prompt);

/* Different experts that `rows` rows of one layer want when each chooses at random: no fewer than
 * real rows do. */
double plumb__experts_touched(const plumb_model_config *config, int64_t rows);

#endif
