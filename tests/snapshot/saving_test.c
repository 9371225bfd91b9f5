/* Where a snapshot may be written and what is left when that fails: nothing but a whole file ever stands
 * under the name, nobody's file is lost, and what cannot be a snapshot is refused in words. */
#include "convert/faulty_system.h"
#include "snapshot/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "t.h"

static specimen tiny;
static plumb_model *model;
static plumb_session *session; /* what is saved */
static file_bytes wanted;      /* its file */
static char path[600], part[640];

static void begin(void) {
    if (!session) {
        tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
        model = specimen_model(&tiny, 1, NULL);
        session = specimen_session(model, 0);
        float *logits = specimen_logits(&tiny);
        specimen_advance(&tiny, session, 23, logits);
        free(logits);
        snprintf(path, sizeof path, "%s", snapshot_path("saving"));
        snprintf(part, sizeof part, "%s.part", path);
        snapshot_save(session, path, NULL);
        wanted = file_load(path);
    }
    faulty_system_reset();
    (void)unlink(path);
    (void)unlink(part);
    (void)rmdir(path);
    (void)rmdir(part);
}

static bool holds(const char *file, const void *bytes, size_t size) {
    if (!file_exists(file)) return false;
    file_bytes there = file_load(file);
    bool same = there.size == size && memcmp(there.bytes, bytes, size) == 0;
    free(there.bytes);
    return same;
}

static bool holds_snapshot(const char *file) { return holds(file, wanted.bytes, wanted.size); }

static void check_fails(const char *how, const char *to, plumb_status status, const char *file,
                        const char *found, const char *expected) {
    plumb_error err = {0};
    plumb_status got = plumb_session_save(session, to, NULL, &err);
    T_CHECK(got == status && strstr(err.found, found) && strstr(err.expected, expected) &&
                !strcmp(err.file, file),
            "%s: status %d, %s, %s: found %s, expected %s", how, got, err.file, err.field, err.found,
            err.expected);
}

static const char old[] = "what was there before";
static void put_old(void) { file_store(path, old, sizeof old); }
static bool holds_old(void) { return holds(path, old, sizeof old); }

/* ---- Names -------------------------------------------------------------------------------------------- */

static void new_and_replaced(void) {
    begin();
    snapshot_save(session, path, NULL);
    T_CHECK(holds_snapshot(path) && !file_exists(part), "new");
    struct stat there;
    T_CHECK(stat(path, &there) == 0 && (there.st_mode & 0777) == 0600, "its owner's alone");
    put_old();
    snapshot_save(session, path, NULL);
    T_CHECK(holds_snapshot(path) && !file_exists(part), "replaced");
}

static void no_names(void) {
    begin();
    char slash[640], below[640], below_part[660];
    snprintf(slash, sizeof slash, "%s/", path);
    snprintf(below, sizeof below, "%s/below", path);
    snprintf(below_part, sizeof below_part, "%s.part", below);
    check_fails("empty", "", PLUMB_ERROR_ARGUMENT, "", "an empty name", "a name for a new file");
    check_fails("slash", slash, PLUMB_ERROR_ARGUMENT, slash, "a folder", "a name for a new file");
    check_fails("part", part, PLUMB_ERROR_ARGUMENT, part, "the name of an unfinished file",
                "a name for a new file");
    check_fails("no folder", below, PLUMB_ERROR_IO, below_part, strerror(ENOENT),
                "a file that can be written");
    T_CHECK(!file_exists(path) && !file_exists(part), "nothing is made");
}

static void make_folder(const char *at) { file_must(mkdir(at, 0777) == 0, at); }
static void make_fifo(const char *at) { file_must(mkfifo(at, 0666) == 0, at); }
/* The zero device under another name; false where that is not allowed. */
static bool make_device(const char *at) { return mknod(at, S_IFCHR | 0666, makedev(1, 5)) == 0; }

static void no_plain_files(void) {
    plumb_error err;
    plumb_snapshot *snapshot = NULL;
    for (int kind = 0; kind < 3; kind++) {
        begin();
        if (kind == 0) make_folder(path);
        else if (kind == 1) make_fifo(path);
        else if (!make_device(path)) {
            printf("skipped: no right to make a device\n");
            continue;
        }
        struct stat before, after;
        file_must(lstat(path, &before) == 0, path);
        const char *found = kind == 0 ? "a folder" : "something that is no plain file";
        check_fails("saving", path, PLUMB_ERROR_ARGUMENT, path, found, "a file to replace");
        T_CHECK(lstat(path, &after) == 0 && before.st_ino == after.st_ino &&
                    before.st_mode == after.st_mode && !file_exists(part),
                "kind %d stays", kind);
        T_CHECK(plumb_snapshot_open(path, &snapshot, &err) == PLUMB_ERROR_IO &&
                    strstr(err.found, kind == 0 ? "a folder" : "not a regular file"),
                "opening kind %d: %s", kind, err.found);
    }
    begin();
    T_CHECK(plumb_snapshot_open(path, &snapshot, &err) == PLUMB_ERROR_IO &&
                strstr(err.found, strerror(ENOENT)), "nothing there: %s", err.found);
}

