#include "backend/metal/metal_backend.h"

#include "fake_metal.h"
#include "t.h"

static void smoke(void) {
    plumb_backend *b = NULL;
    plumb_error err = {0};
    plumb_status status = plumb__metal_backend_create(&b, &err);
    char line[600] = "";
    if (status) plumb_error_line(&err, line, sizeof line);
    T_CHECK(status == PLUMB_OK, "%s", line);
    for (int i = 0; i < fake_metal_errors(); i++) fprintf(stderr, "%s\n", fake_metal_error(i));
    if (b) b->ops->close(b);
    fake_metal_settle(); fake_metal_counters c = fake_metal_count();
    printf("%ld objects %ld buffers %ld autoreleased %ld commits %ld waits %ld dispatches\n", (long)c.live_objects, (long)c.live_buffers, (long)c.autoreleased, (long)c.commits, (long)c.waits, (long)c.dispatches);
}
T_MAIN({"smoke", smoke},{"again", smoke})
