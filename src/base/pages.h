/* Whole pages of memory, straight from the system and given back to it at once: what files are read
 * into, in pieces large enough that a malloc would keep them. */
#ifndef PLUMB_BASE_PAGES_H
#define PLUMB_BASE_PAGES_H

#include <stdint.h>

/* Zeroed; aligned to the page, and from 2 MiB on to 2 MiB.  NULL without memory. */
void *plumb__pages_map(int64_t bytes);
/* Makes the system provide all of it now instead of at the first touch; memory it has none for comes
 * later. */
void plumb__pages_touch(void *memory, int64_t bytes);
void plumb__pages_unmap(void *memory, int64_t bytes);

#endif
