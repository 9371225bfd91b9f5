/* Measuring a drive and memory: that what is read is what the files hold, and that faults are named.
 * No time is checked. */
#include "plan/machine.h"

#include "stream/expert_layout.h"
#include "synth/synth.h"
#include "t.h"

#include <unistd.h>

static const char folder[] = BUILD_DIR "/machine_test";

static plumb_checkpoint *made(void) {
    plumb_error err = {0};
    plumb_checkpoint *checkpoint = NULL;
    plumb_synth_options options = {
        .variant = PLUMB_SYNTH_TINY, .folder = folder, .seed = 1, .force = true, .threads = 1};
    plumb_status status = plumb__synth_write(&options, &err);
    if (status == PLUMB_OK) status = plumb__checkpoint_open(folder, NULL, NULL, &checkpoint, &err);
    T_CHECK(status == PLUMB_OK, "%s: %s", err.file, err.found);
    return checkpoint;
}

static void disk(void) {
    plumb_checkpoint *checkpoint = made();
    if (!checkpoint) return;
    plumb_disk_rate rate = {.in_flight = 0};
    plumb_error err = {0};
    T_CHECK(plumb__measure_disk(checkpoint, 0, &rate, &err) == PLUMB_OK && rate.experts == 1,
            "no time: %" PRId64 " experts", rate.experts);
    T_CHECK(plumb__measure_disk(checkpoint, 0.02, &rate, &err) == PLUMB_OK, "%s: %s", err.file, err.found);
    /* An expert of this model is six payloads of 96 x 96; pages around them are read, too. */
    int64_t payloads = 3 * (96 * 96 / 2 + 96 * 96 / 32);
    T_CHECK(rate.experts > 0 && rate.in_flight > 1 && rate.reader[0], "%" PRId64, rate.experts);
    T_CHECK(rate.bytes >= rate.experts * payloads &&
                rate.bytes <= rate.experts * (payloads + PLUMB_EXPERT_PAYLOADS * 2 * PLUMB_READ_ALIGNMENT),
            "%" PRId64 " bytes of %" PRId64 " experts", rate.bytes, rate.experts);
    T_CHECK(rate.seconds > 0 && rate.bytes_per_second > 0 && !rate.holes, "%f", rate.seconds);
    plumb__checkpoint_close(checkpoint);
}

static void damaged(void) {
    plumb_checkpoint *checkpoint = made();
    if (!checkpoint) return;
    const char *shard = plumb__checkpoint_shard_path(checkpoint, 0);
    T_CHECK(truncate(shard, 100) == 0, "%s", shard);
    plumb_disk_rate rate = {.experts = -1};
    plumb_error err = {0};
    T_CHECK(plumb__measure_disk(checkpoint, 0.02, &rate, &err) == PLUMB_ERROR_IO && rate.experts == -1,
            "%s: %s", err.file, err.found);
    T_CHECK(!strcmp(err.file, shard) && err.found[0] && err.expected[0], "%s: %s", err.file, err.found);
    plumb__checkpoint_close(checkpoint);
}

static void memory(void) {
    for (int threads = 1; threads <= 3; threads++) {
        double rate = 0;
        plumb_error err = {0};
        T_CHECK(plumb__measure_memory(threads, 0, &rate, &err) == PLUMB_OK && rate > 0, "%s", err.field);
    }
}

T_MAIN({"disk", disk}, {"damaged", damaged}, {"memory", memory})
