/* Typed fields of a request's JSON.
 *
 * Each function reads member `key` of an object.  Absent or null leaves *value as it was and is no fault.
 * A wrong type or range fills `error` (the first fault stays) with the member's path and makes the function
 * return false.  Strings are borrowed from the object.  Integers may be written as 1e3 or 1000.0. */
#ifndef PLUMB_SERVER_FIELDS_H
#define PLUMB_SERVER_FIELDS_H

#include "server/generation.h"

#include <jansson.h>

/* A JSON object and where it stands in the request. */
typedef struct plumb_fields {
    const json_t *object;
    char path[96];          /* "messages[2]."; empty at the top */
    plumb_api_error *error; /* zeroed by whoever began */
} plumb_fields;

/* Parses a body that must be an object, with no repeated member, no deeper than 64 levels and of two million values
 * and names at most; the caller owns *root. */
bool plumb__fields_parse(const char *body, size_t size, json_t **root, plumb_fields *fields,
                         plumb_api_error *error);
/* The fields of a member that is an object; of element `index` of an array. */
bool plumb__fields_of(const plumb_fields *outer, const char *key, plumb_fields *inner, bool *present);
bool plumb__fields_at(const plumb_fields *outer, const char *key, const json_t *array, size_t index,
                      plumb_fields *inner);

bool plumb__field_bool(const plumb_fields *fields, const char *key, bool *value);
bool plumb__field_int(const plumb_fields *fields, const char *key, int64_t least, int64_t most, int64_t *value);
bool plumb__field_number(const plumb_fields *fields, const char *key, double least, double most, double *value);
bool plumb__field_float(const plumb_fields *fields, const char *key, double least, double most, float *value);
bool plumb__field_string(const plumb_fields *fields, const char *key, const char **value);
bool plumb__field_array(const plumb_fields *fields, const char *key, json_t **value);
/* One of `choices`, a NULL-terminated list; *value becomes its index. */
bool plumb__field_choice(const plumb_fields *fields, const char *key, const char *const *choices, int *value);
/* A string or an array of strings, at most `most` of them, none empty or of more than 64 KiB: as the generation's stop
 * strings. */
bool plumb__field_stops(const plumb_fields *fields, const char *key, int most, plumb_generation *generation);

/* Memory ran out, which is no fault of the client's; returns false. */
bool plumb__field_no_memory(const plumb_fields *fields);
/* A fault of the caller's own finding; returns false. `key` may be NULL: the object itself. */
bool plumb__field_fault(const plumb_fields *fields, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
