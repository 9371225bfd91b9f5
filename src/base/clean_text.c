#include "base/clean_text.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the UTF-8 sequence at `s`, and its code point; 0 when it is none. */
static size_t decode(const unsigned char *s, uint32_t *code) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    if (n == 0) return 0;
    *code = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) return 0;
        *code = *code << 6 | (s[i] & 0x3Fu);
    }
    return *code < least[n] || *code > 0x10FFFF || *code >> 11 == 27 ? 0 : n;
}

/* Controls, line separators and marks that turn the direction of text. */
static bool is_harmful(uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

void plumb__clean_text(const char *text, const char *mark, bool keep_controls, char *out,
                       size_t size) {
    size_t at = 0;
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        uint32_t code = 0;
        size_t n = decode(s, &code);
        bool kept = n > 0 && (keep_controls || !is_harmful(code));
        size_t width = kept ? n : strlen(mark);
        if (at + width > size - 1) break;
        memcpy(out + at, kept ? (const char *)s : mark, width);
        at += width;
        s += n > 0 ? n : 1;
    }
    out[at] = 0;
}
