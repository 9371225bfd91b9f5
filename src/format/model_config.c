/* config.json: from text to fields, by the table in model_config_fields.c. */
#include "format/model_config.h"

#include "base/error.h"
#include "format/model_config_fields.h"
#include "format/model_files.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_CONFIG_BYTES = 4 << 20, /* the release's is 3 KB */
    MOST_WARNINGS = 8           /* unknown keys named one by one */
};

/* One value at hand: where it came from and where messages point. */
typedef struct site {
    const plumb_config_field *field;
    const char *path;
    plumb_error *err;
    char name[192]; /* "text_config.head_dim" */
} site;

/* ---- Saying what was found and expected ------------------------------------------------------ */

static plumb__text192 describe(const json_t *value) {
    if (!value) return plumb__format("nothing");
    switch (json_typeof(value)) {
    case JSON_OBJECT: return plumb__format("an object");
    case JSON_ARRAY: return plumb__format("a list of %zu", json_array_size(value));
    case JSON_STRING: return plumb__format("\"%.150s\"", json_string_value(value));
    case JSON_INTEGER: return plumb__format("%lld", (long long)json_integer_value(value));
    case JSON_REAL: return plumb__format("%.17g", json_real_value(value));
    case JSON_TRUE: return plumb__format("true");
    case JSON_FALSE: return plumb__format("false");
    case JSON_NULL: return plumb__format("null");
    }
    return plumb__format("an unknown value");
}

static plumb__text192 describe_expected(const plumb_config_field *field) {
    switch (field->kind) {
    case PLUMB_CONFIG_INTEGER:
        if (field->multiple > 1)
            return plumb__format("a multiple of %lld from %.0f to %.0f", (long long)field->multiple,
                                 field->low, field->high);
        return plumb__format("a whole number from %.0f to %.0f", field->low, field->high);
    case PLUMB_CONFIG_INTEGERS:
        return plumb__format("a list of at most %lld whole numbers from %.0f to %.0f",
                             (long long)field->max_count, field->low, field->high);
    case PLUMB_CONFIG_DOUBLE:
    case PLUMB_CONFIG_FLOAT:
        return plumb__format("a number from %g to %g", field->low, field->high);
    case PLUMB_CONFIG_OPTIONAL:
        return plumb__format("null or a number from %g to %g", field->low, field->high);
    case PLUMB_CONFIG_IS_TEXT: return plumb__format("\"%s\"", field->text);
    case PLUMB_CONFIG_IS_NUMBER:
    case PLUMB_CONFIG_IS_NUMBER_OR_ABSENT: return plumb__format("%.0f", field->low);
    case PLUMB_CONFIG_IS_TRUE: return plumb__format("true");
    case PLUMB_CONFIG_IS_FALSE: return plumb__format("false");
    case PLUMB_CONFIG_IS_TEXTS: return plumb__format("[\"%s\"]", field->text);
    case PLUMB_CONFIG_IS_NUMBERS:
        return plumb__format("a list of %lld times %.0f", (long long)field->max_count, field->low);
    case PLUMB_CONFIG_OBJECT: return plumb__format("an object");
    case PLUMB_CONFIG_UNUSED: break;
    }
    return plumb__format("anything");
}

static plumb_status refuse(site *at, int64_t index, const json_t *value) {
    return plumb__fail(at->err, PLUMB_ERROR_CONFIG, at->path, at->name, index, describe(value).s,
                       "%s", describe_expected(at->field).s);
}

/* ---- One field ------------------------------------------------------------------------------- */

static bool integer_fits(const plumb_config_field *field, const json_t *value) {
    if (!json_is_integer(value)) return false;
    json_int_t x = json_integer_value(value);
    return x >= (json_int_t)field->low && x <= (json_int_t)field->high && x % field->multiple == 0;
}

static bool number_fits(const plumb_config_field *field, const json_t *value) {
    double x = json_number_value(value);
    return json_is_number(value) && x >= field->low && x <= field->high;
}

static plumb_status read_number(site *at, const json_t *value, void *to) {
    if (!number_fits(at->field, value)) return refuse(at, -1, value);
    double wide = json_number_value(value);
    float narrow = (float)wide;
    if (at->field->kind == PLUMB_CONFIG_FLOAT) memcpy(to, &narrow, sizeof narrow);
    else memcpy(to, &wide, sizeof wide);
    return PLUMB_OK;
}

