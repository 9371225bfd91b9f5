/* restored_positions SPECIMEN SETTING FIRST LAST: a new process for every_position_test.
 *
 * Restores each snapshot of the lengths that belong to the setting, evaluates the next token, or all
 * that follow, and writes the rows to their places.  A row that is there already must be the same. */
#include "engine/engine.h"
#include "snapshot/files.h"
#include "snapshot/positions.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static plumb_model *open_model(const specimen *s, const position_setting *setting) {
    plumb_reading reading = {.reader = setting->reader};
    const plumb_model_options options = {
        .streaming = setting->streaming, .cache_experts = setting->slots,
        .layer_buffers = setting->layer_buffers, .threads = setting->threads,
        .cpu_level = setting->level};
    plumb_model *model = NULL;
    plumb_error err;
    specimen_must(plumb__model_open_reading(s->folder, &options, &reading, &model, &err), &err,
                  setting->name);
    return model;
}

/* Whoever comes first writes a row; all others have to agree.  The row of the snapshot's own length is
 * always the work of its own process. */
static bool keep_rows(int fd, const specimen *s, const float *logits, int64_t begin, int64_t end,
                      const char *setting) {
    size_t bytes = (size_t)s->vocab * sizeof *logits;
    float *there = malloc(bytes), *zeros = calloc(1, bytes);
    file_must(there && zeros, "memory");
    bool same = true;
    for (int64_t p = begin; p < end && same; p++) {
        const float *row = logits + p * s->vocab;
        off_t at = (off_t)((size_t)p * bytes);
        file_must(pread(fd, there, bytes, at) == (ssize_t)bytes, "rows");
        bool written = memcmp(there, zeros, bytes) != 0;
        same = !written || memcmp(there, row, bytes) == 0;
        if (!same)
            fprintf(stderr, "%s: restored at %lld, position %lld differs\n", setting,
                    (long long)begin, (long long)p);
        if (!written) file_must(pwrite(fd, row, bytes, at) == (ssize_t)bytes, "rows");
    }
    free(there);
    free(zeros);
    return same;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    const int64_t first = atoll(argv[3]), last = atoll(argv[4]);
    const int number = atoi(argv[2]);
    const position_setting *setting = &position_settings[number];
    specimen s = specimen_open(BUILD_DIR "/checkpoints", argv[1]);
    plumb_model *model = open_model(&s, setting);
    plumb_session *session = specimen_session(model, setting->chunk);
    float *logits = specimen_logits(&s);
    int fd = open(position_rows(argv[1]), O_RDWR);
    file_must(fd >= 0, "rows");
    bool good = true;
    for (int64_t length = first; length <= last; length++) {
        if (position_setting_of(length) != number) continue;
        snapshot_restore(session, position_snapshot(argv[1], length));
        if (plumb_session_length(session) != length) return 1;
        if (length == s.count) continue;
        int64_t end = position_is_boundary(length) ? s.count : length + 1;
        specimen_advance(&s, session, end, logits);
        good &= keep_rows(fd, &s, logits, length, end, setting->name);
    }
    (void)close(fd);
    free(logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
    specimen_close(&s);
    return good ? 0 : 1;
}
