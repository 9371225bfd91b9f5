/* Runs that something happens to: a source that changes, a disk that loses what it was given, another run
 * that ends in between, a file system without hard links or with shared blocks.  A fault is told by file; nothing stands under the
 * final name but what is whole; and the next run ends with the bytes of an undisturbed one. */
#include "convert/convert.h"
#include "convert/faulty_system.h"
#include "equal/specimen_copy.h"
#include "format/checkpoint.h"
#include "format/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t.h"

/* In a folder of its own, which is the current one. */
#define TARGET "./target"
#define PART TARGET ".part"
#define UNPACKED "./unpacked"
#define OTHER "./tiny/model-00002-of-00004.safetensors"
#define TABLES "./tiny/model-00004-of-00004.safetensors" /* read last */
#define TABLES_NOW "./tiny-now/model-00004-of-00004.safetensors"
#define SOURCE "./tiny-now"

static void must(bool condition, const char *what) {
    if (condition) return;
    perror(what);
    exit(1);
}

/* ---- Files ---------------------------------------------------------------------------------------- */

typedef struct content {
    char *bytes;
    size_t size;
} content;

static content load(const char *path) {
    FILE *file = fopen(path, "rb");
    must(file && fseek(file, 0, SEEK_END) == 0, path);
    content c = {.size = (size_t)ftell(file)};
    rewind(file);
    c.bytes = malloc(c.size + 1);
    must(c.bytes && fread(c.bytes, 1, c.size, file) == c.size, path);
    c.bytes[c.size] = '\0';
    must(fclose(file) == 0, path);
    return c;
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static bool holds(const char *path, const content *wanted) {
    if (!exists(path)) return false;
    content c = load(path);
    bool same = c.size == wanted->size && memcmp(c.bytes, wanted->bytes, c.size) == 0;
    free(c.bytes);
    return same;
}

static void clear(void) {
    faulty_system_reset();
    (void)unlink(TARGET);
    (void)unlink(PART);
}

/* ---- Runs ----------------------------------------------------------------------------------------- */

typedef struct kind {
    const char *name, *source;
    plumb_status (*make)(const char *, const char *, const plumb_convert_options *,
                         plumb_convert_result *, plumb_error *);
} kind;

static const kind converting = {"convert", SOURCE, plumb__convert};
static const kind packing = {"pack", UNPACKED, plumb__pack};

/* One job: the calls of a run are always the same. */
static const plumb_convert_options usual = {.jobs = 1, .note_bytes = 2 << 20};

static plumb_status make(const kind *k, const plumb_convert_options *options, plumb_error *err) {
    plumb_convert_result result;
    return k->make(k->source, TARGET, options, &result, err);
}

static void make_well(const kind *k, const plumb_convert_options *options) {
    plumb_error err;
    specimen_must(make(k, options, &err), &err, k->name);
}

static content reference(const kind *k) {
    clear();
    make_well(k, &usual);
    content wanted = load(TARGET);
    clear(); /* calls are counted from here */
    return wanted;
}

/* The next run, with nothing in its way. */
static void check_next(const kind *k, const content *wanted, const char *after) {
    plumb_error err = {0};
    faulty_system_reset();
    T_CHECK(make(k, &usual, &err) == PLUMB_OK, "%s after %s: %s %s", k->name, after, err.file, err.found);
    T_CHECK(holds(TARGET, wanted), "%s after %s: other bytes", k->name, after);
    T_CHECK(!exists(PART), "%s after %s: a part is left", k->name, after);
    clear();
}

/* ---- The source ----------------------------------------------------------------------------------- */

static const char *changing; /* the file, for hooks that get no argument */

static void set_times(const char *path, const struct stat *from) {
    const struct timespec times[2] = {from->st_atim, from->st_mtim};
    must(utimensat(AT_FDCWD, path, times, 0) == 0, path);
}

static void touch(void) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};
    must(utimensat(AT_FDCWD, changing, times, 0) == 0, changing);
}

/* Its time is set back, so that only the size tells. */
static void resize_by(int64_t bytes) {
    struct stat was;
    must(stat(changing, &was) == 0 && truncate(changing, was.st_size + bytes) == 0, changing);
    set_times(changing, &was);
}

static void cut_short(void) { resize_by(-1); }
static void grow(void) { resize_by(1); }
static void cut_to_nothing(void) { must(truncate(changing, 0) == 0, changing); }
static void lose(void) { must(unlink(changing) == 0, changing); }

