#include "convert/new_file.h"

#include "base/error.h"
#include "convert/audit.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The source -------------------------------------------------------------------------------- */

static bool is_shard(const plumb_checkpoint *source, const struct stat *there) {
    for (int64_t i = 0; i < plumb__checkpoint_shards(source); i++) {
        const struct stat *shard = &plumb__checkpoint_shard(source, i)->opened;
        if (shard->st_ino == there->st_ino && shard->st_dev == there->st_dev) return true;
    }
    return false;
}

/* One of the files there, or what a link there leads to. */
static bool is_in_folder(const plumb_checkpoint *source, const struct stat *there) {
    DIR *folder = plumb__checkpoint_gguf(source) ? NULL : opendir(plumb__checkpoint_path(source));
    if (!folder) return false;
    struct stat found;
    bool inside = false;
    for (const struct dirent *entry; !inside && (entry = readdir(folder));)
        inside = fstatat(dirfd(folder), entry->d_name, &found, 0) == 0 &&
                 found.st_ino == there->st_ino && found.st_dev == there->st_dev;
    (void)closedir(folder);
    return inside;
}

/* Opens a folder or the one above it; -1: there is none. */
static int open_folder(int at, const char *path) {
    return openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Would `target` lie somewhere below the source's folder? */
static bool would_be_in_folder(const plumb_checkpoint *source, const char *target) {
    struct stat top, here = {0}, below;
    if (plumb__checkpoint_gguf(source) || stat(plumb__checkpoint_path(source), &top) != 0) return false;
    char *copy = strdup(target);
    int folder = copy ? open_folder(AT_FDCWD, dirname(copy)) : -1;
    free(copy);
    bool inside = false;
    for (bool first = true; folder >= 0 && !inside; first = false) {
        below = here;
        bool root = fstat(folder, &here) != 0 ||
                    (!first && here.st_ino == below.st_ino && here.st_dev == below.st_dev);
        inside = here.st_ino == top.st_ino && here.st_dev == top.st_dev;
        int above = root || inside ? -1 : open_folder(folder, "..");
        (void)close(folder);
        folder = above;
    }
    return inside;
}

static plumb_status fail_target(const char *target, plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, target, NULL, -1, "a file of the source",
                       "a name for a new file");
}

/* No name of a file: told as that, whatever else it may be. */
static bool names_a_folder(const char *target) {
    struct stat there;
    return target[0] == 0 || target[strlen(target) - 1] == '/' ||
           (lstat(target, &there) == 0 && S_ISDIR(there.st_mode));
}

plumb_status plumb__new_file_check_target(const plumb_checkpoint *source, const char *target,
                                          bool force, plumb_error *err) {
    struct stat there;
    if (names_a_folder(target)) return plumb__part_file_check(target, force, err);
    if (would_be_in_folder(source, target))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, target, NULL, -1,
                           "a place in the source's folder", "a place outside of it");
    if (stat(target, &there) == 0 && (is_shard(source, &there) || is_in_folder(source, &there)))
        return fail_target(target, err);
    char *part = plumb__part_file_path(target);
    if (!part) return plumb__fail_memory(err, "path", strlen(target));
    /* A converted source may have the part's name. */
    plumb_status status = stat(part, &there) == 0 && is_shard(source, &there)
                              ? fail_target(part, err)
                              : plumb__part_file_check(target, force, err);
    free(part);
    return status;
}

XXH128_hash_t plumb__new_file_origin(const plumb_checkpoint *source) {
    XXH3_state_t hash;
    (void)XXH3_128bits_reset(&hash);
    for (int64_t i = 0; i < plumb__checkpoint_shards(source); i++) {
        const plumb_shard_file *s = plumb__checkpoint_shard(source, i);
        /* Tools that copy files give the copy the time of the original; ctime is the system's own. */
        const int64_t facts[] = {s->opened.st_size, s->opened.st_mtim.tv_sec,
                                 s->opened.st_mtim.tv_nsec, s->opened.st_ctim.tv_sec,
                                 s->opened.st_ctim.tv_nsec};
        (void)XXH3_128bits_update(&hash, s->file, strlen(s->file) + 1);
        (void)XXH3_128bits_update(&hash, facts, sizeof facts);
    }
    return XXH3_128bits_digest(&hash);
}

int64_t plumb__new_file_holes(const plumb_checkpoint *source) {
    int64_t holes = 0;
    for (int64_t i = 0; i < plumb__checkpoint_shards(source); i++) {
        const struct stat *s = &plumb__checkpoint_shard(source, i)->opened;
        int64_t missing = (int64_t)s->st_size - (int64_t)s->st_blocks * 512;
        if (missing > 0) holes += missing;
    }
    return holes;
}

/* ---- Making it --------------------------------------------------------------------------------- */

static bool is_there(const plumb_new_file *n, int64_t tensor) {
    return plumb__digest_is_set(plumb__stored_digest(&n->header, tensor));
}

typedef struct writing {
    plumb_new_file *new_file;
    const plumb_new_file_work *work;
} writing;

