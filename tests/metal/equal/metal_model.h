/* Models on the emulated Metal backend, and the bits that the CPU gives. */
#ifndef PLUMB_TESTS_METAL_MODEL_H
#define PLUMB_TESTS_METAL_MODEL_H

#include "equal/specimen.h"

/* Opens on the device, or ends the program. */
plumb_model *metal_model_open(const specimen *s, plumb_device device, plumb_model_options options);

/* Logits of the whole prompt by the CPU, in one call. */
float *metal_reference(const specimen *s);

/* Configures the fake: delays up to so many microseconds, from this seed; no faults. */
void metal_fake_delays(uint64_t seed, int64_t most_us);

/* As a check of t.h: validation had nothing to say. */
#define CHECK_VALIDATION(how)                                                                       \
    do {                                                                                            \
        const char *said_ = fake_metal_error(0);                                                    \
        T_CHECK(!said_, "%s: %s (and %d more)", how, said_, fake_metal_errors() - 1);               \
    } while (0)

#endif
