/* Keys and tensors by name.  They are sorted once: a name that is there twice then stands beside
 * itself, and looking up stays quick in tables of any size. */
#include "format/gguf_parse.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sorting --------------------------------------------------------------------------------- */

/* Equal names in the order of the file, so that a message tells of the second. */
static int by_key(const void *a, const void *b) {
    const plumb_gguf_value *const *left = a, *const *right = b;
    int order = strcmp((*left)->key, (*right)->key);
    return order != 0 ? order : (*left > *right) - (*left < *right);
}

static int by_name(const void *a, const void *b) {
    const plumb_gguf_tensor *const *left = a, *const *right = b;
    int order = strcmp((*left)->name, (*right)->name);
    return order != 0 ? order : (*left > *right) - (*left < *right);
}

static plumb_status sort_values(plumb_gguf *gguf, plumb_error *err) {
    size_t count = (size_t)gguf->values;
    gguf->by_key = malloc((count + 1) * sizeof *gguf->by_key);
    if (!gguf->by_key)
        return plumb__fail_memory(err, "keys of a GGUF header", count * sizeof *gguf->by_key);
    for (size_t i = 0; i < count; i++) gguf->by_key[i] = &gguf->value[i];
    qsort(gguf->by_key, count, sizeof *gguf->by_key, by_key);
    for (size_t i = 1; i < count; i++) {
        const plumb_gguf_value *value = gguf->by_key[i];
        if (!strcmp(value->key, gguf->by_key[i - 1]->key))
            return plumb__fail(err, PLUMB_ERROR_FORMAT, gguf->path, value->key, value->offset,
                               "the key a second time", "each key once");
    }
    return PLUMB_OK;
}

static plumb_status sort_tensors(plumb_gguf *gguf, plumb_error *err) {
    size_t count = (size_t)gguf->tensors;
    gguf->by_name = malloc((count + 1) * sizeof *gguf->by_name);
    if (!gguf->by_name)
        return plumb__fail_memory(err, "tensors of a GGUF header", count * sizeof *gguf->by_name);
    for (size_t i = 0; i < count; i++) gguf->by_name[i] = &gguf->tensor[i];
    qsort(gguf->by_name, count, sizeof *gguf->by_name, by_name);
    for (size_t i = 1; i < count; i++) {
        const plumb_gguf_tensor *tensor = gguf->by_name[i];
        if (!strcmp(tensor->name, gguf->by_name[i - 1]->name))
            return plumb__fail(err, PLUMB_ERROR_FORMAT, gguf->path, tensor->name, tensor->offset,
                               "the tensor a second time", "each tensor once");
    }
    return PLUMB_OK;
}

plumb_status plumb__gguf_sort(plumb_gguf *gguf, plumb_error *err) {
    plumb_status status = sort_values(gguf, err);
    return status == PLUMB_OK ? sort_tensors(gguf, err) : status;
}

/* ---- Looking up ------------------------------------------------------------------------------ */

static int compare_key(const void *key, const void *item) {
    const plumb_gguf_value *const *value = item;
    return strcmp(key, (*value)->key);
}

static int compare_name(const void *name, const void *item) {
    const plumb_gguf_tensor *const *tensor = item;
    return strcmp(name, (*tensor)->name);
}

const plumb_gguf_value *plumb__gguf_find(const plumb_gguf *gguf, const char *key) {
    const plumb_gguf_value *const *found = bsearch(key, gguf->by_key, (size_t)gguf->values,
                                                   sizeof *gguf->by_key, compare_key);
    return found ? *found : NULL;
}

const plumb_gguf_tensor *plumb__gguf_find_tensor(const plumb_gguf *gguf, const char *name) {
    const plumb_gguf_tensor *const *found = bsearch(name, gguf->by_name, (size_t)gguf->tensors,
                                                    sizeof *gguf->by_name, compare_name);
    return found ? *found : NULL;
}

/* ---- Values that must be there --------------------------------------------------------------- */

static const char *const type_names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64"};

/* What stands under `key`, in words. */
static plumb__text192 describe(const plumb_gguf_value *value) {
    if (!value) return plumb__format("no such key");
    if (value->type != PLUMB_GGUF_ARRAY)
        return plumb__format("a value of type %s", type_names[value->type]);
    return plumb__format("an array of %lld of type %s", (long long)value->count,
                         type_names[value->item]);
}

static plumb_status refuse(const plumb_gguf *gguf, const char *key, const plumb_gguf_value *value,
                           plumb__text192 found, plumb__text192 expected, plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_FORMAT, gguf->path, key, value ? value->offset : -1,
                       found.s, "%s", expected.s);
}

/* The number of an integer value; false when it is none or beyond 2^63. */
static bool whole_number(const plumb_gguf_value *value, int64_t *number) {
    uint64_t bits = 0;
    bool is_signed = value->type == PLUMB_GGUF_I8 || value->type == PLUMB_GGUF_I16 ||
                     value->type == PLUMB_GGUF_I32 || value->type == PLUMB_GGUF_I64;
    bool is_unsigned = value->type == PLUMB_GGUF_U8 || value->type == PLUMB_GGUF_U16 ||
                       value->type == PLUMB_GGUF_U32 || value->type == PLUMB_GGUF_U64;
    if (!is_signed && !is_unsigned) return false;
    memcpy(&bits, value->bytes, (size_t)value->size);
    if (is_signed) {
        uint64_t sign = (uint64_t)1 << (8 * value->size - 1);
        *number = (int64_t)((bits ^ sign) - sign);
        return true;
    }
    *number = (int64_t)bits;
    return bits <= INT64_MAX;
}

plumb_status plumb__gguf_integer(const plumb_gguf *gguf, const char *key, int64_t least,
                                 int64_t most, int64_t *value, plumb_error *err) {
    const plumb_gguf_value *found = plumb__gguf_find(gguf, key);
    int64_t number = 0;
    bool whole = found && whole_number(found, &number);
    if (whole && number >= least && number <= most) {
        *value = number;
        return PLUMB_OK;
    }
    return refuse(gguf, key, found,
                  whole ? plumb__format("%lld", (long long)number) : describe(found),
                  plumb__format("a whole number from %lld to %lld", (long long)least,
                                (long long)most), err);
}

plumb_status plumb__gguf_string(const plumb_gguf *gguf, const char *key, const char **text,
                                int64_t *size, plumb_error *err) {
    const plumb_gguf_value *found = plumb__gguf_find(gguf, key);
    if (!found || found->type != PLUMB_GGUF_STRING)
        return refuse(gguf, key, found, describe(found), plumb__format("a string"), err);
    *text = (const char *)found->bytes;
    *size = found->size;
    return PLUMB_OK;
}

plumb_status plumb__gguf_array(const plumb_gguf *gguf, const char *key, plumb_gguf_type item,
                               int64_t count, const plumb_gguf_value **value, plumb_error *err) {
    const plumb_gguf_value *found = plumb__gguf_find(gguf, key);
    if (!found || found->type != PLUMB_GGUF_ARRAY || found->item != item ||
        (count >= 0 && found->count != count))
        return refuse(gguf, key, found, describe(found),
                      count < 0 ? plumb__format("an array of type %s", type_names[item])
                                : plumb__format("an array of %lld of type %s", (long long)count,
                                                type_names[item]), err);
    *value = found;
    return PLUMB_OK;
}