static void replace(void) {
    struct stat was;
    must(stat(changing, &was) == 0, changing);
    specimen_copy_file(changing, "./beside");
    set_times("./beside", &was);
    must(rename("./beside", changing) == 0, changing);
}

static void make_folder(void) {
    lose();
    must(mkdir(changing, 0777) == 0, changing);
}

static const struct {
    const char *name;
    void (*make)(void);
} changes[] = {{"touched", touch}, {"cut short", cut_short}, {"grown", grow},
               {"cut to nothing", cut_to_nothing}, {"lost", lose}, {"replaced", replace},
               {"a folder", make_folder}};

/* The first fsync is of the header, before the first read of a payload; the third is of the first
 * payloads. */
static void check_changes(const kind *k, const char *file, const char *original, int at) {
    content wanted = reference(k);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        plumb_error err = {0};
        changing = file;
        faulty_fsync = (faulty_call){.disturbed = at, .before = changes[i].make};
        plumb_status status = make(k, &usual, &err);
        T_CHECK(status == PLUMB_ERROR_IO, "%s: %s: status %d", k->name, changes[i].name, status);
        T_CHECK(strcmp(err.file, file) == 0 && err.found[0] && err.expected[0],
                "%s: %s: told of '%s': '%s'", k->name, changes[i].name, err.file, err.found);
        T_CHECK(!exists(TARGET) && exists(PART), "%s: %s: what is left", k->name, changes[i].name);
        must(rmdir(file) == 0 || errno == ENOTDIR || errno == ENOENT, file);
        specimen_copy_file(original, file);
        check_next(k, &wanted, changes[i].name);
    }
    free(wanted.bytes);
}

/* A plumb_log_fn: the config becomes another one while values are looked at. */
static void change_config(void *user, plumb_log_level level, const char *line) {
    (void)level;
    (void)line;
    const char *const *words = user; /* found, instead: of one length */
    content config = load(SOURCE "/config.json");
    char *at = strstr(config.bytes, words[0]);
    if (at) memcpy(at, words[1], strlen(words[1]));
    FILE *file = fopen(SOURCE "/config.json", "wb");
    must(file && fwrite(config.bytes, 1, config.size, file) == config.size && fclose(file) == 0,
         "config.json");
    free(config.bytes);
}

/* It is read twice, for the layout and to be stored. */
static void changing_config(void) {
    static const char *const words[][2] = {
        {"\"num_hidden_layers\": 6", "\"num_hidden_layers\": 5"},
        {"\"routed_scaling_factor\": ", "\"routed_scaling_factor\":9"},
        {"\"rms_norm_eps\"", "\"RMS_norm_eps\""}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        plumb_convert_options options = usual;
        plumb_error err = {0};
        options.dense = PLUMB_DENSE_BF16; /* tells of matrices that stay */
        options.log = change_config;
        options.log_user = (void *)(size_t)words[i];
        T_CHECK(make(&converting, &options, &err) != PLUMB_OK, "%s", words[i][1]);
        T_CHECK(strstr(err.file, SOURCE) || !strcmp(err.file, "the new header"), "%s: %s %s",
                words[i][1], err.file, err.field);
        T_CHECK(!exists(TARGET), "%s: a file has the name", words[i][1]);
        specimen_copy_file("./tiny/config.json", SOURCE "/config.json");
        clear();
    }
}

static void changing_source(void) {
    specimen_copy_file(UNPACKED, "./unpacked-original");
    for (int at = 1; at <= 3; at += 2) {
        check_changes(&converting, TABLES_NOW, TABLES, at);
        check_changes(&packing, UNPACKED, "./unpacked-original", at);
    }
}

/* ---- The disk -------------------------------------------------------------------------------------- */

/* Payloads that the part says it has; the header's place is that of a finished file. */
static int64_t noted(const content *finished) {
    static const char key[] = "plumb.digest.stored";
    const char *found = memmem(finished->bytes, 1 << 20, key, strlen(key));
    must(found != NULL, key);
    uint64_t numbers;
    memcpy(&numbers, found + strlen(key) + 8, sizeof numbers);
    content part = load(PART);
    const char *digest = part.bytes + (found - finished->bytes) + strlen(key) + 16;
    int64_t count = 0;
    for (uint64_t i = 0; i < numbers / 2; i++)
        count += memcmp(digest + 16 * i, (const char[16]){0}, 16) != 0;
    free(part.bytes);
    return count;
}

