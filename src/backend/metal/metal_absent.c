/* Builds without Metal: the backend refuses. */
#include "backend/metal/metal_backend.h"

#include "base/error.h"

plumb_status plumb__metal_backend_create(plumb_backend **backend, plumb_error *err) {
    *backend = NULL;
    return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, "metal", -1, "a build without Metal",
                       "one made on macOS (make metal)");
}

const char *plumb__metal_device_name(const plumb_backend *backend) {
    (void)backend;
    return NULL;
}

bool plumb__metal_is_built(void) { return false; }
