/* The emulated backend: the fake Metal counts objects, so that nothing may grow at all. */
#include "metal/equal/metal_model.h"

#include "metal/fake/fake_metal.h"

void metal_delays(uint64_t seed, int64_t most_us) {
    fake_metal_options options = fake_metal_defaults();
    options.seed = seed;
    options.litters = true;
    options.delay_us_max = most_us;
    fake_metal_configure(&options);
}

const char *metal_objection(void) { return fake_metal_error(0); }

int metal_measure(metal_figure figure[METAL_FIGURES]) {
    fake_metal_settle();
    fake_metal_counters now = fake_metal_count();
    const metal_figure figures[METAL_FIGURES] = {{"buffers", now.live_buffers, 0},
                                                 {"bytes of buffers", now.live_bytes, 0},
                                                 {"command buffers", now.live_command_buffers, 0},
                                                 {"autoreleased objects", now.autoreleased, 0},
                                                 {"objects", now.live_objects, 0}};
    for (int i = 0; i < METAL_FIGURES; i++) figure[i] = figures[i];
    return METAL_FIGURES;
}
