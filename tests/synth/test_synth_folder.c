/* What is on the disk before, after and instead of a checkpoint. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "synth/output_folder.h"
#include "synth/synth.h"
#include "t.h"

#define ROOT BUILD_DIR "/synth-folder"

static plumb_synth_options tiny_in(const char *folder) {
    return (plumb_synth_options){
        .variant = PLUMB_SYNTH_TINY, .folder = folder, .seed = 1, .threads = 1};
}

static int files_in(const char *folder) {
    int count = 0;
    DIR *directory = opendir(folder);
    if (!directory) return -1;
    for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void remove_folder(const char *folder) {
    char path[1024];
    DIR *directory = opendir(folder);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    closedir(directory);
    rmdir(folder);
}

static void write_file(const char *path) {
    FILE *file = fopen(path, "w");
    T_CHECK(file && fputs("kept", file) >= 0 && fclose(file) == 0, "%s", path);
}

/* A killed run leaves its temporary files; the next one starts as if they were not there. */
static void leftovers(void) {
    const char *folder = ROOT "/killed";
    plumb_error err;
    plumb_synth_options options = tiny_in(folder);
    remove_folder(folder);
    mkdir(ROOT, 0777);
    mkdir(folder, 0777);
    write_file(ROOT "/killed/model-00009-of-00048.safetensors.plumb-partial");
    T_CHECK(plumb__synth_write(&options, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(files_in(folder) == 8, "%d files", files_in(folder));
    remove_folder(folder);
}

static void full_folder(void) {
    const char *folder = ROOT "/full/deeper";
    plumb_error err;
    plumb_synth_options options = tiny_in(folder);
    remove_folder(folder);
    T_CHECK(plumb__synth_write(&options, &err) == PLUMB_OK, "parents are made: %s", err.found);
    T_CHECK(files_in(folder) == 8, "%d files", files_in(folder));
    write_file(ROOT "/full/deeper/notes");
    write_file(ROOT "/full/deeper/config.json.plumb-partial");
    T_CHECK(plumb__synth_write(&options, &err) == PLUMB_ERROR_ARGUMENT, "files in the way");
    T_CHECK(!strcmp(err.file, folder) && strstr(err.found, "in it"), "%s", err.found);
    T_CHECK(files_in(folder) == 10, "nothing touched");
    options.force = true;
    T_CHECK(plumb__synth_write(&options, &err) == PLUMB_OK, "forced: %s", err.found);
    T_CHECK(files_in(folder) == 9 && access(ROOT "/full/deeper/notes", F_OK) == 0, "notes kept");
    options.folder = ROOT "/full/deeper/notes";
    T_CHECK(plumb__synth_write(&options, &err) == PLUMB_ERROR_ARGUMENT, "a file");
    options.folder = ROOT "/full/deeper/notes/below";
    T_CHECK(plumb__synth_write(&options, &err) == PLUMB_ERROR_IO, "below a file");
    options.folder = "";
    T_CHECK(plumb__synth_write(&options, &err) == PLUMB_ERROR_ARGUMENT, "no name");
    remove_folder(folder);
}

typedef struct watch {
    int64_t cancel_at, last, total;
    int files; /* in the folder when cancelled */
    const char *folder;
    bool backward;
} watch;

static int on_progress(void *user, int64_t done, int64_t total) {
    watch *w = user;
    w->backward |= done < w->last;
    w->last = done;
    w->total = total;
    if (done < w->cancel_at) return 0;
    w->files = files_in(w->folder);
    return 1;
}

static void cancelled(void) {
    const char *folder = ROOT "/cancelled";
    static const int64_t places[] = {1, 100000, 2000000};
    for (int existed = 0; existed < 2; existed++) {
        for (int i = 0; i < 3; i++) {
            remove_folder(folder);
            if (existed) mkdir(folder, 0777);
            watch w = {.cancel_at = places[i], .folder = folder};
            plumb_synth_options options = tiny_in(folder);
            options.progress = on_progress;
            options.progress_user = &w;
            plumb_error err;
            plumb_status status = plumb__synth_write(&options, &err);
            T_CHECK(status == PLUMB_ERROR_CANCELLED && err.status == status, "%d", (int)status);
            T_CHECK(w.files > 0, "%d files when cancelled", w.files);
            T_CHECK(files_in(folder) == (existed ? 0 : -1), "%d left", files_in(folder));
        }
    }
    remove_folder(folder);
}

static void progress(void) {
    const char *folder = ROOT "/progress";
    remove_folder(folder);
    watch w = {.cancel_at = INT64_MAX, .folder = folder};
    plumb_synth_options options = tiny_in(folder);
    options.progress = on_progress;
    options.progress_user = &w;
    plumb_error err;
    T_CHECK(plumb__synth_write(&options, &err) == PLUMB_OK, "%s", err.found);
    /* The index of this checkpoint says total_size 2283952. */
    T_CHECK(w.last == 2283952 && w.total == 2283952 && !w.backward, "%" PRId64, w.last);
    remove_folder(folder);
}

/* A write that fails: the limit on file sizes is hit in the first shard. */
static void failing_write(void) {
    const char *folder = ROOT "/failing";
    remove_folder(folder);
    struct rlimit old, low;
    T_CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0, "limit");
    low = old;
    low.rlim_cur = 50000;
    signal(SIGXFSZ, SIG_IGN);
    T_CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0, "limit");
    plumb_synth_options options = tiny_in(folder);
    plumb_error err;
    plumb_status status = plumb__synth_write(&options, &err);
    T_CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0, "limit");
    T_CHECK(status == PLUMB_ERROR_IO && strstr(err.file, "model-00001-of-00004"), "%s", err.file);
    T_CHECK(files_in(folder) == -1, "nothing left");
}

