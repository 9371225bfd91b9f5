/* Which reader: io_uring where it was built in and the system allows it, else a pool of threads.
 *
 * Containers and hardened systems often forbid io_uring to programs that could use it, so only an
 * attempt tells; the phrase for the log keeps the reason. */
#include "stream/reader.h"

#include "base/error.h"
#include "stream/reader_kinds.h"

#include <stdio.h>

enum { MOST_DEPTH = 4096 };

static plumb_status open_uring(int depth, plumb_reader **reader, char *why, size_t why_size,
                               plumb_error *err) {
#if defined(PLUMB_HAVE_URING)
    return plumb__reader_open_uring(depth, reader, why, why_size, err);
#else
    (void)depth, (void)reader, (void)why, (void)why_size;
    return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, "io_uring", -1,
                       "this build has no io_uring", "a build for Linux with liburing");
#endif
}

plumb_status plumb__reader_open(plumb_reader_kind kind, int depth, plumb_reader **reader, char *why,
                                size_t why_size, plumb_error *err) {
    if (depth < 1 || depth > MOST_DEPTH)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "depth", -1,
                           plumb__format("%d", depth).s, "1 to %d reads at once", MOST_DEPTH);
    plumb_error refused = {.found = "asked for"};
    if (kind != PLUMB_READER_PREAD) {
        plumb_status status = open_uring(depth, reader, why, why_size, &refused);
        if (status == PLUMB_OK) return PLUMB_OK;
        if (kind == PLUMB_READER_URING || status != PLUMB_ERROR_UNSUPPORTED) {
            if (err) *err = refused;
            return status;
        }
    }
    plumb_status status = plumb__reader_open_pread(depth, reader, err);
    if (status == PLUMB_OK && why) (void)snprintf(why, why_size, "pread: %s", refused.found);
    return status;
}
