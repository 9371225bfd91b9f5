/* Printing: what json.dumps(value, ensure_ascii=False) prints; see python_json.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/python_json.h"

/* No double needs more than 767 decimal digits to be told from its neighbours' midpoints, so of a
 * longer number only whether the rest is zero matters. */
#define SIGNIFICANT_DIGITS 800
#define EXPONENT_LIMIT ((int64_t)1 << 50)

/* The exponent part of a number ("e-07"), saturated far beyond any double. */
static int64_t read_exponent(const char *bytes, size_t size) {
    int64_t exponent = 0;
    for (size_t i = 1; i < size; i++)
        if (bytes[i] >= '0' && bytes[i] <= '9' && exponent < EXPONENT_LIMIT)
            exponent = exponent * 10 + (bytes[i] - '0');
    return size > 1 && bytes[1] == '-' ? -exponent : exponent;
}

/* The double nearest to a JSON number.  strtod gets "digits e exponent" without a decimal point,
 * which is the same in every locale. */
static double number_value(const char *token, size_t size) {
    char text[SIGNIFICANT_DIGITS + 40];
    size_t used = 0, digits = 0, i = 0;
    int64_t exponent = 0;
    bool in_fraction = false, rest = false;
    if (token[0] == '-') text[used++] = token[i++];
    for (; i < size && token[i] != 'e' && token[i] != 'E'; i++) {
        if (token[i] == '.') {
            in_fraction = true;
            continue;
        }
        if (in_fraction) exponent--;
        if (digits == 0 && token[i] == '0') continue;
        if (digits < SIGNIFICANT_DIGITS) {
            text[used++] = token[i];
            digits++;
        } else {
            exponent++;
            rest |= token[i] != '0';
        }
    }
    if (rest) {
        text[used++] = '1';
        exponent--;
    }
    if (digits == 0) text[used++] = '0';
    if (i < size) exponent += read_exponent(token + i, size - i);
    (void)snprintf(text + used, sizeof text - used, "e%lld", (long long)exponent);
    return strtod(text, NULL);
}

/* A positive number d.ddd x 10^exponent. */
typedef struct decimal {
    char digits[20];
    int count;
    int exponent;
} decimal;

static double decimal_value(const decimal *d) {
    char text[40];
    (void)snprintf(text, sizeof text, "%.*se%d", d->count, d->digits, d->exponent - (d->count - 1));
    return strtod(text, NULL);
}