static const content *finished_file;
static int64_t noted_before;
static void count_noted(void) { noted_before = noted(finished_file); }

/* What a failed fsync leaves in doubt is never noted: the system tells of it once. */
static void lost_writes(void) {
    const kind *const kinds[] = {&converting, &packing};
    for (int k = 0; k < 2; k++) {
        content wanted = reference(kinds[k]);
        finished_file = &wanted;
        make_well(kinds[k], &usual);
        int calls = faulty_fsync.calls;
        T_CHECK(calls > 6, "%d calls", calls);
        for (int at = 1; at <= calls; at++) {
            plumb_error err = {0};
            clear();
            faulty_fsync = (faulty_call){.failing = at, .error = EIO};
            if (at > 2 && at < calls) { /* after the part is there, before it is named */
                faulty_fsync.disturbed = at;
                faulty_fsync.before = count_noted;
            }
            noted_before = 0;
            plumb_status status = make(kinds[k], &usual, &err);
            T_CHECK(status == PLUMB_ERROR_IO && err.file[0] == '.',
                    "call %d: status %d, file '%s'", at, status, err.file);
            if (at == calls) { /* of the folder: it is named and whole */
                T_CHECK(holds(TARGET, &wanted), "call %d: other bytes", at);
                continue;
            }
            T_CHECK(!exists(TARGET), "call %d: a name", at);
            /* The third is the first one of payloads: until it returns, nothing may be noted. */
            if (at == 3) T_CHECK(noted_before == 0, "%lld noted, none synced", (long long)noted_before);
            T_CHECK(noted(&wanted) == noted_before, "call %d: %lld noted, then %lld", at,
                    (long long)noted_before, (long long)noted(&wanted));
            check_next(kinds[k], &wanted, "lost writes");
        }
        free(wanted.bytes);
    }
    clear();
}

/* A run that gives up has noted what it wrote, however little that is. */
static void noted_when_given_up(void) {
    const plumb_convert_options once = {.jobs = 1, .note_bytes = 3 << 20};
    content wanted = reference(&converting);
    plumb_convert_result result;
    plumb_error err = {0};
    specimen_must(plumb__convert(SOURCE, TARGET, &once, &result, &err), &err, "convert");
    clear();
    changing = TABLES_NOW;
    faulty_fsync = (faulty_call){.disturbed = 3, .before = touch};
    T_CHECK(make(&converting, &once, &err) == PLUMB_ERROR_IO, "%s", err.found);
    T_CHECK(noted(&wanted) == result.tensors - 1, "%lld of %lld: all but the table, which comes last",
            (long long)noted(&wanted), (long long)result.tensors);
    check_next(&converting, &wanted, "giving up");
    free(wanted.bytes);
}

/* ---- Packed values --------------------------------------------------------------------------------- */

/* A byte of the source's that is changed after its matrix was packed and what was written has passed its
 * digests, so that only comparing the two can tell. */
typedef struct falsified {
    int64_t at;
    bool done;
} falsified;

static void flip_byte(const char *path, int64_t at) {
    struct stat was;
    uint8_t byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    must(fd >= 0 && fstat(fd, &was) == 0, path);
    must(pread(fd, &byte, 1, (off_t)at) == 1, path);
    byte ^= 1;
    must(pwrite(fd, &byte, 1, (off_t)at) == 1 && close(fd) == 0, path);
    set_times(path, &was);
}

static int falsify(void *user, const plumb_progress *now) {
    falsified *f = user;
    if (f->done || strcmp(now->doing, "checking what is on disk") != 0) return 0;
    flip_byte(UNPACKED, f->at);
    f->done = true;
    return 0;
}

static void check_falsified(const plumb_gguf_tensor *from, const plumb_gguf_tensor *to, int64_t value,
                            int byte) {
    falsified f = {.at = from->offset + 4 * value + byte};
    plumb_convert_options options = usual;
    options.progress = falsify;
    options.progress_user = &f;
    plumb_error err = {0};
    clear();
    plumb_status status = make(&packing, &options, &err);
    T_CHECK(f.done && status == PLUMB_ERROR_VALUE && strcmp(err.file, PART) == 0,
            "%s, value %lld, byte %d: status %d, %s", from->name, (long long)value, byte, status, err.found);
    T_CHECK(err.offset == to->offset + 2 * value, "%s: told %s at %lld, not %lld", from->name, err.field,
            (long long)err.offset, (long long)(to->offset + 2 * value));
    T_CHECK(!exists(TARGET), "%s: a name", from->name);
    if (f.done) flip_byte(UNPACKED, f.at);
}

