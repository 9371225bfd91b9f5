/* Numbers within bounds and strings of a length, a format or a pattern. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "grammar/json_rules.h"
#include "grammar/number_lexeme.h"
#include "grammar/schema.h"

int32_t plumb__count_keyword(plumb__builder *b, const json_t *schema, const char *keyword, int32_t missing) {
    const json_t *value = json_object_get(schema, keyword);
    if (!value) return missing;
    double count = json_number_value(value);
    if (!json_is_number(value) || count < 0 || floor(count) != count)
        plumb__builder_fail(b, PLUMB_ERROR_FORMAT, keyword, NULL, "an integer, 0 or more");
    else if (count > 1000000)
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, keyword, plumb__format("%.0f", count).s, "at most 1000000");
    return b->status == PLUMB_OK ? (int32_t)count : 0;
}

/* ---- Numbers ---- */

/* A bound in units of 10^-decimals, rounded to the inside (`up`: a minimum), clamped to what numbers have
 * room for. */
static int64_t bound_units(const json_t *value, int32_t decimals, bool up, bool exclusive) {
    const int64_t most = INT64_C(100000000000000000) - 1; /* 10^PLUMB__NUMBER_DIGITS */
    double unit = pow(10, decimals), scaled = json_number_value(value) * unit, nearest = round(scaled);
    int64_t units;
    if (!(fabs(scaled) < (double)most)) return scaled > 0 ? most : -most;
    if (json_is_integer(value)) units = json_integer_value(value) * (int64_t)unit;
    else if (fabs(scaled - nearest) <= 1e-9 * fmax(1, fabs(scaled)) && fabs(scaled) < 1e15) units = (int64_t)nearest;
    else return (int64_t)(up ? ceil(scaled) : floor(scaled));
    return exclusive ? up ? units + 1 : units - 1 : units;
}

static void apply_bound(plumb__builder *b, const json_t *schema, const char *keyword, int32_t decimals, bool up,
                        int64_t *bound) {
    const json_t *value = json_object_get(schema, keyword);
    if (!value) return;
    if (!json_is_number(value)) {
        plumb__builder_fail(b, PLUMB_ERROR_FORMAT, keyword, NULL, "a number");
        return;
    }
    int64_t units = bound_units(value, decimals, up, keyword[0] == 'e');
    if (up ? units > *bound : units < *bound) *bound = units;
}

int32_t plumb__compile_number(plumb__builder *b, const json_t *schema, bool integer) {
    static const char *const keywords[] = {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"};
    int32_t decimals = integer ? 0 : PLUMB__NUMBER_DECIMALS;
    int64_t most = INT64_C(100000000000000000) - 1, bounds[2] = {-most, most};
    bool bounded = false;
    for (int i = 0; i < 4; i++) {
        bounded |= json_object_get(schema, keywords[i]) != NULL;
        apply_bound(b, schema, keywords[i], decimals, i < 2, &bounds[i / 2]);
    }
    if (!bounded)
        return plumb__add_number(b, &(plumb__number_range){.free = true, .decimals = !integer}, b->end);
    if (bounds[0] > bounds[1])
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, "minimum", "bounds that no number fits",
                            integer ? "integers below 10^17" : "numbers below 10^11 with six decimals");
    plumb__number_range range = {
        .least = {bounds[0] > 0 ? bounds[0] : 0, bounds[1] < 0 ? -bounds[1] : 1},
        .most = {bounds[1], -bounds[0]},
        .decimals = decimals,
    };
    return plumb__add_number(b, &range, b->end);
}

/* ---- Strings ---- */

#define DAY "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|" \
            "02-(0[1-9]|1\\d|2[0-8]))|\\d\\d(0[48]|[2468][048]|[13579][26])-02-29)"
#define TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", "^" DAY "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DAY "T" TIME "$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    {"ipv4", "^((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)$"},
    {"hostname", "^" LABEL "(\\." LABEL "){0,5}$"},
    {"email", "^[A-Za-z0-9_+-]{1,30}(\\.[A-Za-z0-9_+-]{1,30})?@" LABEL "(\\." LABEL "){1,3}$"},
    {"uri", "^https?://" LABEL "(\\." LABEL "){0,5}(:[1-9]\\d{0,3})?(/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*"
            "(\\?[A-Za-z0-9._~!$&'()*+,;=:@/-]*)?(#[A-Za-z0-9._~!$&'()*+,;=:@/-]*)?$"},
};

static const char *pattern_of_format(plumb__builder *b, const json_t *format) {
    const char *name = json_string_value(format);
    for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(name, formats[i].name)) return formats[i].pattern;
    plumb__builder_fail(b, name ? PLUMB_ERROR_UNSUPPORTED : PLUMB_ERROR_FORMAT, "format",
                        plumb__format("%.60s", name ? name : "no string").s,
                        "date, time, date-time, uuid, ipv4, hostname, email or uri");
    return NULL;
}

int32_t plumb__compile_string(plumb__builder *b, const json_t *schema, plumb__form form) {
    const json_t *pattern = json_object_get(schema, "pattern"), *format = json_object_get(schema, "format");
    bool raw = form == PLUMB__FORM_RAW_STRINGS, sized = json_object_get(schema, "minLength") ||
                                                        json_object_get(schema, "maxLength");
    plumb__alphabet alphabet = raw ? PLUMB__ALPHABET_RAW : PLUMB__ALPHABET_JSON;
    int32_t least = plumb__count_keyword(b, schema, "minLength", 0);
    int32_t most = plumb__count_keyword(b, schema, "maxLength", PLUMB__NO_LIMIT);
    if (pattern && !json_is_string(pattern)) plumb__builder_fail(b, PLUMB_ERROR_FORMAT, "pattern", NULL, "a string");
    if ((pattern || format) && sized)
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, pattern ? "pattern" : "format",
                            "minLength or maxLength beside it", "a pattern that says how long");
    if (pattern && format)
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, "format", "a pattern beside it", "one of them");
    if (least > most)
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, "minLength", "more characters than maxLength", "fewer");
    if (b->status != PLUMB_OK) return 0;
    if (!raw && !pattern && !format)
        return sized ? plumb__add_string_text(b, least, most, b->end) : plumb__rule_any_string(b);
    if (!pattern && !format)
        return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_TEXT, .alphabet = PLUMB__ALPHABET_RAW,
                                                 .least = least, .most = most, .next = b->end});
    const char *expression = pattern ? json_string_value(pattern) : pattern_of_format(b, format);
    if (!expression) return 0;
    int32_t next = raw ? b->end : plumb__add_text(b, "\"", b->end);
    int32_t node = plumb__add_pattern(b, pattern ? "pattern" : "format", expression, alphabet, next);
    return raw ? node : plumb__add_text(b, "\"", node);
}
