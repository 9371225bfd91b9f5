#include "stream/route_trace.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "plumb routes 1";

enum {
    MOST_LAYERS = 1 << 16,
    MOST_EXPERTS = 1 << 20,
    MOST_PER_TOKEN = 1 << 10,
    BUFFER = 1 << 16,
    SHOWN = 40 /* bytes of a faulty line that an error repeats */
};

/* ---- Writing ------------------------------------------------------------------------------- */

static plumb_status check_written(FILE *file, const char *name, plumb_error *err) {
    if (!ferror(file)) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, name, "routes", -1, strerror(errno),
                       "the file to take them");
}

plumb_status plumb__route_trace_begin(FILE *file, const char *name, const plumb_route_shape *shape,
                                      plumb_error *err) {
    fprintf(file, "%s %" PRId64 " %" PRId64 " %" PRId64 "\n", magic, shape->layers, shape->experts,
            shape->per_token);
    return check_written(file, name, err);
}

plumb_status plumb__route_trace_add(FILE *file, const char *name, const plumb_route_shape *shape,
                                    int64_t position, int64_t layer, int64_t rows,
                                    const int32_t *ids, plumb_error *err) {
    for (int64_t r = 0; r < rows; r++) {
        fprintf(file, "%" PRId64 " %" PRId64, position + r, layer);
        for (int64_t i = 0; i < shape->per_token; i++)
            fprintf(file, " %" PRId32, ids[r * shape->per_token + i]);
        fputc('\n', file);
    }
    return check_written(file, name, err);
}

/* ---- Reading: lines of numbers --------------------------------------------------------------- */

/* One (position, layer) with its ids. */
typedef struct route {
    int64_t position, layer;
    int32_t *id; /* [per_token] */
} route;

struct plumb_route_trace {
    FILE *file;
    char *path;
    plumb_route_shape shape;
    int64_t line; /* from 1: the one being read */
    size_t at, filled;
    bool ended;
    route next; /* read, but not yet part of a group */
    bool has_next;
    int64_t batch, last_layer; /* of the group before; batch -1: none */
    int64_t *uses_of;          /* [experts] zero between groups */
    int32_t *id;               /* [experts] */
    int64_t *uses;             /* [experts] */
    char buffer[BUFFER];
};

static plumb_status fail_line(const plumb_route_trace *t, plumb_error *err, const char *found,
                              const char *expected) {
    return plumb__fail(err, PLUMB_ERROR_FORMAT, t->path, plumb__format("line %" PRId64, t->line).s,
                       -1, found, "%s", expected);
}

/* The next byte without taking it, or -1 at the end of the file or after a fault. */
static int peek(plumb_route_trace *t) {
    if (t->at == t->filled) {
        if (t->ended) return -1;
        t->filled = fread(t->buffer, 1, sizeof t->buffer, t->file);
        t->at = 0;
        t->ended = t->filled < sizeof t->buffer;
        if (t->filled == 0) return -1;
    }
    return (unsigned char)t->buffer[t->at];
}

static plumb_status check_read(const plumb_route_trace *t, plumb_error *err) {
    if (!ferror(t->file)) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, t->path, plumb__format("line %" PRId64, t->line).s, -1,
                       "a failed read", "the rest of the file");
}

/* Says what stands where something else was expected. */
static plumb_status fail_here(plumb_route_trace *t, plumb_error *err, const char *expected) {
    plumb_status status = check_read(t, err);
    if (status != PLUMB_OK) return status;
    char shown[SHOWN + 1];
    int n = 0;
    for (int c = peek(t); c >= 0 && c != '\n' && n < SHOWN; t->at++, c = peek(t))
        shown[n++] = c >= ' ' && c < 0x7F ? (char)c : '?';
    shown[n] = '\0';
    if (n > 0) return fail_line(t, err, plumb__format("'%s'", shown).s, expected);
    return fail_line(t, err, peek(t) < 0 ? "the end of the file" : "the end of the line", expected);
}

/* A number below `limit`; digits only, without leading zeros, so that a trace has one spelling. */
static plumb_status take_number(plumb_route_trace *t, int64_t limit, const char *what,
                                int64_t *value, plumb_error *err) {
    int64_t number = 0;
    int c = peek(t), digits = 0;
    for (; c >= '0' && c <= '9' && number < limit && !(digits > 0 && number == 0); c = peek(t)) {
        number = 10 * number + (c - '0');
        digits++;
        t->at++;
    }
    if (digits > 0 && number >= limit)
        return fail_line(
            t, err,
            plumb__format("%s %" PRId64 "%s", what, number, c >= '0' && c <= '9' ? "..." : "").s,
            plumb__format("less than %" PRId64, limit).s);
    if (digits == 0 || (c >= '0' && c <= '9'))
        return fail_here(t, err, plumb__format("a number: %s", what).s);
    *value = number;
    return PLUMB_OK;
}

static plumb_status take_byte(plumb_route_trace *t, char byte, const char *expected,
                              plumb_error *err) {
    if (peek(t) != byte) return fail_here(t, err, expected);
    t->at++;
    return PLUMB_OK;
}

static plumb_status take_line_end(plumb_route_trace *t, plumb_error *err) {
    plumb_status status = take_byte(t, '\n', "the end of the line", err);
    if (status == PLUMB_OK) t->line++;
    return status;
}

