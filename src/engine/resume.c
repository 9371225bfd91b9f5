/* Which places are kept, and which of them is nearest; see resume.h. */
#include "engine/resume.h"

#include <stdlib.h>

static void drop_point(plumb_session *s, int i) {
    free(s->point[i].fixed);
    for (int j = i; j + 1 < s->n_points; j++) s->point[j] = s->point[j + 1];
    s->n_points--;
}

/* The point whose loss costs least: the smallest gap between its neighbours, measured against how
 * far back it lies, so that recent points stay dense and old ones sparse. */
static int least_useful_point(const plumb_session *s) {
    int best = 0;
    double least = 0;
    for (int i = 0; i + 1 < s->n_points; i++) {
        int64_t before = i > 0 ? s->point[i - 1].length : 0;
        double gap = (double)(s->point[i + 1].length - before);
        double cost = gap / (double)(s->state->length - s->point[i].length + 1);
        if (i == 0 || cost < least) {
            least = cost;
            best = i;
        }
    }
    return best;
}

void plumb__resume_add(plumb_session *s) {
    int64_t length = s->state->length;
    if (s->n_points > 0 && s->point[s->n_points - 1].length == length) return;
    uint8_t *fixed = malloc((size_t)plumb__state_fixed_bytes(s->state));
    if (!fixed) return;
    if (s->n_points == PLUMB_MAX_RESUME_POINTS) drop_point(s, least_useful_point(s));
    plumb__state_save_fixed(s->state, fixed);
    s->point[s->n_points++] = (plumb_resume_point){length, fixed};
}

void plumb__resume_drop_after(plumb_session *s, int64_t length) {
    while (s->n_points > 0 && s->point[s->n_points - 1].length > length)
        drop_point(s, s->n_points - 1);
}

/* How near to `wanted` a state of `length` gets, by one step back at most; -1: it lies beyond. */
static int64_t reach(int64_t length, bool stepped_back, int64_t wanted) {
    if (length <= wanted) return length;
    return length == wanted + 1 && !stepped_back ? wanted : -1;
}

void plumb__resume_nearest(plumb_session *s, int64_t wanted) {
    const plumb_resume_point *best = NULL;
    int64_t nearest = reach(s->state->length, s->stepped_back, wanted);
    for (int i = 0; i < s->n_points; i++) {
        int64_t near = reach(s->point[i].length, false, wanted);
        if (near <= nearest) continue;
        nearest = near;
        best = &s->point[i];
    }
    if (best) {
        plumb__state_restore_fixed(s->state, best->length, best->fixed);
        s->stepped_back = false;
    }
    if (nearest < 0) {
        plumb__state_clear(s->state);
        s->stepped_back = false;
    } else if (s->state->length > nearest) {
        plumb__state_step_back(s->state);
        s->stepped_back = true;
    }
}
