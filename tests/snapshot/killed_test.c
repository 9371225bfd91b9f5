/* kill -9 while a session is saved, at a hundred times of a fixed random sequence: under the name stands
 * the old snapshot or the new one, whole; what else is left is no snapshot under any name that is looked
 * at; and the next save succeeds.
 *
 * Nearly all of a save is waiting for the disk.  So that kills also come while a file is written, half
 * of the processes do not wait: what the system has taken survives a process. */
#include "convert/converted.h"
#include "snapshot/files.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "t.h"

enum { KILLS = 100, NOTE_BYTES = 2 << 20 };

static bool in_a_hurry;

int fsync(int fd); /* in place of the C library's */
int fsync(int fd) { return in_a_hurry ? 0 : (int)syscall(SYS_fsync, fd); }

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_for(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    (void)nanosleep(&t, NULL);
}

/* Saves over and over, until it is killed. */
static void save_for_ever(plumb_session *const session[2], const plumb_snapshot_extra extra[2],
                          const char *path) {
    plumb_error err;
    for (int i = 0;; i = 1 - i)
        if (plumb_session_save(session[i], path, &extra[i], &err) != PLUMB_OK) _exit(1);
}

/* Which of the two files it is, -1: neither. */
static int which(const char *path, const file_bytes whole[2]) {
    file_bytes there = file_load(path);
    int found = -1;
    for (int i = 0; i < 2; i++)
        if (there.size == whole[i].size && !memcmp(there.bytes, whole[i].bytes, there.size)) found = i;
    free(there.bytes);
    return found;
}

/* A part opens only where the kill came between its last byte and its name, and is whole then. */
static bool part_is_harmless(const char *part, const file_bytes whole[2], int *unfinished) {
    plumb_snapshot *snapshot = NULL;
    plumb_error err;
    if (!file_exists(part)) return true;
    bool opens = plumb_snapshot_open(part, &snapshot, &err) == PLUMB_OK;
    plumb_snapshot_close(snapshot);
    *unfinished += !opens;
    return !opens || which(part, whole) >= 0;
}

static void killed_while_saving(void) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *session[2] = {specimen_session(model, 0), specimen_session(model, 0)};
    float *logits = specimen_logits(&s);
    char *note = malloc(NOTE_BYTES);
    file_must(note != NULL, "memory");
    memset(note, 'x', NOTE_BYTES);
    const plumb_snapshot_extra extra[2] = {{.note = note, .note_bytes = NOTE_BYTES},
                                           {.note = note, .note_bytes = NOTE_BYTES / 2}};
    const char *path = snapshot_path("killed");
    char part[640];
    snprintf(part, sizeof part, "%s.part", path);
    file_bytes whole[2];
    double seconds[2] = {0, 0}; /* of both files: waiting for the disk, in a hurry */
    for (int i = 0; i < 2; i++) {
        specimen_advance(&s, session[i], 30 + 20 * i, logits);
        for (in_a_hurry = true;; in_a_hurry = false) {
            double begun = now();
            snapshot_save(session[i], path, &extra[i]);
            seconds[in_a_hurry] += now() - begun;
            if (!in_a_hurry) break;
        }
        whole[i] = file_load(path);
    }
    uint64_t random = 20261130;
    int unfinished = 0, left = 0;
    for (int kill_number = 0; kill_number < KILLS; kill_number++) {
        in_a_hurry = kill_number % 2;
        pid_t child = fork();
        file_must(child >= 0, "fork");
        if (child == 0) save_for_ever(session, extra, path);
        wait_for((in_a_hurry ? 5 : 1) * seconds[in_a_hurry] *
                 (double)(converted_random(&random) >> 11) * 0x1p-53);
        in_a_hurry = false;
        int status = 0;
        file_must(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child, "kill");
        T_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %d", status);
        T_CHECK(which(path, whole) >= 0, "kill %d: the file is whole", kill_number);
        left += file_exists(part);
        T_CHECK(part_is_harmless(part, whole, &unfinished), "kill %d: the part", kill_number);
        if (kill_number % 4 != 0) continue; /* the others leave their part to the next writer */
        snapshot_save(session[kill_number / 4 % 2], path, &extra[kill_number / 4 % 2]);
        T_CHECK(which(path, whole) == kill_number / 4 % 2 && !file_exists(part),
                "kill %d: the next save", kill_number);
    }
    printf("%d kills left a part, %d of them an unfinished one\n", left, unfinished);
    T_CHECK(unfinished > 0, "%d kills in the middle of a file", unfinished);
    snapshot_restore(session[0], path);
    T_CHECK(plumb_session_length(session[0]) > 0, "it opens");
    (void)unlink(path);
    (void)unlink(part);
    for (int i = 0; i < 2; i++) {
        free(whole[i].bytes);
        plumb_session_destroy(session[i]);
    }
    free(note);
    free(logits);
    plumb_model_close(model);
    specimen_close(&s);
}

T_MAIN({"killed_while_saving", killed_while_saving})
