/* A real device: bytes that Metal and the process hold.
 *
 * The least that a step could lose is one buffer of a page, 4 MB over the test's iterations; a driver may
 * keep a little of its own. */
#include "metal/equal/metal_model.h"
#include "metal/equal/process_footprint.h"

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

enum { MIB = 1 << 20 };

void metal_delays(uint64_t seed, int64_t most_us) { (void)seed, (void)most_us; }

const char *metal_objection(void) { return NULL; }

/* Of the device, which is one for the whole process. */
static int64_t allocated_bytes(void) {
    int64_t bytes = 0;
    @autoreleasepool {
        id<MTLDevice> device = MTLCreateSystemDefaultDevice();
        bytes = (int64_t)[device currentAllocatedSize];
        [device release];
    }
    return bytes;
}

int metal_measure(metal_figure figure[METAL_FIGURES]) {
    figure[0] = (metal_figure){"bytes allocated by the device", allocated_bytes(), 1 * MIB};
    figure[1] = (metal_figure){"bytes of the process (footprint)", process_footprint(), 8 * MIB};
    return 2;
}
