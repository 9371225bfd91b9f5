/* Typed fields; see fields.h. */
#include "server/fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DEPTH = 64,
    MOST_STOP_BYTES = 1 << 16, /* each answer keeps nine for each of them */
    MOST_VALUES = 1 << 21 /* and names of members: twice the ids of the longest prompt */
};

static void set_fault(plumb_api_error *error, const char *param, const char *format, va_list arguments) {
    if (error->message[0]) return;
    error->refusal = PLUMB_REFUSAL_BAD_REQUEST;
    snprintf(error->param, sizeof error->param, "%s", param);
    vsnprintf(error->message, sizeof error->message, format, arguments);
}

static void name_of(const plumb_fields *fields, const char *key, char *name, size_t size) {
    size_t length = strlen(fields->path);
    if (key) snprintf(name, size, "%.90s%.30s", fields->path, key);
    else snprintf(name, size, "%.*s", (int)(length > 0 ? length - 1 : 0), fields->path); /* no dot */
}

bool plumb__field_fault(const plumb_fields *fields, const char *key, const char *format, ...) {
    char name[sizeof fields->error->param];
    name_of(fields, key, name, sizeof name);
    va_list arguments;
    va_start(arguments, format);
    set_fault(fields->error, name, format, arguments);
    va_end(arguments);
    return false;
}

bool plumb__field_no_memory(const plumb_fields *fields) {
    plumb_api_error *error = fields->error;
    if (error->message[0]) return false;
    error->refusal = PLUMB_REFUSAL_INTERNAL;
    snprintf(error->message, sizeof error->message, "no memory for the request");
    return false;
}

/* Says what was found where a value of another type is expected. */
static const char *type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    default: return "null";
    }
}

static bool wrong_type(const plumb_fields *fields, const char *key, const json_t *value, const char *expected) {
    char name[sizeof fields->error->param];
    name_of(fields, key, name, sizeof name);
    return plumb__field_fault(fields, key, "'%s' is %s, expected %s", name, type_name(value), expected);
}

static json_t *member(const plumb_fields *fields, const char *key) {
    json_t *value = json_object_get(fields->object, key);
    return json_is_null(value) ? NULL : value;
}

/* What parsing takes is seen before it: the stack by the levels, memory by the values, since the shortest of two
 * bytes take a hundred times as many. */
static bool check_extent(const plumb_fields *fields, const char *body, size_t size) {
    bool in_string = false;
    int depth = 0, values = 1;
    for (size_t i = 0; i < size; i++) {
        char c = body[i];
        if (in_string) {
            if (c == '\\') i++;
            else if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            values++;
            if (++depth > MOST_DEPTH)
                return plumb__field_fault(fields, NULL, "the body nests deeper than %d levels", MOST_DEPTH);
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == ',' || c == ':') {
            values++;
        }
        if (values <= MOST_VALUES) continue;
        plumb__field_fault(fields, NULL, "the body has more than %d values and names", MOST_VALUES);
        fields->error->refusal = PLUMB_REFUSAL_TOO_LARGE;
        return false;
    }
    return true;
}

bool plumb__fields_parse(const char *body, size_t size, json_t **root, plumb_fields *fields,
                         plumb_api_error *error) {
    *fields = (plumb_fields){.error = error};
    if (!check_extent(fields, body, size)) return false;
    json_error_t fault;
    /* NUL in strings is a character like another, and becomes text. */
    json_t *value = json_loadb(body, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &fault);
    if (!value && json_error_code(&fault) == json_error_out_of_memory) return plumb__field_no_memory(fields);
    if (!value)
        return plumb__field_fault(fields, NULL, "the body is not JSON: %s at byte %d", fault.text, fault.position);
    if (!json_is_object(value)) {
        json_decref(value);
        return plumb__field_fault(fields, NULL, "the body is not a JSON object");
    }
    *root = value;
    fields->object = value;
    return true;
}

bool plumb__fields_of(const plumb_fields *outer, const char *key, plumb_fields *inner, bool *present) {
    const json_t *value = member(outer, key);
    *present = value != NULL;
    if (!value) return true;
    if (!json_is_object(value)) return wrong_type(outer, key, value, "an object");
    *inner = (plumb_fields){.object = value, .error = outer->error};
    snprintf(inner->path, sizeof inner->path, "%.60s%.30s.", outer->path, key);
    return true;
}

bool plumb__fields_at(const plumb_fields *outer, const char *key, const json_t *array, size_t index,
                      plumb_fields *inner) {
    const json_t *value = json_array_get(array, index);
    char name[64];
    snprintf(name, sizeof name, "%.30s[%zu]", key, index);
    if (!json_is_object(value)) return wrong_type(outer, name, value, "an object");
    *inner = (plumb_fields){.object = value, .error = outer->error};
    snprintf(inner->path, sizeof inner->path, "%.40s%.50s.", outer->path, name);
    return true;
}

