/* Pages straight from the system: zeroed, aligned, whole to the last byte, and all given back. */
#include "base/pages.h"

#include <stdlib.h>

#include "t.h"

enum { MIB2 = 2 << 20, EXPERT = 18849780 /* a slot of the released model; no multiple of a page */ };

static const size_t sizes[] = {1, 4096, 16385, MIB2 - 1, MIB2, MIB2 + 1, 3 * MIB2 - 4097, EXPERT};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void zeroed_aligned_and_whole(void) {
    for (int i = 0; i < SIZES; i++)
        for (int touched = 0; touched < 2; touched++) {
            size_t bytes = sizes[i], wrong = 0;
            unsigned char *memory = plumb__pages_map((int64_t)bytes);
            T_CHECK(memory, "%zu bytes", bytes);
            if (!memory) continue;
            uintptr_t alignment = bytes >= MIB2 ? MIB2 : 4096;
            T_CHECK((uintptr_t)memory % alignment == 0, "%zu bytes at %p", bytes, (void *)memory);
            if (touched) plumb__pages_touch(memory, (int64_t)bytes);
            for (size_t b = 0; b < bytes; b++) wrong += memory[b] != 0;
            memset(memory, 0xA5, bytes);
            for (size_t b = 0; b < bytes; b++) wrong += memory[b] != 0xA5;
            T_CHECK(wrong == 0, "%zu of %zu bytes", wrong, bytes);
            plumb__pages_unmap(memory, (int64_t)bytes);
        }
}

static void no_such_size(void) {
    T_CHECK(!plumb__pages_map(0), "nothing");
    T_CHECK(!plumb__pages_map(-1), "less than nothing");
    T_CHECK(!plumb__pages_map(INT64_MAX), "more than there are addresses");
    plumb__pages_unmap(NULL, 4096);
}

/* Mappings of this process, or -1 where the system does not list them; a sanitizer makes some of its own. */
static int mappings(void) {
    static char buffer[1 << 16]; /* a stream that allocated would be seen here */
    FILE *file = fopen("/proc/self/maps", "r");
    if (!file || T_SANITIZED) {
        if (file) (void)fclose(file);
        return -1;
    }
    (void)setvbuf(file, buffer, _IOFBF, sizeof buffer);
    int lines = 0;
    for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
    (void)fclose(file);
    return lines;
}

/* Held side by side too: what one gives back is not its neighbour's. */
static void all_is_given_back(void) {
    enum { PAIRS = 300, AT_ONCE = 4 };
    (void)mappings(); /* what the first look allocates stays */
    int before = mappings();
    for (int i = 0; i < SIZES; i++) {
        unsigned char *held[AT_ONCE];
        for (int round = 0; round < PAIRS / AT_ONCE; round++) {
            for (int j = 0; j < AT_ONCE; j++) {
                held[j] = plumb__pages_map((int64_t)sizes[i]);
                if (!held[j]) exit(1);
                held[j][sizes[i] - 1] = (unsigned char)(j + 1);
            }
            for (int j = 0; j < AT_ONCE; j++) {
                T_CHECK(held[j][sizes[i] - 1] == j + 1, "%zu bytes", sizes[i]);
                plumb__pages_unmap(held[j], (int64_t)sizes[i]);
            }
        }
    }
    if (before < 0) printf("skipped: mappings cannot be counted here\n");
    else T_CHECK(mappings() == before, "%d mappings, %d before", mappings(), before);
}

T_MAIN({"zeroed_aligned_and_whole", zeroed_aligned_and_whole}, {"no_such_size", no_such_size},
       {"all_is_given_back", all_is_given_back})
