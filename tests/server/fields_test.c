/* Typed fields of requests: what is taken, what is refused, and how the fault is named. */
#include "server/fields.h"

#include "t.h"

#include <stdlib.h>

static const struct {
    const char *body, *param, *message; /* message NULL: taken */
} cases[] = {
    {"{}", "", NULL},
    {"{\"b\":true,\"i\":5,\"n\":0.5,\"s\":\"x\",\"c\":\"two\",\"stop\":[\"a\",\"b\"]}", "", NULL},
    {"{\"b\":null,\"i\":null,\"n\":null,\"s\":null,\"c\":null,\"stop\":null}", "", NULL},
    {"{\"i\":5.0,\"stop\":\"a\"}", "", NULL},
    {"{\"i\":1e1}", "", NULL},
    {"{\"b\":1}", "b", "'b' is a number, expected a boolean"},
    {"{\"i\":5.5}", "i", "expected a whole number"},
    {"{\"i\":11}", "i", "'i' is 11, expected 0 to 10"},
    {"{\"i\":-1}", "i", "expected 0 to 10"},
    {"{\"i\":1e300}", "i", "expected a whole number"},
    {"{\"i\":\"5\"}", "i", "'i' is a string, expected a whole number"},
    {"{\"n\":2}", "n", "'n' is 2, expected 0 to 1"},
    {"{\"n\":[]}", "n", "'n' is an array, expected a number"},
    {"{\"n\":NaN}", "", "the body is not JSON"},
    {"{\"n\":1e999}", "", "the body is not JSON"},
    {"{\"s\":{}}", "s", "'s' is an object, expected a string"},
    {"{\"s\":\"a\\u0000b\"}", "s", "NUL"},
    {"{\"c\":\"three\"}", "c", "expected one of: one, two"},
    {"{\"stop\":[\"a\",1]}", "stop", "expected a string or strings"},
    {"{\"stop\":[\"\"]}", "stop", "empty string"},
    {"{\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]}", "stop", "at most 4"},
    {"{\"o\":{\"i\":11}}", "o.i", "expected 0 to 10"},
    {"{\"o\":[]}", "o", "'o' is an array, expected an object"},
    {"{\"a\":[{\"i\":1},{\"i\":99}]}", "a[1].i", "expected 0 to 10"},
    {"{\"a\":[{\"i\":1},7]}", "a[1]", "expected an object"},
    {"{\"i\":1,\"i\":2}", "", "not JSON: duplicate"},
    {"[]", "", "not a JSON object"},
    {"{\"s\":\"\xff\"}", "", "not JSON"},
    {"", "", "not JSON"},
    {"{\"i\":1} x", "", "not JSON"},
};

static bool read_all(const plumb_fields *f, plumb_generation *g) {
    static const char *const choices[] = {"one", "two", NULL};
    bool b, present;
    int64_t i;
    double n;
    const char *s;
    int c;
    json_t *a = NULL;
    plumb_fields inner;
    if (!plumb__field_bool(f, "b", &b) || !plumb__field_int(f, "i", 0, 10, &i) ||
        !plumb__field_number(f, "n", 0, 1, &n) || !plumb__field_string(f, "s", &s) ||
        !plumb__field_choice(f, "c", choices, &c) || !plumb__field_stops(f, "stop", 4, g) ||
        !plumb__field_array(f, "a", &a) || !plumb__fields_of(f, "o", &inner, &present))
        return false;
    if (present && !plumb__field_int(&inner, "i", 0, 10, &i)) return false;
    for (size_t at = 0; a && at < json_array_size(a); at++)
        if (!plumb__fields_at(f, "a", a, at, &inner) || !plumb__field_int(&inner, "i", 0, 10, &i)) return false;
    return true;
}

static void faults(void) {
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        const char *body = cases[at].body;
        plumb_api_error error = {0};
        plumb_fields fields;
        json_t *root = NULL;
        plumb_generation *g = plumb__generation_create();
        bool taken = plumb__fields_parse(body, strlen(body), &root, &fields, &error) && read_all(&fields, g);
        T_CHECK(taken == (cases[at].message == NULL), "%s: %s", body, error.message);
        T_CHECK(strcmp(error.param, cases[at].param) == 0, "%s: field '%s'", body, error.param);
        T_CHECK(!cases[at].message || strstr(error.message, cases[at].message), "%s: %s", body, error.message);
        json_decref(root);
        plumb__generation_destroy(g);
    }
}

static void depth(void) {
    for (int depth = 63; depth <= 64; depth++) {
        char body[400] = "{\"a\":";
        for (int i = 0; i < depth; i++) strcat(body, "[");
        for (int i = 0; i < depth; i++) strcat(body, "]");
        strcat(body, "}");
        plumb_api_error error = {0};
        plumb_fields fields;
        json_t *root = NULL;
        bool taken = plumb__fields_parse(body, strlen(body), &root, &fields, &error);
        T_CHECK(taken == (depth == 63), "%d: %s", depth, error.message);
        json_decref(root);
    }
}