/* The nearest decimal of `count` digits. */
static void round_to(decimal *d, double value, int count) {
    char text[40];
    (void)snprintf(text, sizeof text, "%.*e", count - 1, value);
    d->count = 0;
    const char *c = text;
    for (; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9' && d->count < count) d->digits[d->count++] = *c;
    d->exponent = (int)strtol(c + 1, NULL, 10);
}

/* The next decimal above, of as many digits.  A carry out of the first digit gives up: the result
 * would be a power of ten, which fewer digits have been tried for. */
static bool step_up(decimal *d) {
    int i = d->count - 1;
    while (i >= 0 && d->digits[i] == '9') d->digits[i--] = '0';
    if (i < 0) return false;
    d->digits[i]++;
    return true;
}

/* The fewest digits that read back as `value`, and of those the nearest.  Below a power of two the
 * doubles lie closer than above it, so there the decimal above may do where the nearest does not.
 */
static decimal shortest(double value) {
    decimal d;
    for (int count = 1;; count++) {
        round_to(&d, value, count);
        if (count >= 17 || decimal_value(&d) == value) break;
        decimal above = d;
        if (step_up(&above) && decimal_value(&above) == value) {
            d = above;
            break;
        }
    }
    return d;
}

static void append_zeros(plumb__buffer *out, int count) {
    for (int i = 0; i < count; i++) plumb__buffer_append(out, "0", 1);
}

/* Python's repr of a float. */
static void print_float(double value, plumb__buffer *out) {
    if (signbit(value)) plumb__buffer_append(out, "-", 1);
    value = fabs(value);
    if (isinf(value)) {
        plumb__buffer_text(out, "Infinity");
        return;
    }
    if (value == 0) {
        plumb__buffer_text(out, "0.0");
        return;
    }
    decimal d = shortest(value);
    size_t count = (size_t)d.count;
    if (d.exponent < -4 || d.exponent >= 16) {
        char tail[16];
        plumb__buffer_append(out, d.digits, 1);
        if (count > 1) plumb__buffer_append(out, ".", 1);
        plumb__buffer_append(out, d.digits + 1, count - 1);
        (void)snprintf(tail, sizeof tail, "e%c%02d", d.exponent < 0 ? '-' : '+', abs(d.exponent));
        plumb__buffer_text(out, tail);
    } else if (d.exponent < 0) {
        plumb__buffer_text(out, "0.");
        append_zeros(out, -d.exponent - 1);
        plumb__buffer_append(out, d.digits, count);
    } else if (d.count <= d.exponent + 1) {
        plumb__buffer_append(out, d.digits, count);
        append_zeros(out, d.exponent + 1 - d.count);
        plumb__buffer_text(out, ".0");
    } else {
        size_t whole = (size_t)d.exponent + 1;
        plumb__buffer_append(out, d.digits, whole);
        plumb__buffer_append(out, ".", 1);
        plumb__buffer_append(out, d.digits + whole, count - whole);
    }
}

static void print_number(const plumb__python_value *value, plumb__buffer *out) {
    char last = value->bytes[value->size - 1];
    if (value->kind == PLUMB__PYTHON_FLOAT) {
        if (last == 'N' || last == 'y')
            plumb__buffer_append(out, value->bytes, value->size);
        else
            print_float(number_value(value->bytes, value->size), out);
    } else if (value->size == 2 && memcmp(value->bytes, "-0", 2) == 0) {
        plumb__buffer_append(out, "0", 1);
    } else {
        plumb__buffer_append(out, value->bytes, value->size);
    }
}

size_t plumb__python_json_escape_byte(char byte, char escaped[6]) {
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt",
                      hex[] = "0123456789abcdef";
    if ((unsigned char)byte >= 0x20 && byte != '"' && byte != '\\') {
        escaped[0] = byte;
        return 1;
    }
    const char *known = byte ? strchr(special, byte) : NULL;
    escaped[0] = '\\';
    if (known) {
        escaped[1] = letters[known - special];
        return 2;
    }
    memcpy(escaped + 1, "u00", 3);
    escaped[4] = hex[byte >> 4];
    escaped[5] = hex[byte & 15];
    return 6;
}

void plumb__python_json_escape(const char *bytes, size_t size, plumb__buffer *out) {
    char escaped[6];
    for (size_t i = 0; i < size; i++)
        plumb__buffer_append(out, escaped, plumb__python_json_escape_byte(bytes[i], escaped));
}

static void print_string(const char *bytes, size_t size, plumb__buffer *out) {
    plumb__buffer_append(out, "\"", 1);
    plumb__python_json_escape(bytes, size, out);
    plumb__buffer_append(out, "\"", 1);
}

static int compare_keys(const void *a, const void *b) {
    const plumb__python_value *x = *(const plumb__python_value *const *)a,
                              *y = *(const plumb__python_value *const *)b;
    size_t shorter = x->key_size < y->key_size ? x->key_size : y->key_size;
    int order = shorter ? memcmp(x->key, y->key, shorter) : 0;
    return order ? order : (x->key_size > y->key_size) - (x->key_size < y->key_size);
}

/* The members of a dict in the order of their keys; freed by the caller, NULL without memory. */
static const plumb__python_value **sort_members(const plumb__python_value *dict) {
    const plumb__python_value **sorted = malloc((size_t)(dict->count + 1) * sizeof *sorted);
    if (!sorted) return NULL;
    size_t n = 0;
    for (const plumb__python_value *m = dict->child; m; m = m->next) sorted[n++] = m;
    sorted[n] = NULL;
    if (n > 1) qsort(sorted, n, sizeof *sorted, compare_keys);
    return sorted;
}

static void print_value(const plumb__python_value *value, bool sort_keys, plumb__buffer *out);

static void print_items(const plumb__python_value *value, bool sort_keys, plumb__buffer *out) {
    bool dict = value->kind == PLUMB__PYTHON_DICT;
    const plumb__python_value **sorted = dict && sort_keys ? sort_members(value) : NULL;
    if (dict && sort_keys && !sorted) {
        out->failed = true;
        return;
    }
    plumb__buffer_text(out, dict ? "{" : "[");
    const plumb__python_value *item = sorted ? sorted[0] : value->child;
    for (size_t i = 0; item; i++) {
        if (i > 0) plumb__buffer_text(out, ", ");
        if (dict) {
            print_string(item->key, item->key_size, out);
            plumb__buffer_text(out, ": ");
        }
        print_value(item, sort_keys, out);
        item = sorted ? sorted[i + 1] : item->next;
    }
    plumb__buffer_text(out, dict ? "}" : "]");
    free(sorted);
}

static void print_value(const plumb__python_value *value, bool sort_keys, plumb__buffer *out) {
    switch (value->kind) {
    case PLUMB__PYTHON_NONE: plumb__buffer_text(out, "null"); break;
    case PLUMB__PYTHON_FALSE: plumb__buffer_text(out, "false"); break;
    case PLUMB__PYTHON_TRUE: plumb__buffer_text(out, "true"); break;
    case PLUMB__PYTHON_INT:
    case PLUMB__PYTHON_FLOAT: print_number(value, out); break;
    case PLUMB__PYTHON_STR: print_string(value->bytes, value->size, out); break;
    case PLUMB__PYTHON_LIST:
    case PLUMB__PYTHON_DICT: print_items(value, sort_keys, out); break;
    }
}

void plumb__python_json_print(const plumb__python_value *value, plumb__buffer *out) {
    print_value(value, false, out);
}

void plumb__python_json_print_sorted(const plumb__python_value *value, plumb__buffer *out) {
    print_value(value, true, out);
}
