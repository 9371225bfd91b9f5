/* Numbers of JSON, by the byte.  A range is kept by asking, before each digit, whether anything that begins
 * with the digits so far lies in it; so what was begun can always be finished.  `value` has the digits without
 * the point.  Without bounds, digits are counted instead: a number is not a place to stay for ever. */
#include "grammar/number_lexeme.h"

enum { START, MINUS, ZERO, INTEGER, POINT, FRACTION, EXPONENT, EXPONENT_SIGN, EXPONENT_DIGITS };
enum { FREE_INTEGER_DIGITS = 18, FREE_FRACTION_DIGITS = 17, FREE_EXPONENT_DIGITS = 2 };
/* The phase: which of those, whether negative, digits after the point. */
enum { PART = 15, NEGATIVE = 16, DECIMAL = 32 };

static bool counted_digit(plumb__reading *r, uint32_t part, int64_t most) {
    if ((r->phase == part ? r->value : 0) >= most) return false;
    r->value = r->phase == part ? r->value + 1 : 1;
    r->phase = part;
    return true;
}

static bool free_step(const plumb__number_range *range, plumb__reading *r, uint8_t byte) {
    bool digit = byte >= '0' && byte <= '9';
    uint32_t part = r->phase, then;
    if (digit && (part == FRACTION || part == POINT)) return counted_digit(r, FRACTION, FREE_FRACTION_DIGITS);
    if (digit && part >= EXPONENT) return counted_digit(r, EXPONENT_DIGITS, FREE_EXPONENT_DIGITS);
    if (digit && (part == INTEGER || (part <= MINUS && byte != '0')))
        return counted_digit(r, INTEGER, FREE_INTEGER_DIGITS);
    if (part <= MINUS && byte == '0') then = ZERO;
    else if (part == START && byte == '-') then = MINUS;
    else if (range->decimals == 0) return false;
    else if ((part == ZERO || part == INTEGER) && byte == '.') then = POINT;
    else if ((part == ZERO || part == INTEGER || part == FRACTION) && (byte | 0x20) == 'e') then = EXPONENT;
    else if (part == EXPONENT && (byte == '-' || byte == '+')) then = EXPONENT_SIGN;
    else return false;
    r->value = 0;
    r->phase = then;
    return true;
}

static int64_t power_of_ten(int32_t exponent) {
    int64_t power = 1;
    while (exponent-- > 0) power *= 10;
    return power;
}

/* Whether a number lies in the range whose first digits are `value`, the last of `decimals` after the point;
 * `growing`: digits before the point may follow. */
static bool reaches(const plumb__number_range *range, bool negative, int64_t value, int32_t decimals, bool growing) {
    int64_t unit = power_of_ten(range->decimals - decimals), low = value * unit;
    int64_t least = range->least[negative], most = range->most[negative];
    while (low <= most) {
        if (low + (unit - 1) >= least) return true;
        if (!growing || low == 0) return false;
        low *= 10;
        unit *= 10;
    }
    return false;
}

static bool bounded_digit(const plumb__number_range *range, plumb__reading *r, uint8_t byte) {
    uint32_t part = r->phase & PART, then = INTEGER;
    bool negative = r->phase & NEGATIVE;
    int32_t decimals = (int32_t)(r->phase / DECIMAL);
    if (part == ZERO) return false;
    if (part == POINT || part == FRACTION) {
        if (decimals++ == range->decimals) return false;
        then = FRACTION;
    } else if (part <= MINUS && byte == '0') {
        then = ZERO;
    }
    r->value = r->value * 10 + (byte - '0');
    r->phase = then | (negative ? NEGATIVE : 0) | (uint32_t)decimals * DECIMAL;
    return reaches(range, negative, r->value, decimals, then == INTEGER);
}

bool plumb__number_step(const plumb__number_range *range, plumb__reading *r, uint8_t byte) {
    if (range->free) return free_step(range, r, byte);
    if (byte >= '0' && byte <= '9') return bounded_digit(range, r, byte);
    bool negative = r->phase & NEGATIVE;
    uint32_t part = r->phase & PART;
    if (byte == '-' && part == START) {
        r->phase = MINUS | NEGATIVE;
        return range->least[1] <= range->most[1];
    }
    if (byte != '.' || (part != ZERO && part != INTEGER) || range->decimals == 0) return false;
    r->phase = POINT | (negative ? NEGATIVE : 0);
    return reaches(range, negative, r->value, 0, false);
}

bool plumb__number_may_end(const plumb__number_range *range, const plumb__reading *r) {
    uint32_t part = r->phase & PART;
    if (part != ZERO && part != INTEGER && part != FRACTION && part != EXPONENT_DIGITS) return false;
    if (range->free) return true;
    bool negative = r->phase & NEGATIVE;
    int64_t value = r->value * power_of_ten(range->decimals - (int32_t)(r->phase / DECIMAL));
    return value >= range->least[negative] && value <= range->most[negative];
}
