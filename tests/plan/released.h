/* The released geometry, from its config file. */
#ifndef PLUMB_TESTS_PLAN_RELEASED_H
#define PLUMB_TESTS_PLAN_RELEASED_H

#include "plan/model_sizes.h"
#include "t.h"

static inline plumb_model_sizes released_sizes(void) {
    plumb_model_config config = {0};
    plumb_model_sizes sizes;
    plumb_error err = {0};
    T_CHECK(plumb__config_load(TEST_DATA "/config/released.json", NULL, NULL, &config, &err) == PLUMB_OK,
            "%s: %s", err.field, err.found);
    plumb__model_sizes(&config, &sizes);
    return sizes;
}

/* Within `share` of what was expected. */
static inline bool near(double found, double expected, double share) {
    double distance = found > expected ? found - expected : expected - found;
    return distance <= share * (expected > 0 ? expected : -expected);
}

#endif