/* Every matrix that was packed is compared from its first value to its last, in all their bits. */
static void compared_bit_for_bit(void) {
    content wanted = reference(&packing);
    plumb_checkpoint *unpacked, *packed;
    plumb_error err;
    int matrices = 0;
    make_well(&packing, &usual);
    specimen_must(plumb__checkpoint_open(UNPACKED, NULL, NULL, &unpacked, &err), &err, UNPACKED);
    specimen_must(plumb__checkpoint_open(TARGET, NULL, NULL, &packed, &err), &err, TARGET);
    const plumb_gguf *from = plumb__checkpoint_gguf(unpacked), *to = plumb__checkpoint_gguf(packed);
    for (int64_t i = 0; i < from->tensors; i++) {
        const plumb_gguf_tensor *t = &from->tensor[i];
        if (t->type == to->tensor[i].type) continue;
        int64_t last = t->bytes / 4 - 1;
        if (matrices++ % 2 == 0) check_falsified(t, &to->tensor[i], 0, 2);
        check_falsified(t, &to->tensor[i], last, matrices % 4);
    }
    T_CHECK(matrices > 8, "%d packed matrices", matrices);
    plumb__checkpoint_close(packed);
    plumb__checkpoint_close(unpacked);
    check_next(&packing, &wanted, "another source");
    free(wanted.bytes);
}

/* ---- The name -------------------------------------------------------------------------------------- */

static void take_name(void) { specimen_copy_file(OTHER, TARGET); }

static void without_hard_links(void) {
    content wanted = reference(&converting), other = load(OTHER);
    plumb_error err = {0};
    faulty_link = (faulty_call){.failing = 1, .error = EPERM};
    T_CHECK(make(&converting, &usual, &err) == PLUMB_OK, "%s %s", err.file, err.found);
    T_CHECK(holds(TARGET, &wanted) && !exists(PART), "named");
    clear();
    faulty_link = (faulty_call){.failing = 1, .error = EPERM, .disturbed = 1, .before = take_name};
    T_CHECK(make(&converting, &usual, &err) == PLUMB_ERROR_ARGUMENT, "%s", err.found);
    T_CHECK(holds(TARGET, &other), "the other file stays");
    free(wanted.bytes);
    free(other.bytes);
    clear();
}

/* With a word before it is too late: what is done can be finished once the name is free. */
static void name_taken_meanwhile(void) {
    content wanted = reference(&converting), other = load(OTHER);
    plumb_error err = {0};
    faulty_fsync = (faulty_call){.disturbed = 3, .before = take_name};
    T_CHECK(make(&converting, &usual, &err) == PLUMB_ERROR_ARGUMENT, "%s", err.found);
    T_CHECK(strcmp(err.file, TARGET) == 0 && holds(TARGET, &other), "the other file stays");
    must(unlink(TARGET) == 0, TARGET);
    plumb_convert_result result;
    specimen_must(plumb__convert(SOURCE, TARGET, &usual, &result, &err), &err, "next");
    T_CHECK(result.resumed_bytes > 0 && holds(TARGET, &wanted), "it goes on");
    clear();
    faulty_link = (faulty_call){.disturbed = 1, .before = take_name};
    T_CHECK(make(&converting, &usual, &err) == PLUMB_ERROR_ARGUMENT, "%s", err.found);
    T_CHECK(holds(TARGET, &other), "the other file stays");
    must(unlink(TARGET) == 0, TARGET);
    check_next(&converting, &wanted, "a name taken at the last moment");
    free(wanted.bytes);
    free(other.bytes);
}

static void finish_other_run(void) { must(rename(PART, TARGET) == 0, PART); }

static void finish_and_begin_another(void) {
    finish_other_run();
    FILE *file = fopen(PART, "wb");
    must(file && fclose(file) == 0, PART);
}