static plumb_status write_tensor(void *user, plumb_jobs *jobs, int job, int64_t item,
                                 plumb_error *err) {
    const writing *w = user;
    if (is_there(w->new_file, item)) return PLUMB_OK;
    return w->work->write(w->work->user, jobs, job, item, err);
}

static void tell(const plumb_new_file *n, const char *line) {
    if (n->options->log) n->options->log(n->options->log_user, PLUMB_LOG_INFO, line);
}

static void tell_beginning(const plumb_new_file *n, bool replaced, int64_t there) {
    if (replaced) tell(n, "the part that was there is of no use for this work: begun anew");
    if (!n->part.resumed) return;
    static const char format[] = "goes on from %s: %.3f GB of it are there";
    size_t size = strlen(n->part.path) + sizeof format + 32;
    char *line = malloc(size);
    if (!line) return; /* the work itself can do without */
    (void)snprintf(line, size, format, n->part.path, (double)there / 1e9);
    tell(n, line);
    free(line);
}

static plumb_status write_payloads(plumb_new_file *n, const plumb_new_file_work *work, int64_t left,
                                   plumb_error *err) {
    writing w = {n, work};
    const plumb_work jobs = {.doing = "writing", .jobs = n->jobs, .items = n->file.count,
                             .total = left, .run = write_tensor, .user = &w,
                             .progress = n->options->progress,
                             .progress_user = n->options->progress_user};
    plumb_status status = work->open(work->user, err);
    if (status == PLUMB_OK) status = plumb__jobs_run(&jobs, err);
    work->close(work->user);
    plumb_error ignored; /* the first fault is the one to tell */
    if (status != PLUMB_OK) (void)!plumb__part_file_sync(&n->part, &ignored);
    return status;
}

static plumb_status read_back(const plumb_new_file *n, const plumb_shard_file *written,
                              plumb_error *err) {
    const plumb_audit_options options = {.jobs = n->jobs, .progress = n->options->progress,
                                         .progress_user = n->options->progress_user};
    const plumb_audit audit = {.file = &n->file, .header = &n->header, .shard = written,
                               .options = &options, .doing = "checking what is on disk"};
    plumb_audit_result ignored;
    return plumb__audit_payloads(&audit, &ignored, err);
}

/* What differs from what was written would differ again after a resumed run. */
static plumb_status check_written(plumb_new_file *n, const plumb_new_file_work *work,
                                  const plumb_shard_file *written, plumb_error *err) {
    plumb_status status = read_back(n, written, err);
    if (status == PLUMB_OK && work->compare) status = work->compare(work->user, written, err);
    if (status == PLUMB_ERROR_VALUE) plumb__part_file_distrust(&n->part);
    return status;
}

static void fill_result(const plumb_new_file *n, plumb_convert_result *result) {
    result->file_bytes = n->header.file_bytes;
    result->tensors = n->file.count;
    for (int64_t i = 0; i < n->file.count; i++) {
        const plumb_stored_tensor *t = &n->file.tensor[i];
        if (!plumb__stored_tensor_has_choice(t)) continue;
        result->matrices[t->type == PLUMB_GGML_F32    ? PLUMB_DENSE_F32
                         : t->type == PLUMB_GGML_BF16 ? PLUMB_DENSE_BF16
                                                      : PLUMB_DENSE_FP8]++;
    }
}

plumb_status plumb__new_file_make(plumb_new_file *n, const char *target, XXH128_hash_t origin,
                                  int64_t holes, const plumb_new_file_work *work,
                                  plumb_convert_result *result, plumb_error *err) {
    bool replaced, names = !n->options->no_audit;
    plumb_shard_file written;
    n->jobs = plumb__jobs_threads(n->options->jobs);
    const plumb_part_work part = {.origin = origin, .holes = holes,
                                  .note_bytes = n->options->note_bytes, .force = n->options->force};
    plumb_status status =
        plumb__part_file_open(target, &part, &n->header, &n->part, &replaced, err);
    if (status != PLUMB_OK) return status;
    int64_t left = 0;
    for (int64_t i = 0; i < n->file.count; i++)
        *(is_there(n, i) ? &result->resumed_bytes : &left) += n->file.tensor[i].bytes;
    tell_beginning(n, replaced, result->resumed_bytes);
    status = write_payloads(n, work, left, err);
    if (status == PLUMB_OK) status = plumb__part_file_seal(&n->part, &written, err);
    if (status == PLUMB_OK && names) status = check_written(n, work, &written, err);
    if (status == PLUMB_OK && names) status = plumb__part_file_finish(&n->part, err);
    result->part_stays = status != PLUMB_OK && !n->part.ends;
    plumb__part_file_close(&n->part);
    if (status == PLUMB_OK) fill_result(n, result);
    return status;
}

void plumb__new_file_free(plumb_new_file *new_file) {
    plumb__converted_header_free(&new_file->header);
    plumb__converted_file_free(&new_file->file);
}
