/* The float modes: what the self test proves, that they are set and given back, and that the test
 * notices a thread without them. */
#include "arith/float_env.h"

#include "arith/portable.h"
#include "t.h"

static int flushes(void) {
    const volatile float smallest = 1.17549435e-38f, half = 0.5f;
    const volatile float y = smallest * half;
    return plumb__bits_of(y) == 0;
}

static void self_test_passes(void) {
    plumb_error err = {0};
    char line[512] = "";
    plumb_status status = plumb__float_env_self_test(&err);
    if (status != PLUMB_OK) plumb_error_line(&err, line, sizeof line);
    T_CHECK(status == PLUMB_OK, "%s", line);
}

static void modes_are_entered_and_left(void) {
    T_CHECK(!flushes(), "the caller's modes");
    uint64_t outer, inner;
    plumb__float_env_enter(&outer);
    T_CHECK(flushes(), "inside");
    plumb__float_env_enter(&inner);
    T_CHECK(flushes(), "nested");
    plumb__float_env_leave(inner);
    T_CHECK(flushes(), "after the nested leave");
    plumb__float_env_leave(outer);
    T_CHECK(!flushes(), "the caller's modes are back");
    T_CHECK(plumb__float_env_self_test(NULL) == PLUMB_OK && !flushes(), "self test leaves no trace");
}

T_MAIN({"self_test_passes", self_test_passes},
       {"modes_are_entered_and_left", modes_are_entered_and_left})