/* The part that was opened gets its name before it is locked: nobody may write into it any more. */
static void other_run_ends(void) {
    content wanted = reference(&converting);
    const plumb_convert_options replacing = {.jobs = 1, .force = true};
    for (int i = 0; i < 4; i++) {
        bool force = i % 2 == 1;
        FILE *file = fopen(PART, "wb");
        must(file && fwrite(wanted.bytes, 1, wanted.size, file) == wanted.size, PART);
        must(fclose(file) == 0, PART);
        struct stat was, now;
        must(stat(PART, &was) == 0, PART);
        plumb_error err = {0};
        faulty_flock = (faulty_call){.disturbed = 1,
                                     .before = i < 2 ? finish_other_run : finish_and_begin_another};
        plumb_status status = make(&converting, force ? &replacing : &usual, &err);
        T_CHECK(status == (force ? PLUMB_OK : PLUMB_ERROR_ARGUMENT), "status %d: %s", status, err.found);
        T_CHECK(faulty_flock.calls == 2, "%d locks", faulty_flock.calls);
        T_CHECK(holds(TARGET, &wanted) && stat(TARGET, &now) == 0, "whole");
        T_CHECK((now.st_ino == was.st_ino && now.st_mtim.tv_nsec == was.st_mtim.tv_nsec) == !force,
                "replaced only where that was asked for");
        clear();
    }
    free(wanted.bytes);
}

/* In memory where that is possible: a hundred runs sync their files. */
static void enter_folder(char path[512]) {
    snprintf(path, 512, "%s/plumb-disturbed-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : BUILD_DIR);
    must(mkdtemp(path) && chdir(path) == 0, path);
}

/* ---- Room ------------------------------------------------------------------------------------------- */

/* Payloads that the packed file shares with its source need none; the rest does. */
static void shared_blocks(void) {
    content wanted = reference(&packing), unpacked = load(UNPACKED);
    int64_t packed = (int64_t)(unpacked.size - wanted.size); /* half the bytes go, as many are new */
    const struct {
        bool shares;
        int64_t available;
        bool enough;
    } disks[] = {{false, packed + (1 << 20), false}, {true, packed + (1 << 20), true},
                 {true, packed - (64 << 10), false}};
    for (size_t i = 0; i < sizeof disks / sizeof disks[0]; i++) {
        plumb_error err = {0};
        faulty_disk_now = (faulty_disk){.shares = disks[i].shares, .is_small = true,
                                        .available = disks[i].available};
        plumb_status status = make(&packing, &usual, &err);
        T_CHECK(status == (disks[i].enough ? PLUMB_OK : PLUMB_ERROR_IO), "disk %zu: %s, %s", i, err.found,
                err.expected);
        T_CHECK(holds(TARGET, &wanted) == disks[i].enough && !exists(PART), "disk %zu: what is there", i);
        if (!disks[i].enough) T_CHECK(strcmp(err.field, "free disk space") == 0, "%s", err.field);
        T_CHECK(disks[i].enough ? faulty_disk_now.shared > 1 : faulty_disk_now.shared == disks[i].shares,
                "disk %zu: %d ranges, of which one is the trial", i, faulty_disk_now.shared);
        clear();
    }
    free(wanted.bytes);
    free(unpacked.bytes);
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *walk) {
    (void)about;
    (void)type;
    (void)walk;
    return remove(path);
}

int main(int argc, char **argv) {
    static const t_test tests[] = {{"changing_source", changing_source},
                                   {"changing_config", changing_config}, {"lost_writes", lost_writes},
                                   {"noted_when_given_up", noted_when_given_up},
                                   {"compared_bit_for_bit", compared_bit_for_bit},
                                   {"without_hard_links", without_hard_links},
                                   {"name_taken_meanwhile", name_taken_meanwhile},
                                   {"other_run_ends", other_run_ends},
                                   {"shared_blocks", shared_blocks}};
    specimen tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    char folder[512];
    enter_folder(folder);
    specimen original = specimen_copy(&tiny, ".", "tiny");
    specimen now = specimen_copy(&tiny, ".", "tiny-now");
    plumb_convert_result result;
    plumb_error err;
    specimen_must(plumb__convert(SOURCE, UNPACKED, &usual, &result, &err), &err, "convert");
    specimen_close(&now);
    specimen_close(&original);
    specimen_close(&tiny);
    int failed = t_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
    must(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0, folder);
    return failed;
}
