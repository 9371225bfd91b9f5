#include "stream/guess_control.h"

enum {
    TRIAL = 64,    /* guessed experts before a judgement */
    MOST_WASTED = 2, /* for each useful one */
    PAUSE = 2000   /* layers; fifty tokens of the released model */
};

bool plumb__guess_pays(plumb_guess_control *control, int64_t useful, int64_t wasted) {
    if (control->paused > 0) {
        /* What is still under way belongs to no trial. */
        if (--control->paused == 0) *control = (plumb_guess_control){useful, wasted, 0};
        return false;
    }
    int64_t right = useful - control->useful, wrong = wasted - control->wasted;
    if (right + wrong < TRIAL) return true;
    *control = (plumb_guess_control){useful, wasted, 0};
    if (wrong <= MOST_WASTED * right) return true;
    control->paused = PAUSE;
    return false;
}