static plumb_status take_header(plumb_route_trace *t, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    for (const char *c = magic; *c && status == PLUMB_OK; c++)
        status = take_byte(t, *c, "a trace: plumb routes 1 LAYERS EXPERTS K", err);
    const struct {
        int64_t most, *value;
        const char *what;
    } part[] = {{MOST_LAYERS, &t->shape.layers, "layers"},
                {MOST_EXPERTS, &t->shape.experts, "experts"},
                {MOST_PER_TOKEN, &t->shape.per_token, "experts per token"}};
    for (int i = 0; i < 3 && status == PLUMB_OK; i++) {
        status = take_byte(t, ' ', "a space", err);
        if (status == PLUMB_OK)
            status = take_number(t, part[i].most + 1, part[i].what, part[i].value, err);
        if (status == PLUMB_OK && *part[i].value == 0)
            status = fail_line(t, err, plumb__format("0 %s", part[i].what).s, "at least 1");
    }
    if (status == PLUMB_OK && t->shape.per_token > t->shape.experts)
        status =
            fail_line(t, err, plumb__format("%" PRId64 " experts per token", t->shape.per_token).s,
                      plumb__format("at most %" PRId64, t->shape.experts).s);
    return status == PLUMB_OK ? take_line_end(t, err) : status;
}

/* Reads a line into t->next; at the end of the file there is none. */
static plumb_status take_route(plumb_route_trace *t, plumb_error *err) {
    t->has_next = false;
    if (peek(t) < 0) return check_read(t, err);
    route *r = &t->next;
    plumb_status status = take_number(t, INT64_C(1) << 40, "position", &r->position, err);
    if (status == PLUMB_OK) status = take_byte(t, ' ', "a space", err);
    if (status == PLUMB_OK) status = take_number(t, t->shape.layers, "layer", &r->layer, err);
    for (int64_t i = 0; i < t->shape.per_token && status == PLUMB_OK; i++) {
        int64_t id = 0;
        status = take_byte(t, ' ', "a space and an expert", err);
        if (status == PLUMB_OK) status = take_number(t, t->shape.experts, "expert", &id, err);
        for (int64_t j = 0; j < i && status == PLUMB_OK; j++)
            if (r->id[j] == id)
                status = fail_line(t, err, plumb__format("expert %" PRId64 " twice", id).s,
                                   "different experts");
        r->id[i] = (int32_t)id;
    }
    if (status == PLUMB_OK) status = take_line_end(t, err);
    t->has_next = status == PLUMB_OK;
    return status;
}

/* ---- Reading: groups ------------------------------------------------------------------------- */

plumb_status plumb__route_trace_open(const char *path, plumb_route_trace **out, plumb_error *err) {
    plumb_route_trace *t = calloc(1, sizeof *t);
    if (!t) return plumb__fail_memory(err, "route trace", sizeof *t);
    t->line = 1;
    t->batch = -1;
    t->path = strdup(path);
    plumb_status status = t->path ? PLUMB_OK : plumb__fail_memory(err, path, strlen(path) + 1);
    if (status == PLUMB_OK && !(t->file = fopen(path, "rb")))
        status = plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, strerror(errno),
                             "a file of recorded routes");
    if (status == PLUMB_OK) status = take_header(t, err);
    if (status == PLUMB_OK) {
        size_t experts = (size_t)t->shape.experts;
        t->next.id = calloc((size_t)t->shape.per_token, sizeof *t->next.id);
        t->id = calloc(experts, sizeof *t->id);
        t->uses = calloc(experts, sizeof *t->uses);
        t->uses_of = calloc(experts, sizeof *t->uses_of);
        if (!t->next.id || !t->id || !t->uses || !t->uses_of)
            status = plumb__fail_memory(err, path, experts * (sizeof *t->id + 2 * sizeof *t->uses));
    }
    if (status == PLUMB_OK) status = take_route(t, err);
    if (status != PLUMB_OK) {
        plumb__route_trace_close(t);
        return status;
    }
    *out = t;
    return PLUMB_OK;
}

void plumb__route_trace_close(plumb_route_trace *trace) {
    if (!trace) return;
    if (trace->file) (void)fclose(trace->file);
    free(trace->path);
    free(trace->next.id);
    free(trace->id);
    free(trace->uses);
    free(trace->uses_of);
    free(trace);
}

const plumb_route_shape *plumb__route_trace_shape(const plumb_route_trace *trace) {
    return &trace->shape;
}

/* Hands the counted experts over in ascending order and clears the counts. */
static void collect(plumb_route_trace *t, plumb_route_group *group) {
    group->n = 0;
    for (int64_t e = 0; e < t->shape.experts; e++) {
        if (t->uses_of[e] == 0) continue;
        t->id[group->n] = (int32_t)e;
        t->uses[group->n++] = t->uses_of[e];
        t->uses_of[e] = 0;
    }
    group->id = t->id;
    group->uses = t->uses;
}

plumb_status plumb__route_trace_next(plumb_route_trace *t, plumb_route_group *group, bool *more,
                                     plumb_error *err) {
    *more = t->has_next;
    if (!t->has_next) return PLUMB_OK;
    /* A batch goes up through the layers and ends where the next one starts lower, or in the same
     * layer at another place. */
    if (t->batch < 0 || t->next.layer <= t->last_layer) t->batch++;
    plumb_route_group found = {
        .batch = t->batch, .layer = t->next.layer, .position = t->next.position};
    plumb_status status = PLUMB_OK;
    while (status == PLUMB_OK && t->has_next && t->next.layer == found.layer &&
           t->next.position == found.position + found.rows) {
        for (int64_t i = 0; i < t->shape.per_token; i++) t->uses_of[t->next.id[i]]++;
        found.rows++;
        status = take_route(t, err);
    }
    if (status != PLUMB_OK) return status;
    t->last_layer = found.layer;
    collect(t, &found);
    *group = found;
    return PLUMB_OK;
}
