/* Replacing what is not text; see clean_text.h. */
#include "cli/clean_text.h"

#include <string.h>
#include <utf8proc.h>

static bool is_control(utf8proc_int32_t character) {
    return character < 0x20 || (character >= 0x7F && character < 0xA0);
}

void cli_clean_text(const char *text, const char *mark, bool keep_controls, char *out,
                    size_t size) {
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text;
    size_t left = strlen(text), used = 0;
    while (left > 0) {
        utf8proc_int32_t character;
        utf8proc_ssize_t valid = utf8proc_iterate(at, (utf8proc_ssize_t)left, &character);
        size_t taken = valid > 0 ? (size_t)valid : 1;
        bool kept = valid > 0 && (keep_controls || !is_control(character));
        const void *from = kept ? (const void *)at : mark;
        size_t length = kept ? taken : strlen(mark);
        if (length >= size - used) break;
        memcpy(out + used, from, length);
        used += length;
        at += taken;
        left -= taken;
    }
    out[used] = '\0';
}
