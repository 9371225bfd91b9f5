/* Models on the Metal backend, and the bits that the CPU gives.
 *
 * The tests run on a Mac too, where what a real device cannot be asked has nothing to say: metal_model_fake.c
 * serves them on the emulated backend, metal_model_device.m on Apple's. */
#ifndef PLUMB_TESTS_METAL_MODEL_H
#define PLUMB_TESTS_METAL_MODEL_H

#include "equal/specimen.h"

/* Opens on the device, or ends the program. */
plumb_model *metal_model_open(const specimen *s, plumb_device device, plumb_model_options options);

/* Logits of the whole prompt by the CPU, in one call. */
float *metal_reference(const specimen *s);

/* Delays of the fake up to so many microseconds, from this seed, and no faults; a real device has its own. */
void metal_delays(uint64_t seed, int64_t most_us);

/* What validation objected to since `metal_delays`, or NULL; on a real device its debug layer, if it is on,
 * ends the program. */
const char *metal_objection(void);

/* As a check of t.h: validation had nothing to say. */
#define CHECK_VALIDATION(how)                                                        \
    do {                                                                             \
        const char *said_ = metal_objection();                                       \
        T_CHECK(!said_, "%s: %s", how, said_);                                       \
    } while (0)

/* What may not grow. */
typedef struct metal_figure {
    const char *name;
    int64_t value;
    int64_t allowed; /* growth that says nothing: what others of the process do */
} metal_figure;

/* Measures once the device has let go of what it used; returns how many figures there are, always the same. */
enum { METAL_FIGURES = 5 };
int metal_measure(metal_figure figure[METAL_FIGURES]);

#endif
