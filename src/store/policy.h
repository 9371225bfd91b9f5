/* What is worth keeping, and what is worth writing.  Pure functions of numbers; docs/sessions.md
 * has the reasons.
 *
 *     value = saved tokens * (1 + hits) / (bytes * (1 + age in hours))
 *
 * Saved tokens: those beyond the longest beginning that another entry has too, since from that one
 * a hit on the beginning can be served as well; a block of them at least, for an end from which
 * nothing has to be evaluated again.  The entry of least value gives way first. */
#ifndef PLUMB_STORE_POLICY_H
#define PLUMB_STORE_POLICY_H

#include "plumb.h"

typedef struct plumb_store_worth {
    int64_t length; /* tokens; 0: nobody can restore it */
    int64_t shared; /* the longest beginning of it that another entry has too */
    int64_t bytes;
    int64_t hits;
    int64_t used; /* seconds since 1970: restored or saved last */
} plumb_store_worth;

double plumb__store_value(const plumb_store_worth *worth, int64_t now);
/* Whether `a` gives way before `b`; of equal value, the one that was used earlier. */
bool plumb__store_gives_way(const plumb_store_worth *a, const plumb_store_worth *b, int64_t now);

enum { PLUMB_STORE_DAY_SECONDS = 86400 };
int64_t plumb__store_day(int64_t now); /* days since 1970, UTC */

/* What a write is measured against. */
typedef struct plumb_store_write {
    int64_t new_tokens, least_tokens; /* beyond what is stored already */
    int64_t bytes;
    int64_t size_budget;
    int64_t written_today, daily_budget;
} plumb_store_write;

plumb_store_decision plumb__store_decide(const plumb_store_write *write);

#endif
