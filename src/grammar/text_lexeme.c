/* Characters of strings, by the byte: UTF-8 as base/utf8.h defines it, and JSON's escapes, of which those for
 * NUL and for lone surrogates, that many readers refuse, may not be written. */
#include "grammar/lexeme.h"

enum {
    BETWEEN = PLUMB__TEXT_BETWEEN,
    LAST,      /* of UTF-8: one more byte of 80..BF, */
    LAST_TWO,
    LAST_THREE,
    AFTER_E0, AFTER_ED, AFTER_F0, AFTER_F4, /* whose next byte has a narrower range */
    ESCAPE,    /* after a backslash */
    FOUR_HEX, THREE_HEX, TWO_HEX, ONE_HEX,
    THREE_HEX_NOT_0, TWO_HEX_NOT_0, ONE_HEX_NOT_0, /* so that the whole is not 0000 */
    AFTER_D,   /* d8..df are surrogates */
    HIGH_TWO_HEX, HIGH_ONE_HEX,                    /* of a high one, */
    LOW_ESCAPE, LOW_U, LOW_D, LOW_DIGIT,           /* after which a low one must come */
    REFUSED = PLUMB__TEXT_REFUSED
};

static bool is_hex(uint8_t byte) {
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f');
}

static uint32_t first_byte(plumb__alphabet alphabet, uint8_t byte) {
    if (byte < 0x20)
        return alphabet == PLUMB__ALPHABET_RAW && (byte == '\t' || byte == '\n' || byte == '\r') ? BETWEEN : REFUSED;
    if (byte < 0x80) {
        if (alphabet == PLUMB__ALPHABET_RAW) return BETWEEN;
        if (byte == '\\') return alphabet == PLUMB__ALPHABET_JSON ? ESCAPE : REFUSED;
        return byte == '"' ? REFUSED : BETWEEN;
    }
    if (byte < 0xC2 || byte > 0xF4) return REFUSED;
    if (byte < 0xE0) return LAST;
    if (byte < 0xF0) return byte == 0xE0 ? AFTER_E0 : byte == 0xED ? AFTER_ED : LAST_TWO;
    return byte == 0xF0 ? AFTER_F0 : byte == 0xF4 ? AFTER_F4 : LAST_THREE;
}

static uint32_t within(uint8_t byte, uint8_t low, uint8_t high, uint32_t then) {
    return byte >= low && byte <= high ? then : REFUSED;
}

static uint32_t escaped(uint8_t byte) {
    switch (byte) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': return BETWEEN;
    case 'u': return FOUR_HEX;
    default: return REFUSED;
    }
}

static uint32_t hex_step(uint32_t state, uint8_t byte) {
    if (!is_hex(byte)) return REFUSED;
    uint8_t lower = byte | 0x20;
    switch (state) {
    case FOUR_HEX: return byte == '0' ? THREE_HEX_NOT_0 : lower == 'd' ? AFTER_D : THREE_HEX;
    case THREE_HEX: return TWO_HEX;
    case TWO_HEX: return ONE_HEX;
    case ONE_HEX: return BETWEEN;
    case THREE_HEX_NOT_0: return byte == '0' ? TWO_HEX_NOT_0 : TWO_HEX;
    case TWO_HEX_NOT_0: return byte == '0' ? ONE_HEX_NOT_0 : ONE_HEX;
    case ONE_HEX_NOT_0: return byte == '0' ? REFUSED : BETWEEN;
    case AFTER_D: return byte <= '7' ? TWO_HEX : lower <= 'b' ? HIGH_TWO_HEX : REFUSED;
    case HIGH_TWO_HEX: return HIGH_ONE_HEX;
    case HIGH_ONE_HEX: return LOW_ESCAPE;
    case LOW_DIGIT: return lower >= 'c' ? TWO_HEX : REFUSED;
    default: return REFUSED;
    }
}

uint32_t plumb__text_step(plumb__alphabet alphabet, uint32_t state, uint8_t byte) {
    switch (state) {
    case BETWEEN: return first_byte(alphabet, byte);
    case LAST: return within(byte, 0x80, 0xBF, BETWEEN);
    case LAST_TWO: return within(byte, 0x80, 0xBF, LAST);
    case LAST_THREE: return within(byte, 0x80, 0xBF, LAST_TWO);
    case AFTER_E0: return within(byte, 0xA0, 0xBF, LAST);
    case AFTER_ED: return within(byte, 0x80, 0x9F, LAST);
    case AFTER_F0: return within(byte, 0x90, 0xBF, LAST_TWO);
    case AFTER_F4: return within(byte, 0x80, 0x8F, LAST_TWO);
    case ESCAPE: return escaped(byte);
    case LOW_ESCAPE: return within(byte, '\\', '\\', LOW_U);
    case LOW_U: return within(byte, 'u', 'u', LOW_D);
    case LOW_D: return within(byte | 0x20, 'd', 'd', LOW_DIGIT);
    default: return hex_step(state, byte);
    }
}
