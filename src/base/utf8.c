/* The well-formed byte sequences of table 3-7 of the Unicode standard, as code: the lead byte gives
 * the length and the range of the second byte, all further bytes are 80..BF. */
#include "base/utf8.h"

#include <string.h>

plumb__utf8_kind plumb__utf8_judge(const char *bytes, size_t size, size_t *length) {
    const unsigned char *b = (const unsigned char *)bytes;
    unsigned char lead = b[0], low = 0x80, high = 0xBF;
    size_t needed;
    *length = 1;
    if (lead < 0x80) return PLUMB_UTF8_CHARACTER;
    if (lead < 0xC2 || lead > 0xF4) return PLUMB_UTF8_BROKEN;
    if (lead < 0xE0) {
        needed = 2;
    } else if (lead < 0xF0) {
        needed = 3;
        if (lead == 0xE0) low = 0xA0;  /* below: overlong */
        if (lead == 0xED) high = 0x9F; /* above: surrogates */
    } else {
        needed = 4;
        if (lead == 0xF0) low = 0x90;  /* below: overlong */
        if (lead == 0xF4) high = 0x8F; /* above: beyond U+10FFFF */
    }
    for (size_t i = 1; i < needed; i++) {
        *length = i;
        if (i == size) return PLUMB_UTF8_INCOMPLETE;
        if (b[i] < low || b[i] > high) return PLUMB_UTF8_BROKEN;
        low = 0x80;
        high = 0xBF;
    }
    *length = needed;
    return PLUMB_UTF8_CHARACTER;
}

size_t plumb__utf8_valid_prefix(const char *bytes, size_t size) {
    size_t at = 0;
    while (at < size) {
        uint64_t eight;
        while (size - at >= sizeof eight) {
            memcpy(&eight, bytes + at, sizeof eight);
            if (eight & 0x8080808080808080u) break;
            at += sizeof eight;
        }
        if (at == size) break;
        size_t length;
        if (plumb__utf8_judge(bytes + at, size - at, &length) != PLUMB_UTF8_CHARACTER) break;
        at += length;
    }
    return at;
}

size_t plumb__utf8_write(char *to, uint32_t code_point) {
    if (code_point < 0x80) {
        to[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        to[0] = (char)(0xC0 | code_point >> 6);
        to[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        to[0] = (char)(0xE0 | code_point >> 12);
        to[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
        to[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    to[0] = (char)(0xF0 | code_point >> 18);
    to[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
    to[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
    to[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}
