/* A snapshot at every position, each restored in a new process with other threads, another chunk and
 * another way to stream, which evaluates the next token: all rows together have the one hash.  At
 * positions where something begins or ends, everything that follows is compared too. */
#include "snapshot/files.h"
#include "snapshot/positions.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t.h"

extern char **environ;

static void save_all(const specimen *s, int64_t first, int64_t last) {
    plumb_model *model = specimen_model(s, 2, NULL);
    plumb_session *session = specimen_session(model, 0);
    const float *logits;
    plumb_error err;
    for (int64_t length = first; length <= last; length++) {
        int64_t n = length - plumb_session_length(session);
        if (n > 0)
            specimen_must(plumb_session_eval(session, s->tokens + length - n, n, &logits, &err),
                          &err, "eval");
        snapshot_save(session, position_snapshot(s->name, length), NULL);
    }
    plumb_session_destroy(session);
    plumb_model_close(model);
}

static void make_rows(const specimen *s) {
    int fd = open(position_rows(s->name), O_RDWR | O_CREAT | O_TRUNC, 0666);
    file_must(fd >= 0 && ftruncate(fd, (off_t)(s->count * s->vocab * 4)) == 0, "rows");
    (void)close(fd);
}

static void restore_all(const specimen *s, int64_t first, int64_t last) {
    char numbers[3][24];
    (void)snprintf(numbers[1], sizeof numbers[1], "%" PRId64, first);
    (void)snprintf(numbers[2], sizeof numbers[2], "%" PRId64, last);
    for (int i = 0; i < position_setting_count; i++) {
        (void)snprintf(numbers[0], sizeof numbers[0], "%d", i);
        char *arguments[] = {(char[]){RESTORED}, (char *)(uintptr_t)s->name, numbers[0], numbers[1],
                             numbers[2], NULL};
        pid_t child;
        int status = 0;
        file_must(posix_spawn(&child, RESTORED, NULL, NULL, arguments, environ) == 0, RESTORED);
        file_must(waitpid(child, &status, 0) == child, "waitpid");
        T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %d",
                position_settings[i].name, status);
    }
}

static void remove_all(const specimen *s, int64_t first, int64_t last) {
    for (int64_t length = first; length <= last; length++)
        (void)unlink(position_snapshot(s->name, length));
    (void)unlink(position_rows(s->name));
}

static void every_position(const char *name, int64_t first, int64_t last, uint64_t wanted) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", name);
    if (last > s.count) last = s.count;
    save_all(&s, first, last);
    make_rows(&s);
    restore_all(&s, first, last);
    file_bytes rows = file_load(position_rows(name));
    uint64_t hash = specimen_hash(&s, (const float *)(const void *)rows.bytes, s.count);
    T_CHECK(hash == wanted, "%016" PRIx64 " for %016" PRIx64, hash, wanted);
    printf("%s: XXH3-64 %016" PRIx64 "\n", name, hash);
    free(rows.bytes);
    remove_all(&s, first, last);
    specimen_close(&s);
}

/* The hashes that equality_test prints. */
static void tiny(void) { every_position("tiny", 0, 96, 0x5419ca454ea84d9c); }
static void deep40(void) { every_position("deep40", 0, 520, 0xe58fb5be7fb644b6); }

T_MAIN({"tiny", tiny}, {"deep40", deep40})