static void room(void) {
    plumb__output output;
    plumb_error err;
    T_CHECK(plumb__output_open(&output, ROOT "/room", true, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(plumb__output_check_room(&output, 1, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(plumb__output_check_room(&output, INT64_MAX, &err) == PLUMB_ERROR_IO, "too much");
    T_CHECK(!strcmp(err.field, "free disk space"), "%s", err.field);
    plumb__output_close(&output);
    /* The release itself, on the disks where it has no room. */
    struct statvfs disk;
    T_CHECK(statvfs(BUILD_DIR, &disk) == 0, "statvfs");
    if ((double)disk.f_bavail * (double)disk.f_frsize < 500e9) {
        plumb_synth_options options = {.variant = PLUMB_SYNTH_RELEASE, .folder = ROOT "/room"};
        T_CHECK(plumb__synth_write(&options, &err) == PLUMB_ERROR_IO, "too much");
        T_CHECK(!strcmp(err.field, "free disk space"), "%s", err.field);
    }
    T_CHECK(access(ROOT "/room", F_OK) != 0, "the folder was made for nothing");
}

/* ---- Two runs -------------------------------------------------------------------------------- */

static void put(plumb__output *output, const char *name, const char *text) {
    plumb_error err = {0};
    plumb_status status = plumb__output_create(output, name, &err);
    if (status == PLUMB_OK)
        status = plumb__output_write(output, 0, text, (int64_t)strlen(text), &err);
    if (status == PLUMB_OK) status = plumb__output_finish(output, &err);
    T_CHECK(status == PLUMB_OK, "%s: %s: %s", name, err.field, err.found);
}

static bool holds(const char *path, const char *text) {
    char found[64] = "";
    FILE *file = fopen(path, "r");
    if (!file) return false;
    size_t size = fread(found, 1, sizeof found - 1, file);
    fclose(file);
    return size == strlen(text) && !strcmp(found, text);
}

/* A second output on the same folder is refused, and harms neither what the first is writing nor
 * what was there. */
static void two_at_once(void) {
    static const char folder[] = ROOT "/shared";
    for (int force = 0; force < 2; force++) {
        plumb__output first, second;
        plumb_error err = {0};
        remove_folder(folder);
        if (force) {
            mkdir(folder, 0777);
            write_file(ROOT "/shared/config.json");
        }
        T_CHECK(plumb__output_open(&first, folder, force, &err) == PLUMB_OK, "%s", err.found);
        put(&first, "shard", "of the first");
        T_CHECK(plumb__output_open(&second, folder, force, &err) == PLUMB_ERROR_IO, "refused");
        T_CHECK(!strcmp(err.file, folder) && strstr(err.found, "another run"), "%s", err.found);
        plumb__output_close(&second);
        plumb_synth_options options = tiny_in(folder);
        options.force = force;
        T_CHECK(plumb__synth_write(&options, &err) == PLUMB_ERROR_IO, "a whole run");
        T_CHECK(files_in(folder) == 1 + force, "%d files", files_in(folder));
        if (force) T_CHECK(holds(ROOT "/shared/config.json", "kept"), "the old checkpoint");
        put(&first, "config.json", "new");
        T_CHECK(plumb__output_commit(&first, &err) == PLUMB_OK, "%s", err.found);
        plumb__output_close(&first);
        T_CHECK(holds(ROOT "/shared/shard", "of the first"), "shard");
        T_CHECK(holds(ROOT "/shared/config.json", "new"), "config");
        T_CHECK(files_in(folder) == 2, "%d files", files_in(folder));
        /* The lock went with the first output. */
        T_CHECK(plumb__output_open(&second, folder, true, &err) == PLUMB_OK, "%s", err.found);
        plumb__output_close(&second);
        T_CHECK(files_in(folder) == 2, "%d files", files_in(folder));
    }
    remove_folder(folder);
}

/* As on a file system without locks, where another run may come after the folder was cleared. */
static void temporary_of_another(void) {
    static const char folder[] = ROOT "/foreign", foreign[] = ROOT "/foreign/shard.plumb-partial";
    plumb__output output;
    plumb_error err = {0};
    remove_folder(folder);
    T_CHECK(plumb__output_open(&output, folder, false, &err) == PLUMB_OK, "%s", err.found);
    write_file(foreign);
    T_CHECK(plumb__output_create(&output, "shard", &err) == PLUMB_ERROR_IO, "it exists");
    T_CHECK(!strcmp(err.file, foreign), "%s", err.file);
    plumb__output_close(&output);
    T_CHECK(holds(foreign, "kept"), "neither emptied nor removed");
    remove_folder(folder);
}

/* A commit that cannot succeed leaves the old files alone. */
static void commit_refused(void) {
    static const char folder[] = ROOT "/refused", in_the_way[] = ROOT "/refused/shard";
    for (int lost = 0; lost < 2; lost++) {
        plumb__output output;
        plumb_error err = {0};
        remove_folder(folder);
        mkdir(folder, 0777);
        write_file(ROOT "/refused/config.json");
        T_CHECK(plumb__output_open(&output, folder, true, &err) == PLUMB_OK, "%s", err.found);
        put(&output, "shard", "new");
        put(&output, "config.json", "new");
        int made = lost ? unlink(ROOT "/refused/shard.plumb-partial") : mkdir(in_the_way, 0777);
        T_CHECK(made == 0, "the obstacle");
        T_CHECK(plumb__output_commit(&output, &err) == PLUMB_ERROR_IO, "%d", lost);
        T_CHECK(strstr(err.file, in_the_way), "%s", err.file);
        plumb__output_close(&output);
        T_CHECK(holds(ROOT "/refused/config.json", "kept"), "the old checkpoint");
        if (!lost) rmdir(in_the_way);
        T_CHECK(files_in(folder) == 1, "%d files", files_in(folder));
    }
    remove_folder(folder);
}

static void options_that_do_not_fit(void) {
    static const struct {
        plumb_synth_variant variant;
        int64_t layers;
        plumb_synth_payload payload;
        const char *field;
    } cases[] = {
        {PLUMB_SYNTH_TINY, 2, PLUMB_SYNTH_FULL, "layers"},
        {PLUMB_SYNTH_DEEP40, 0, PLUMB_SYNTH_SPARSE, "sparse"},
        {PLUMB_SYNTH_TINY, 0, PLUMB_SYNTH_SPARSE_TABLES, "sparse"},
        {PLUMB_SYNTH_RELEASE, 41, PLUMB_SYNTH_SPARSE, "layers"},
        {PLUMB_SYNTH_RELEASE, -1, PLUMB_SYNTH_SPARSE, "layers"},
        {PLUMB_SYNTH_VARIANTS, 0, PLUMB_SYNTH_FULL, "variant"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_synth_options options = {.variant = cases[i].variant,
                                       .folder = ROOT "/never",
                                       .layers = cases[i].layers,
                                       .payload = cases[i].payload};
        plumb_error err;
        T_CHECK(plumb__synth_write(&options, &err) == PLUMB_ERROR_ARGUMENT, "case %zu", i);
        T_CHECK(!strcmp(err.field, cases[i].field), "case %zu: %s", i, err.field);
        T_CHECK(access(ROOT "/never", F_OK) != 0, "case %zu", i);
    }
    T_CHECK(plumb__synth_variant_find("release") == PLUMB_SYNTH_RELEASE, "by name");
    T_CHECK(plumb__synth_variant_find("Release") == -1, "names are exact");
}

T_MAIN({"full_folder", full_folder}, {"leftovers", leftovers}, {"cancelled", cancelled},
       {"progress", progress}, {"failing_write", failing_write}, {"room", room},
       {"two_at_once", two_at_once}, {"temporary_of_another", temporary_of_another},
       {"commit_refused", commit_refused},
       {"options_that_do_not_fit", options_that_do_not_fit})