static plumb_status read_list(site *at, const json_t *value, plumb_config_reading *reading) {
    const plumb_config_field *field = at->field;
    int64_t count = (int64_t)json_array_size(value);
    if (!json_is_array(value) || count > field->max_count) return refuse(at, -1, value);
    int64_t *items = (int64_t *)((char *)reading + field->offset);
    for (int64_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(value, (size_t)i);
        if (!integer_fits(field, item)) return refuse(at, i, item);
        items[i] = json_integer_value(item);
    }
    memcpy((char *)reading + field->count_offset, &count, sizeof count);
    return PLUMB_OK;
}

/* Does the value have the one content that the architecture allows? */
static bool is_what_it_must_be(const plumb_config_field *field, const json_t *value) {
    size_t items = json_array_size(value);
    switch (field->kind) {
    case PLUMB_CONFIG_IS_TEXT:
        return json_is_string(value) && !strcmp(json_string_value(value), field->text);
    case PLUMB_CONFIG_IS_NUMBER:
    case PLUMB_CONFIG_IS_NUMBER_OR_ABSENT:
        return json_is_number(value) && json_number_value(value) == field->low;
    case PLUMB_CONFIG_IS_TRUE: return json_is_true(value);
    case PLUMB_CONFIG_IS_FALSE: return json_is_false(value);
    case PLUMB_CONFIG_OBJECT: return json_is_object(value);
    case PLUMB_CONFIG_IS_TEXTS:
        value = json_array_get(value, 0);
        return items == 1 && json_is_string(value) &&
               !strcmp(json_string_value(value), field->text);
    case PLUMB_CONFIG_IS_NUMBERS:
        if ((int64_t)items != field->max_count) return false;
        for (size_t i = 0; i < items; i++)
            if (json_number_value(json_array_get(value, i)) != field->low) return false;
        return true;
    default: return false;
    }
}

static plumb_status read_value(site *at, const json_t *value, plumb_config_reading *reading) {
    const plumb_config_field *field = at->field;
    char *to = (char *)reading + field->offset;
    switch (field->kind) {
    case PLUMB_CONFIG_UNUSED: return PLUMB_OK;
    case PLUMB_CONFIG_INTEGERS: return read_list(at, value, reading);
    case PLUMB_CONFIG_INTEGER: {
        if (!integer_fits(field, value)) return refuse(at, -1, value);
        int64_t x = json_integer_value(value);
        memcpy(to, &x, sizeof x);
        return PLUMB_OK;
    }
    case PLUMB_CONFIG_OPTIONAL:
        if (!value || json_is_null(value)) return PLUMB_OK; /* the struct starts as zeros */
        return read_number(at, value, to);
    case PLUMB_CONFIG_DOUBLE:
    case PLUMB_CONFIG_FLOAT: return read_number(at, value, to);
    case PLUMB_CONFIG_IS_NUMBER_OR_ABSENT:
        if (!value) return PLUMB_OK;
        break;
    default: break;
    }
    return is_what_it_must_be(field, value) ? PLUMB_OK : refuse(at, -1, value);
}

/* ---- All fields ------------------------------------------------------------------------------ */

/* The object of a section, or NULL where a parent is missing (which the parent's own row reports,
 * since it comes first in the table). */
static const json_t *section_of(const json_t *root, plumb_config_section section) {
    const json_t *text = json_object_get(root, "text_config");
    switch (section) {
    case PLUMB_CONFIG_ROOT: return root;
    case PLUMB_CONFIG_QUANTIZATION: return json_object_get(root, "quantization_config");
    case PLUMB_CONFIG_TEXT: return text;
    case PLUMB_CONFIG_ROPE_SCALING: return json_object_get(text, "rope_scaling");
    case PLUMB_CONFIG_VISION: return json_object_get(root, "vision_config");
    case PLUMB_CONFIG_SECTIONS: break;
    }
    return NULL;
}

static void name_field(char name[192], plumb_config_section section, const char *key) {
    const char *in = plumb__config_section_names[section];
    plumb__text192 whole = plumb__format("%s%s%.120s", in, *in ? "." : "", key);
    memcpy(name, whole.s, sizeof whole.s);
}