bool plumb__field_bool(const plumb_fields *fields, const char *key, bool *value) {
    const json_t *found = member(fields, key);
    if (!found) return true;
    if (!json_is_boolean(found)) return wrong_type(fields, key, found, "a boolean");
    *value = json_is_true(found);
    return true;
}

bool plumb__field_number(const plumb_fields *fields, const char *key, double least, double most, double *value) {
    const json_t *found = member(fields, key);
    if (!found) return true;
    if (!json_is_number(found)) return wrong_type(fields, key, found, "a number");
    double number = json_number_value(found);
    if (!(number >= least && number <= most))
        return plumb__field_fault(fields, key, "'%s' is %g, expected %g to %g", key, number, least, most);
    *value = number;
    return true;
}

bool plumb__field_float(const plumb_fields *fields, const char *key, double least, double most, float *value) {
    double number = (double)*value;
    if (!plumb__field_number(fields, key, least, most, &number)) return false;
    *value = (float)number;
    return true;
}

bool plumb__field_int(const plumb_fields *fields, const char *key, int64_t least, int64_t most, int64_t *value) {
    const json_t *found = member(fields, key);
    if (!found) return true;
    if (!json_is_number(found)) return wrong_type(fields, key, found, "a whole number");
    int64_t number = 0;
    if (json_is_integer(found)) {
        number = json_integer_value(found);
    } else {
        double real = json_real_value(found);
        if (real != floor(real) || fabs(real) > 9007199254740992.0)
            return plumb__field_fault(fields, key, "'%s' is %g, expected a whole number", key, real);
        number = (int64_t)real;
    }
    if (number < least || number > most)
        return plumb__field_fault(fields, key, "'%s' is %lld, expected %lld to %lld", key, (long long)number,
                                  (long long)least, (long long)most);
    *value = number;
    return true;
}

bool plumb__field_string(const plumb_fields *fields, const char *key, const char **value) {
    const json_t *found = member(fields, key);
    if (!found) return true;
    if (!json_is_string(found)) return wrong_type(fields, key, found, "a string");
    if (strlen(json_string_value(found)) != json_string_length(found))
        return plumb__field_fault(fields, key, "'%s' has a NUL character", key);
    *value = json_string_value(found);
    return true;
}

bool plumb__field_array(const plumb_fields *fields, const char *key, json_t **value) {
    json_t *found = member(fields, key);
    if (!found) return true;
    if (!json_is_array(found)) return wrong_type(fields, key, found, "an array");
    *value = found;
    return true;
}

bool plumb__field_choice(const plumb_fields *fields, const char *key, const char *const *choices, int *value) {
    const char *found = NULL;
    if (!plumb__field_string(fields, key, &found)) return false;
    if (!found) return true;
    char list[200] = "";
    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], found) == 0) {
            *value = i;
            return true;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? ", " : "", choices[i]);
    }
    return plumb__field_fault(fields, key, "'%s' is '%.40s', expected one of: %s", key, found, list);
}

static bool add_stop(const plumb_fields *fields, const char *key, const json_t *value, plumb_generation *g) {
    if (!json_is_string(value)) return wrong_type(fields, key, value, "a string or strings");
    size_t size = json_string_length(value);
    if (size == 0) return plumb__field_fault(fields, key, "'%s' has an empty string", key);
    if (size > MOST_STOP_BYTES)
        return plumb__field_fault(fields, key, "'%s' has a string of %zu bytes, expected at most %d", key, size,
                                  MOST_STOP_BYTES);
    char *bytes = malloc(size + 1);
    if (!bytes) return plumb__field_no_memory(fields);
    memcpy(bytes, json_string_value(value), size + 1);
    g->stop[g->n_stop++] = (plumb_stop_string){bytes, size};
    return true;
}

bool plumb__field_stops(const plumb_fields *fields, const char *key, int most, plumb_generation *g) {
    const json_t *found = member(fields, key);
    if (!found) return true;
    size_t count = json_is_array(found) ? json_array_size(found) : 1;
    if (count > (size_t)most)
        return plumb__field_fault(fields, key, "'%s' has %zu strings, expected at most %d", key, count, most);
    g->stop = calloc(count > 0 ? count : 1, sizeof *g->stop);
    if (!g->stop) return plumb__field_no_memory(fields);
    if (!json_is_array(found)) return add_stop(fields, key, found, g);
    for (size_t i = 0; i < count; i++)
        if (!add_stop(fields, key, json_array_get(found, i), g)) return false;
    return true;
}
