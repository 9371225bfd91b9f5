/* Traces of routes, good and bad.  Bad ones must be refused with the line and what stands there. */
#include "stream/route_trace.h"

#include "t.h"

#include <stdlib.h>

static const char path[] = BUILD_DIR "/route_trace_test.txt";

static void write_file(const char *text) {
    FILE *file = fopen(path, "wb");
    T_CHECK(file != NULL, "%s", path);
    if (!file) return;
    fputs(text, file);
    T_CHECK(fclose(file) == 0, "unexpected");
}

/* ---- Good ones: groups as "batch/layer/position/rows:id*uses,id*uses" ---- */

static void append(char *out, size_t size, const plumb_route_group *g) {
    size_t n = strlen(out);
    n += (size_t)snprintf(out + n, size - n, "%s%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64 ":",
                          n > 0 ? " " : "", g->batch, g->layer, g->position, g->rows);
    for (int64_t i = 0; i < g->n; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%d*%" PRId64, i > 0 ? "," : "", (int)g->id[i],
                              g->uses[i]);
}

static plumb_status read_all(char *out, size_t size, plumb_error *err) {
    plumb_route_trace *trace = NULL;
    out[0] = '\0';
    plumb_status status = plumb__route_trace_open(path, &trace, err);
    bool more = true;
    while (status == PLUMB_OK && more) {
        plumb_route_group group;
        status = plumb__route_trace_next(trace, &group, &more, err);
        if (status == PLUMB_OK && more) append(out, size, &group);
    }
    plumb__route_trace_close(trace);
    return status;
}

