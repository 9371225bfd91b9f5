#include "base/clean_text.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

/* Controls, line separators and marks that turn the direction of text. */
static bool is_harmful(uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

void plumb__clean_text(const char *text, const char *mark, bool keep_controls, char *out,
                       size_t size) {
    size_t at = 0, n;
    for (const char *s = text, *end = text + strlen(text); s < end; s += n) {
        bool kept = plumb__utf8_judge(s, (size_t)(end - s), &n) == PLUMB_UTF8_CHARACTER;
        if (!kept) n = 1;
        else if (!keep_controls) kept = !is_harmful(plumb__utf8_read(s, &n));
        size_t width = kept ? n : strlen(mark);
        if (at + width > size - 1) break;
        memcpy(out + at, kept ? s : mark, width);
        at += width;
    }
    out[at] = 0;
}
