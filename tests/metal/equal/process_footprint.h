/* Memory of this process as macOS accounts for it, shared buffers of the GPU included. */
#ifndef PLUMB_TESTS_METAL_PROCESS_FOOTPRINT_H
#define PLUMB_TESTS_METAL_PROCESS_FOOTPRINT_H

#include <stdint.h>

/* Bytes, or 0 where the system does not tell. */
int64_t process_footprint(void);

#endif
