/* Every flavour of every small model gives back the released bytes, and audits clean: by digests and
 * against the source, on any number of threads.  The files stay in BUILD_DIR/round-trip, where
 * rebuild_released.py takes them apart a second time, by the format's description alone. */
#include <stdlib.h>

#include "converted.h"
#include "t.h"

#define PLACE "round-trip"

static void check_clean(const converted *c, int jobs, const char *source, bool sample) {
    plumb_error err;
    char line[1024] = "";
    plumb_status status = converted_audit(c->path, source, jobs, sample, &err);
    if (status != PLUMB_OK) plumb_error_line(&err, line, sizeof line);
    T_CHECK(status == PLUMB_OK, "%d jobs%s: %s", jobs, source ? ", source" : "", line);
}

/* Small files by digests and against the source on each number of threads, large ones once each way. */
static void round_trip(const char *model, bool thorough) {
    enum { COUNTS = 3 };
    static const int jobs[COUNTS] = {1, 2, 7};
    for (flavour f = 0; f < FLAVOURS; f++) {
        converted c = converted_make(PLACE, model, f);
        CONVERTED_CHECK_RELEASED(c.path, c.source);
        check_clean(&c, 2, NULL, true);
        for (int i = 0; i < COUNTS; i++) {
            if (thorough || i == (int)f % COUNTS) check_clean(&c, jobs[i], NULL, false);
            if (thorough || i == (int)(f + 1) % COUNTS) check_clean(&c, jobs[i], c.source, false);
        }
    }
}

static void tiny(void) { round_trip("tiny", true); }
static void deep40(void) { round_trip("deep40", false); }
static void demo(void) { round_trip("demo", false); }

/* ---- One file, however it is made ------------------------------------------------------------ */

static bool same_files(const char *a, const char *b) {
    FILE *one = fopen(a, "rb"), *other = fopen(b, "rb");
    static char left[1 << 16], right[1 << 16];
    bool same = one && other;
    for (size_t n = 1; n > 0 && same;) {
        n = fread(left, 1, sizeof left, one);
        same = fread(right, 1, sizeof right, other) == n && memcmp(left, right, n) == 0;
    }
    if (one) fclose(one);
    if (other) fclose(other);
    return same;
}

static void same_bytes(void) {
    converted f32 = converted_make(PLACE "-same", "tiny", FLAVOUR_F32);
    converted bf16 = converted_make(PLACE "-same", "tiny", FLAVOUR_BF16);
    converted packed = converted_make(PLACE "-same", "tiny", FLAVOUR_PACKED);
    T_CHECK(same_files(bf16.path, packed.path), "packing an F32 file gives the BF16 file");
    T_CHECK(!same_files(f32.path, packed.path), "packing changes something");
    for (int jobs = 1; jobs <= 5; jobs += 4) {
        const plumb_convert_options options = {.dense = PLUMB_DENSE_F32, .force = true, .jobs = jobs};
        plumb_convert_result result;
        plumb_error err;
        const char *again = BUILD_DIR "/" PLACE "-same/again.gguf";
        converted_must(plumb__convert(f32.source, again, &options, &result, &err), &err, again);
        T_CHECK(same_files(f32.path, again), "%d jobs", jobs);
    }
}

T_MAIN({"tiny", tiny}, {"deep40", deep40}, {"demo", demo}, {"same_bytes", same_bytes})