static void links(void) {
    begin();
    char target[640];
    snprintf(target, sizeof target, "%s.target", path);
    file_must(symlink(target, path) == 0, path);
    check_fails("a link to nothing", path, PLUMB_ERROR_IO, path, strerror(ENOENT),
                "a link that leads to a file");
    file_store(target, old, sizeof old);
    snapshot_save(session, path, NULL);
    struct stat there;
    T_CHECK(lstat(path, &there) == 0 && S_ISLNK(there.st_mode), "the link stays");
    T_CHECK(holds_snapshot(target) && holds_snapshot(path), "its file is replaced");
    (void)unlink(target);
    make_folder(target);
    check_fails("a link to a folder", path, PLUMB_ERROR_ARGUMENT, path, "a folder", "a file to replace");
    (void)rmdir(target);
}

/* ---- Parts -------------------------------------------------------------------------------------------- */

static void stale_parts(void) {
    static const char zeros[64];
    begin();
    const struct {
        const char *how;
        const void *bytes;
        size_t size;
    } parts[] = {{"begun", "", 0},
                 {"unfinished", "PLUMBprt and more than the new file will have", 46},
                 {"finished", wanted.bytes, wanted.size},
                 {"lost by the machine", zeros, sizeof zeros}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        begin();
        put_old();
        file_store(part, parts[i].bytes, parts[i].size);
        snapshot_save(session, path, NULL);
        T_CHECK(holds_snapshot(path) && !file_exists(part), "%s", parts[i].how);
    }
}

/* Not one of ours: it stays, and so does the file under the name. */
static void foreign_parts(void) {
    static const char letter[] = "Dear Ada, ...";
    begin();
    put_old();
    file_store(part, letter, sizeof letter);
    check_fails("a letter", path, PLUMB_ERROR_ARGUMENT, part, "a file that is no unfinished one",
                "no file of that name");
    T_CHECK(holds(part, letter, sizeof letter) && holds_old(), "the letter stays");
    file_store(part, "PLUMB", 5);
    check_fails("five bytes", path, PLUMB_ERROR_ARGUMENT, part, "a file that is no unfinished one", "");
    (void)unlink(part);
    make_folder(part);
    check_fails("a folder", path, PLUMB_ERROR_ARGUMENT, part, "a folder", "a file to replace");
    (void)rmdir(part);
    make_fifo(part);
    check_fails("a FIFO", path, PLUMB_ERROR_ARGUMENT, part, "something that is no plain file", "");
    (void)unlink(part);
    file_must(symlink(path, part) == 0, part);
    check_fails("a link", path, PLUMB_ERROR_ARGUMENT, part, "something that is no plain file", "");
    T_CHECK(holds_old(), "the old file stays");
}

static void second_writer(void) {
    begin();
    put_old();
    int fd = open(part, O_RDWR | O_CREAT, 0666);
    file_must(fd >= 0 && flock(fd, LOCK_EX) == 0 && write(fd, "PLUMBprt", 8) == 8, part);
    check_fails("locked", path, PLUMB_ERROR_IO, part, "a file that is being written",
                "one writer at a time");
    T_CHECK(holds_old() && holds(part, "PLUMBprt", 8), "the first one's part stays");
    (void)close(fd);
    snapshot_save(session, path, NULL);
    T_CHECK(holds_snapshot(path) && !file_exists(part), "unlocked");
}

/* The first writer ends just before the second locks what it opened: that is the finished file now. */
static void rename_part(void) { file_must(rename(part, path) == 0, part); }

static void first_writer_ends(void) {
    begin();
    file_store(part, wanted.bytes, wanted.size);
    faulty_flock = (faulty_call){.disturbed = 1, .before = rename_part};
    char other[640];
    snprintf(other, sizeof other, "%s.linked", path);
    (void)unlink(other);
    file_must(link(part, other) == 0, other);
    snapshot_save(session, path, NULL);
    T_CHECK(faulty_flock.calls == 2, "%d locks", faulty_flock.calls);
    T_CHECK(holds_snapshot(path) && holds_snapshot(other) && !file_exists(part),
            "the finished file is not written over");
    (void)unlink(other);
}

static void without_locks(void) {
    begin();
    faulty_flock = (faulty_call){.failing = 1, .error = ENOLCK};
    snapshot_save(session, path, NULL);
    T_CHECK(holds_snapshot(path), "a file system without locks");
}

/* ---- Disks -------------------------------------------------------------------------------------------- */

static bool old_at_fsync;
static void look_at_fsync(void) { old_at_fsync = holds_old() && holds_snapshot(part); }

