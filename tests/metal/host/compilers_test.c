/* A compiler of Metal that computes otherwise than it was asked to: the kernels' text is compiled here with the
 * options that tests/metal/host/CMakeLists.txt says.  The self test refuses the device and names an operation,
 * whatever the schedule. */
#include "metal/host/bench.h"

#include "t.h"

static void is_refused(void) {
    static const char begin[] = "self test of metal: operation ";
    for (int i = 0; i < 3; i++) {
        fake_metal_options options = fake_metal_defaults();
        fake_metal_configure(&options);
        plumb_backend *b = NULL;
        plumb_error err = {0};
        plumb_status status = plumb__metal_backend_create(&b, &err);
        T_CHECK(status == PLUMB_ERROR_UNSUPPORTED, "%s", plumb_status_name(status));
        T_CHECK(!strncmp(err.field, begin, sizeof begin - 1) && strstr(err.field, ", kernel "), "%s",
                err.field);
        if (b) b->ops->close(b);
        bench_nothing_left("refused");
    }
}

T_MAIN({"is_refused", is_refused})