static void good(void) {
    static const struct {
        const char *text, *groups;
    } files[] = {
        {"plumb routes 1 2 8 2\n", ""},
        /* two tokens decoded one by one */
        {"plumb routes 1 2 8 2\n0 0 5 3\n0 1 0 7\n1 0 3 5\n1 1 7 1\n",
         "0/0/0/1:3*1,5*1 0/1/0/1:0*1,7*1 1/0/1/1:3*1,5*1 1/1/1/1:1*1,7*1"},
        /* a batch of three rows, then a token */
        {"plumb routes 1 2 8 2\n0 0 5 3\n1 0 3 2\n2 0 3 5\n0 1 0 7\n1 1 7 1\n2 1 7 0\n3 0 1 2\n3 1 1 2\n",
         "0/0/0/3:2*1,3*3,5*2 0/1/0/3:0*2,1*1,7*3 1/0/3/1:1*1,2*1 1/1/3/1:1*1,2*1"},
        /* upper layers do fewer rows, or none: the next batch starts lower */
        {"plumb routes 1 3 4 1\n0 0 1\n1 0 2\n1 1 3\n2 0 1\n3 0 2\n3 1 0\n3 2 0\n",
         "0/0/0/2:1*1,2*1 0/1/1/1:3*1 1/0/2/2:1*1,2*1 1/1/3/1:0*1 1/2/3/1:0*1"},
        /* the same layer at another place, as after going back: a new batch */
        {"plumb routes 1 1 4 1\n5 0 1\n6 0 1\n2 0 3\n", "0/0/5/2:1*2 1/0/2/1:3*1"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char groups[512];
        plumb_error err = {0};
        write_file(files[i].text);
        T_CHECK(read_all(groups, sizeof groups, &err) == PLUMB_OK, "%zu: %s %s", i, err.field, err.found);
        T_CHECK(!strcmp(groups, files[i].groups), "%zu: %s", i, groups);
    }
}

/* ---- Bad ones ---- */

#define HEAD "plumb routes 1 2 8 2\n"

static void bad(void) {
    static const struct {
        const char *text, *line, *found;
    } files[] = {
        {"", "line 1", "the end of the file"},
        {"plumb routes", "line 1", "the end of the file"},
        {"plumb routes 2 2 8 2\n", "line 1", "'2 2 8 2'"},
        {"# routes\n", "line 1", "'# routes'"},
        {"plumb routes 1 2 8\n", "line 1", "the end of the line"},
        {"plumb routes 1 2 8 2 1\n", "line 1", "' 1'"},
        {"plumb routes 1 2 8 2", "line 1", "the end of the file"},
        {"plumb routes 1 0 8 2\n", "line 1", "0 layers"},
        {"plumb routes 1 2 8 0\n", "line 1", "0 experts per token"},
        {"plumb routes 1 2 8 9\n", "line 1", "9 experts per token"},
        {"plumb routes 1 65537 8 2\n", "line 1", "layers 65537"},
        {"plumb routes 1 2 99999999999999999999 2\n", "line 1", "experts 9999999..."},
        {"plumb routes 1 -2 8 2\n", "line 1", "'-2 8 2'"},
        {HEAD "0 0 5\n", "line 2", "the end of the line"},
        {HEAD "0 0 5 3 1\n", "line 2", "' 1'"},
        {HEAD "0 0 5 3\n0 1 5 5\n", "line 3", "expert 5 twice"},
        {HEAD "0 2 5 3\n", "line 2", "layer 2"},
        {HEAD "0 0 8 3\n", "line 2", "expert 8"},
        {HEAD "0 0 5 -3\n", "line 2", "'-3'"},
        {HEAD "0 0 5  3\n", "line 2", "' 3'"},
        {HEAD "0\t0 5 3\n", "line 2", "'?0 5 3'"},
        {HEAD "00 0 5 3\n", "line 2", "'0 0 5 3'"},
        {HEAD "0 0 5 3\r\n", "line 2", "'?'"},
        {HEAD "0 0 5 3\n\n", "line 3", "the end of the line"},
        {HEAD "0 0 5 3\n0 1 5 3", "line 3", "the end of the file"},
        {HEAD "1099511627776 0 5 3\n", "line 2", "position 1099511627776"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char groups[512];
        plumb_error err = {0};
        write_file(files[i].text);
        plumb_status status = read_all(groups, sizeof groups, &err);
        T_CHECK(status == PLUMB_ERROR_FORMAT, "%zu: status %d", i, (int)status);
        T_CHECK(!strcmp(err.file, path) && !strcmp(err.field, files[i].line) &&
                    !strcmp(err.found, files[i].found) && err.expected[0],
                "%zu: %s: found %s, expected %s", i, err.field, err.found, err.expected);
    }
    plumb_route_trace *trace = NULL;
    plumb_error err = {0};
    T_CHECK(plumb__route_trace_open(BUILD_DIR "/no-such-trace", &trace, &err) == PLUMB_ERROR_IO, "%s: %s", err.field, err.found);
    T_CHECK(trace == NULL && strstr(err.file, "no-such-trace") != NULL, "unexpected");
}

/* ---- The writer, and a file of many buffers ---- */

enum { TOKENS = 3000, LAYERS = 5, EXPERTS = 300, K = 4, CHUNK = 700 };

static int32_t id_of(int64_t position, int64_t layer, int k) {
    return (int32_t)((position * 7 + layer * 31 + k * (1 + position % 5)) % EXPERTS);
}

static void written_is_read(void) {
    static const plumb_route_shape shape = {LAYERS, EXPERTS, K};
    static int32_t ids[CHUNK * K];
    plumb_error err = {0};
    FILE *file = fopen(path, "wb");
    T_CHECK(file != NULL, "unexpected");
    if (!file) return;
    T_CHECK(plumb__route_trace_begin(file, path, &shape, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    for (int64_t first = 0; first < TOKENS; first += CHUNK) {
        int64_t rows = TOKENS - first < CHUNK ? TOKENS - first : CHUNK;
        for (int64_t layer = 0; layer < LAYERS; layer++) {
            for (int64_t i = 0; i < rows * K; i++) ids[i] = id_of(first + i / K, layer, (int)(i % K));
            T_CHECK(plumb__route_trace_add(file, path, &shape, first, layer, rows, ids, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
        }
    }
    T_CHECK(fclose(file) == 0, "unexpected");

    plumb_route_trace *trace = NULL;
    T_CHECK(plumb__route_trace_open(path, &trace, &err) == PLUMB_OK, "%s %s", err.field, err.found);
    if (!trace) return;
    T_CHECK(plumb__route_trace_shape(trace)->experts == EXPERTS, "unexpected");
    int64_t groups = 0, wrong = 0;
    bool more = true;
    while (more) {
        plumb_route_group g;
        T_CHECK(plumb__route_trace_next(trace, &g, &more, &err) == PLUMB_OK, "%s %s", err.field, err.found);
        if (!more) break;
        int64_t uses[EXPERTS] = {0}, at = 0;
        for (int64_t i = 0; i < g.rows * K; i++) uses[id_of(g.position + i / K, g.layer, (int)(i % K))]++;
        for (int e = 0; e < EXPERTS; e++)
            if (uses[e] > 0) {
                wrong += at >= g.n || g.id[at] != e || g.uses[at] != uses[e];
                at++;
            }
        wrong += at != g.n || g.batch != groups / LAYERS || g.layer != groups % LAYERS ||
                 g.position != g.batch * CHUNK;
        groups++;
    }
    T_CHECK(groups == LAYERS * ((TOKENS + CHUNK - 1) / CHUNK) && wrong == 0, "%" PRId64 " groups, %" PRId64 " wrong",
            groups, wrong);
    plumb__route_trace_close(trace);
}

static void full_device(void) {
    FILE *full = fopen("/dev/full", "wb");
    if (!full) {
        T_CHECK(true, "unexpected");
        printf("skipped: no /dev/full\n");
        return;
    }
    static const plumb_route_shape shape = {LAYERS, EXPERTS, K};
    plumb_error err = {0};
    (void)setvbuf(full, NULL, _IONBF, 0);
    T_CHECK(plumb__route_trace_begin(full, "routes", &shape, &err) == PLUMB_ERROR_IO, "%s: %s", err.field, err.found);
    T_CHECK(!strcmp(err.file, "routes"), "unexpected");
    fclose(full);
}

T_MAIN({"good", good}, {"bad", bad}, {"written_is_read", written_is_read}, {"full_device", full_device})
