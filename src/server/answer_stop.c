/* Stop strings; see answer_stop.h.
 *
 * Each stop has its Knuth-Morris-Pratt automaton, so a byte costs the same wherever chunks are cut.  The
 * held text needs no buffer: it is the beginning of the stop that has matched the most. */
#include "server/answer_stop.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct stop_matcher {
    char *bytes;       /* (size + 1), NUL-terminated */
    size_t size;
    size_t *fallback;  /* (size) longest proper end of bytes[0..i] that `bytes` begins with */
    size_t matched;    /* bytes of it that the text ends with */
} stop_matcher;

struct plumb_stop_filter {
    plumb_text_sink sink;
    void *user;
    stop_matcher *stops; /* (n_stops) */
    int n_stops;
    const stop_matcher *found;
};

static bool advance(stop_matcher *stop, char byte) {
    while (stop->matched > 0 && stop->bytes[stop->matched] != byte)
        stop->matched = stop->fallback[stop->matched - 1];
    if (stop->bytes[stop->matched] == byte) stop->matched++;
    return stop->matched == stop->size;
}

static bool prepare(stop_matcher *stop, const plumb_stop_string *given) {
    if (given->size > SIZE_MAX / sizeof *stop->fallback) return false;
    stop->bytes = malloc(given->size + 1);
    stop->fallback = malloc(given->size * sizeof *stop->fallback);
    if (!stop->bytes || !stop->fallback) return false;
    memcpy(stop->bytes, given->bytes, given->size);
    stop->bytes[given->size] = 0;
    stop->size = given->size;
    /* The stop is run over itself, one byte behind. */
    stop->fallback[0] = 0;
    for (size_t i = 1; i < stop->size; i++) {
        (void)advance(stop, stop->bytes[i]);
        stop->fallback[i] = stop->matched;
    }
    stop->matched = 0;
    return true;
}

plumb_status plumb__stop_filter_create(const plumb_stop_string *stops, int n_stops, plumb_text_sink sink,
                                       void *user, plumb_stop_filter **filter, plumb_error *err) {
    size_t count = n_stops > 0 ? (size_t)n_stops : 0;
    plumb_stop_filter *made = calloc(1, sizeof *made);
    if (!made) return plumb__fail_memory(err, "stop strings", sizeof *made);
    *made = (plumb_stop_filter){.sink = sink, .user = user, .stops = calloc(count + 1, sizeof *made->stops)};
    bool ready = made->stops != NULL;
    for (size_t i = 0; ready && i < count; i++) {
        made->n_stops++; /* also where it is half made, to be freed */
        ready = prepare(&made->stops[i], &stops[i]);
    }
    if (!ready) {
        plumb__stop_filter_destroy(made);
        return plumb__fail_memory(err, "stop strings", count * sizeof *made->stops);
    }
    *filter = made;
    return PLUMB_OK;
}

void plumb__stop_filter_destroy(plumb_stop_filter *filter) {
    if (!filter) return;
    for (int i = 0; i < filter->n_stops; i++) {
        free(filter->stops[i].bytes);
        free(filter->stops[i].fallback);
    }
    free(filter->stops);
    free(filter);
}

/* The stop of whose bytes the text ends with the most; NULL: nothing is held. */
static const stop_matcher *holder(const plumb_stop_filter *filter) {
    const stop_matcher *most = NULL;
    for (int i = 0; i < filter->n_stops; i++) {
        const stop_matcher *stop = &filter->stops[i];
        if (stop->matched > (most ? most->matched : 0)) most = stop;
    }
    return most;
}

/* The longest stop that this byte completes, or NULL. */
static const stop_matcher *take_byte(plumb_stop_filter *filter, char byte) {
    const stop_matcher *found = NULL;
    for (int i = 0; i < filter->n_stops; i++) {
        stop_matcher *stop = &filter->stops[i];
        if (advance(stop, byte) && (!found || stop->size > found->size)) found = stop;
    }
    return found;
}

static void tell(const plumb_stop_filter *filter, const char *bytes, size_t size) {
    if (size > 0) filter->sink(filter->user, bytes, size);
}

void plumb__stop_filter_push(plumb_stop_filter *filter, const char *bytes, size_t size) {
    if (filter->found) return;
    const stop_matcher *before = holder(filter);
    size_t held = before ? before->matched : 0, used = 0;
    while (used < size && !filter->found) filter->found = take_byte(filter, bytes[used++]);
    const stop_matcher *after = filter->found ? filter->found : holder(filter);
    /* Of the held bytes and the used ones, all but the last are text. */
    size_t text = held + used - (after ? after->matched : 0);
    size_t of_held = text < held ? text : held;
    if (before) tell(filter, before->bytes, of_held);
    tell(filter, bytes, text - of_held);
}

void plumb__stop_filter_release(plumb_stop_filter *filter) {
    const stop_matcher *held = filter->found ? NULL : holder(filter);
    size_t size = held ? held->matched : 0;
    for (int i = 0; i < filter->n_stops; i++) filter->stops[i].matched = 0;
    if (held) tell(filter, held->bytes, size);
}

size_t plumb__stop_filter_held(const plumb_stop_filter *filter) {
    const stop_matcher *held = filter->found ? NULL : holder(filter);
    return held ? held->matched : 0;
}

const char *plumb__stop_filter_found(const plumb_stop_filter *filter) {
    return filter->found ? filter->found->bytes : NULL;
}
