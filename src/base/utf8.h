/* UTF-8 as the Unicode standard defines it: no overlong forms, no surrogates, nothing above
 * U+10FFFF.  Broken input is cut into "maximal subparts" (Unicode chapter 3.9), so that one
 * U+FFFD stands for one of them, as in the reference decoders. */
#ifndef PLUMB_BASE_UTF8_H
#define PLUMB_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define PLUMB_UTF8_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

typedef enum plumb__utf8_kind {
    PLUMB_UTF8_CHARACTER,  /* a whole character */
    PLUMB_UTF8_INCOMPLETE, /* the input ends inside a character that may still become whole */
    PLUMB_UTF8_BROKEN      /* a maximal subpart of an ill-formed sequence */
} plumb__utf8_kind;

/* Judges what `bytes` begin with (size >= 1); *length is the number of bytes it spans. */
plumb__utf8_kind plumb__utf8_judge(const char *bytes, size_t size, size_t *length);

/* Offset of the first byte that is not part of a whole character, or `size` if all are. */
size_t plumb__utf8_valid_prefix(const char *bytes, size_t size);

/* Writes code_point (any scalar value) and returns the number of bytes, 1..4. */
size_t plumb__utf8_write(char *to, uint32_t code_point);

/* Reads one character of text that is known to be valid. */
static inline uint32_t plumb__utf8_read(const char *bytes, size_t *length) {
    const unsigned char *b = (const unsigned char *)bytes;
    if (b[0] < 0x80) {
        *length = 1;
        return b[0];
    }
    if (b[0] < 0xE0) {
        *length = 2;
        return (b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu);
    }
    if (b[0] < 0xF0) {
        *length = 3;
        return (b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu);
    }
    *length = 4;
    return (b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 | (b[3] & 0x3Fu);
}

#endif
