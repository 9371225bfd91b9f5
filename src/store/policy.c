#include "store/policy.h"

#include "store/prefix.h"

double plumb__store_value(const plumb_store_worth *worth, int64_t now) {
    static const double hour = 3600;
    if (worth->bytes <= 0 || worth->length <= 0) return 0;
    int64_t saved = worth->length - worth->shared;
    if (saved < PLUMB_PREFIX_BLOCK) saved = PLUMB_PREFIX_BLOCK;
    /* A clock that was set back makes nothing younger than new. */
    double age = now > worth->used ? (double)(now - worth->used) / hour : 0;
    return (double)saved * (double)(1 + worth->hits) / ((double)worth->bytes * (1 + age));
}

bool plumb__store_gives_way(const plumb_store_worth *a, const plumb_store_worth *b, int64_t now) {
    double x = plumb__store_value(a, now), y = plumb__store_value(b, now);
    return x != y ? x < y : a->used < b->used;
}

int64_t plumb__store_day(int64_t now) {
    int64_t day = now / PLUMB_STORE_DAY_SECONDS;
    return now % PLUMB_STORE_DAY_SECONDS < 0 ? day - 1 : day;
}

plumb_store_decision plumb__store_decide(const plumb_store_write *write) {
    if (write->new_tokens < write->least_tokens) return PLUMB_STORE_FEW_TOKENS;
    if (write->bytes > write->size_budget) return PLUMB_STORE_TOO_LARGE;
    if (write->bytes > write->daily_budget - write->written_today) return PLUMB_STORE_DAILY_BUDGET;
    return PLUMB_STORE_WRITTEN;
}