static plumb_status read_fields(const json_t *root, const char *path, plumb_config_reading *reading,
                                plumb_error *err) {
    for (int i = 0; i < plumb__config_field_count; i++) {
        const plumb_config_field *field = &plumb__config_fields[i];
        const json_t *section = section_of(root, field->section);
        const json_t *value = json_object_get(section, field->key);
        site at = {.field = field, .path = path, .err = err};
        name_field(at.name, field->section, field->key);
        const json_t *other = field->alias ? json_object_get(section, field->alias) : NULL;
        if (value && other)
            return plumb__fail(err, PLUMB_ERROR_CONFIG, path, at.name, -1,
                               plumb__format("%s as well", field->alias).s, "one of the two");
        plumb_status status = read_value(&at, value ? value : other, reading);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

static bool is_known(plumb_config_section section, const char *key) {
    for (int i = 0; i < plumb__config_field_count; i++) {
        const plumb_config_field *field = &plumb__config_fields[i];
        if (field->section != section) continue;
        if (!strcmp(field->key, key) || (field->alias && !strcmp(field->alias, key))) return true;
    }
    return false;
}

static void warn(const char *path, const char *field, const char *what, plumb_log_fn log,
                 void *log_user) {
    char line[512];
    plumb_error note;
    (void)plumb__fail(&note, PLUMB_ERROR_CONFIG, path, field, -1, what, NULL);
    plumb_error_line(&note, line, sizeof line);
    log(log_user, PLUMB_LOG_WARNING, line);
}

/* A key we do not know may belong to a later release: worth a word, no reason to refuse. */
static void warn_unknown_keys(const json_t *root, const char *path, plumb_log_fn log,
                              void *log_user) {
    int64_t unknown = 0;
    for (int section = 0; log && section < PLUMB_CONFIG_SECTIONS; section++) {
        json_t *object = (json_t *)section_of(root, (plumb_config_section)section);
        for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
            const char *key = json_object_iter_key(at);
            if (is_known((plumb_config_section)section, key)) continue;
            if (++unknown > MOST_WARNINGS) continue;
            char name[192];
            name_field(name, (plumb_config_section)section, key);
            warn(path, name, "unknown key, ignored", log, log_user);
        }
    }
    if (unknown > MOST_WARNINGS)
        warn(path, NULL,
             plumb__format("%lld more unknown keys, ignored",
                           (long long)(unknown - MOST_WARNINGS)).s,
             log, log_user);
}

/* What stands where JSON should: the parser's own words say what it missed, not what is there. */
static plumb__text192 describe_fault(const char *text, size_t size, const json_error_t *fault) {
    static const char utf8_mark[] = "\xEF\xBB\xBF", low_mark[] = "\xFF\xFE",
                      high_mark[] = "\xFE\xFF";
    size_t blanks = 0;
    while (blanks < size && memchr(" \t\r\n", text[blanks], 4)) blanks++;
    if (blanks == size) return plumb__format("nothing");
    if ((size >= 3 && !memcmp(text, utf8_mark, 3)) ||
        (size >= 2 && (!memcmp(text, low_mark, 2) || !memcmp(text, high_mark, 2))))
        return plumb__format("a byte order mark");
    return plumb__format("faulty JSON (%s)", fault->text);
}

plumb_status plumb__config_parse(const char *json, size_t size, const char *path, plumb_log_fn log,
                                 void *log_user, plumb_model_config *config, plumb_error *err) {
    json_error_t fault;
    json_t *root = json_loadb(json, size, JSON_REJECT_DUPLICATES, &fault);
    if (!root)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "JSON", fault.position,
                           describe_fault(json, size, &fault).s, "one JSON object, no key twice");
    plumb_config_reading *reading = calloc(1, sizeof *reading);
    plumb_status status = PLUMB_OK;
    if (!reading)
        status = plumb__fail_memory(err, "config", sizeof *reading);
    else if (!json_is_object(root))
        status = plumb__fail(err, PLUMB_ERROR_FORMAT, path, "JSON", 0, describe(root).s,
                             "one JSON object");
    else
        status = read_fields(root, path, reading, err);
    if (status == PLUMB_OK) status = plumb__config_check(reading, path, err);
    if (status == PLUMB_OK) {
        warn_unknown_keys(root, path, log, log_user);
        *config = reading->config;
    }
    free(reading);
    json_decref(root);
    return status;
}

plumb_status plumb__config_load(const char *model, plumb_log_fn log, void *log_user,
                                plumb_model_config *config, plumb_error *err) {
    char *text = NULL, *path = plumb__model_file_name(model, "config.json");
    int64_t size;
    plumb_status status =
        path ? plumb__model_file_load(model, "config.json", MAX_CONFIG_BYTES, &text, &size, err)
             : plumb__fail_memory(err, model, strlen(model));
    if (status == PLUMB_OK)
        status = plumb__config_parse(text, (size_t)size, path, log, log_user, config, err);
    free(text);
    free(path);
    return status;
}

int plumb__config_engram_index(const plumb_model_config *config, int64_t layer) {
    for (int i = 0; i < config->engram_layers; i++)
        if (config->engram_layer[i] == layer) return i;
    return -1;
}