/* Brackets that nest nothing, a hundred of them. */
static void width(void) {
    static const struct {
        const char *begin, *each, *end;
    } bodies[] = {{"{\"a\":[[]", ",[]", "]}"}, {"{\"a\":\"\\\"", "[", "\"}"}, {"{\"a\":\"\\\\\",\"b\":\"", "{", "\"}"}};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char body[400] = "";
        strcat(body, bodies[i].begin);
        for (int n = 0; n < 100; n++) strcat(body, bodies[i].each);
        strcat(body, bodies[i].end);
        plumb_api_error error = {0};
        plumb_fields fields;
        json_t *root = NULL;
        T_CHECK(plumb__fields_parse(body, strlen(body), &root, &fields, &error), "%s: %s", body, error.message);
        json_decref(root);
    }
}

/* A body of an array that has `each` n times and a last element. */
static char *repeated(const char *each, int n, size_t *size) {
    static const char begin[] = "{\"a\":[", end[] = "0]}";
    const size_t length = strlen(each);
    char *body = malloc(sizeof begin + sizeof end + (size_t)n * length), *at = body;
    if (!body) return NULL;
    at += sprintf(at, "%s", begin);
    for (int i = 0; i < n; i++, at += length) memcpy(at, each, length);
    at += sprintf(at, "%s", end);
    *size = (size_t)(at - body);
    return body;
}

/* Many small values cost more than their bytes; each of these is two of them, or of names. */
static void many_values(void) {
    static const char *const each[] = {"0,0,", "{},", "[],", "\"\\\",\",0,"};
    enum { MOST = 1 << 21, AROUND = 4 /* the object, its name, the array, the last element */ };
    for (size_t kind = 0; kind < sizeof each / sizeof each[0]; kind++) {
        for (int more = 0; more < 2; more++) {
            size_t size = 0;
            char *body = repeated(each[kind], (MOST - AROUND) / 2 + more, &size);
            plumb_api_error error = {0};
            plumb_fields fields;
            json_t *root = NULL;
            bool taken = body && plumb__fields_parse(body, size, &root, &fields, &error);
            T_CHECK(taken == !more, "%s: %s", each[kind], error.message);
            T_CHECK(taken || error.refusal == PLUMB_REFUSAL_TOO_LARGE, "%s: %d", each[kind], (int)error.refusal);
            json_decref(root);
            free(body);
        }
    }
}

static bool take_stops(const char *body, plumb_generation *g, plumb_api_error *error) {
    plumb_fields fields;
    json_t *root = NULL;
    bool taken = plumb__fields_parse(body, strlen(body), &root, &fields, error) &&
                 plumb__field_stops(&fields, "stop", 2, g);
    json_decref(root);
    return taken;
}

/* An answer keeps a table of each stop string. */
static void long_stops(void) {
    static const char begin[] = "{\"stop\":[\"a\",\"", end[] = "\"]}";
    enum { MOST = 1 << 16, BEGIN = sizeof begin - 1 };
    for (size_t more = 0; more < 2; more++) {
        char *body = malloc(BEGIN + MOST + 1 + sizeof end);
        if (!body) return;
        memcpy(body, begin, BEGIN);
        memset(body + BEGIN, 'x', MOST + more);
        memcpy(body + BEGIN + MOST + more, end, sizeof end);
        plumb_api_error error = {0};
        plumb_generation *g = plumb__generation_create();
        T_CHECK(take_stops(body, g, &error) == !more, "%d and %zu bytes: %s", MOST, more, error.message);
        plumb__generation_destroy(g);
        free(body);
    }
}

/* NUL is a character like another. */
static void stops(void) {
    static const char body[] = "{\"stop\":[\"\\u0000a\",\"b\\u0000c\"]}";
    plumb_api_error error = {0};
    plumb_generation *g = plumb__generation_create();
    bool taken = take_stops(body, g, &error);
    T_CHECK(taken && g->n_stop == 2, "%s", error.message);
    T_CHECK(g->n_stop == 2 && g->stop[0].size == 2 && !memcmp(g->stop[0].bytes, "\0a", 2) && g->stop[1].size == 3 &&
                !memcmp(g->stop[1].bytes, "b\0c", 3), "what was given");
    plumb__generation_destroy(g);
}

int main(int argc, char **argv) {
    static const t_test tests[] = {{"faults", faults}, {"depth", depth}, {"width", width}, {"many_values", many_values},
                                   {"long_stops", long_stops}, {"stops", stops}};
    return t_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
