/* The two readers, for reader.c alone: everyone else opens one by plumb__reader_open. */
#ifndef PLUMB_STREAM_READER_KINDS_H
#define PLUMB_STREAM_READER_KINDS_H

#include "stream/reader.h"

/* Only where the build has liburing.  PLUMB_ERROR_UNSUPPORTED, with the system's reason as
 * err->found, where the system has no io_uring or forbids it.  `why`: as plumb__reader_open. */
PLUMB_MUST_CHECK plumb_status plumb__reader_open_uring(int depth, plumb_reader **reader, char *why,
                                                       size_t why_size, plumb_error *err);
PLUMB_MUST_CHECK plumb_status plumb__reader_open_pread(int depth, plumb_reader **reader,
                                                       plumb_error *err);

#endif