static void lost_writes(void) {
    begin();
    put_old();
    faulty_fsync = (faulty_call){.failing = 1, .error = EIO, .disturbed = 1, .before = look_at_fsync};
    check_fails("fsync", path, PLUMB_ERROR_IO, part, strerror(EIO), "a file that is kept");
    T_CHECK(old_at_fsync, "written before it is synced, named after");
    T_CHECK(holds_old() && !file_exists(part), "as before");
    faulty_fsync = (faulty_call){.failing = 2, .error = EIO};
    check_fails("fsync of the folder", path, PLUMB_ERROR_IO, path, strerror(EIO), "a folder");
    T_CHECK(holds_snapshot(path) && !file_exists(part), "it is there, and that may be lost is said");
}

static void take_name(void) { make_folder(path); }

static void name_taken_meanwhile(void) {
    begin();
    faulty_fsync = (faulty_call){.disturbed = 1, .before = take_name};
    check_fails("a folder came", path, PLUMB_ERROR_ARGUMENT, path, "a folder", "a file to replace");
    T_CHECK(!file_exists(part), "no part is left");
}

static void limited_size(void) {
    begin();
    put_old();
    struct rlimit before, limit;
    file_must(getrlimit(RLIMIT_FSIZE, &before) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR, "limit");
    limit = (struct rlimit){.rlim_cur = wanted.size - 1, .rlim_max = before.rlim_max};
    file_must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
    check_fails("a limit", path, PLUMB_ERROR_IO, part, strerror(EFBIG), "room for 1 more bytes");
    file_must(setrlimit(RLIMIT_FSIZE, &before) == 0, "limit");
    T_CHECK(holds_old() && !file_exists(part), "as before");
}

static void full_disk(void) {
    begin();
    char disk[600], there[640], unfinished[660], size[40];
    snprintf(disk, sizeof disk, "%s", snapshot_path("disk"));
    snprintf(there, sizeof there, "%s/session", disk);
    snprintf(unfinished, sizeof unfinished, "%s.part", there);
    snprintf(size, sizeof size, "size=%d", 8192);
    (void)mkdir(disk, 0777);
    if (mount("plumb-test", disk, "tmpfs", 0, size) != 0) {
        T_CHECK(errno != 0, "mount");
        printf("skipped: no right to mount a disk\n");
        (void)rmdir(disk);
        return;
    }
    file_store(there, old, sizeof old);
    check_fails("no space", there, PLUMB_ERROR_IO, unfinished, strerror(ENOSPC), "more bytes");
    T_CHECK(holds(there, old, sizeof old) && !file_exists(unfinished), "as before");
    file_must(umount(disk) == 0 && rmdir(disk) == 0, disk);
}

/* As somebody else, where this is the superuser, who may do anything. */
static void no_right(void) {
    begin();
    char folder[600], there[640], unfinished[660];
    snprintf(folder, sizeof folder, "%s", snapshot_path("closed"));
    snprintf(there, sizeof there, "%s/session", folder);
    snprintf(unfinished, sizeof unfinished, "%s.part", there);
    (void)mkdir(folder, 0755);
    snapshot_save(session, there, NULL);
    file_must(chmod(there, 0) == 0 && chmod(folder, 0555) == 0, folder);
    bool superuser = geteuid() == 0;
    if (superuser) file_must(seteuid(65534) == 0, "seteuid");
    check_fails("a closed folder", there, PLUMB_ERROR_IO, unfinished, strerror(EACCES),
                "a file that can be written");
    plumb_error err;
    plumb_snapshot *snapshot = NULL;
    T_CHECK(plumb_snapshot_open(there, &snapshot, &err) == PLUMB_ERROR_IO &&
                strstr(err.found, strerror(EACCES)), "reading: %s", err.found);
    if (superuser) file_must(seteuid(0) == 0, "seteuid");
    file_must(chmod(folder, 0755) == 0 && chmod(there, 0600) == 0, folder);
    T_CHECK(holds_snapshot(there), "as before");
    (void)unlink(there);
    (void)rmdir(folder);
}

/* Must be the last. */
static void end(void) {
    begin();
    T_CHECK(plumb_session_length(session) == 23, "saving changes no session");
    plumb_session_destroy(session);
    plumb_model_close(model);
    specimen_close(&tiny);
    free(wanted.bytes);
    session = NULL;
}

T_MAIN({"new_and_replaced", new_and_replaced}, {"no_names", no_names},
       {"no_plain_files", no_plain_files}, {"links", links}, {"stale_parts", stale_parts},
       {"foreign_parts", foreign_parts}, {"second_writer", second_writer},
       {"first_writer_ends", first_writer_ends}, {"without_locks", without_locks},
       {"lost_writes", lost_writes}, {"name_taken_meanwhile", name_taken_meanwhile},
       {"limited_size", limited_size}, {"full_disk", full_disk}, {"no_right", no_right}, {"end", end})
