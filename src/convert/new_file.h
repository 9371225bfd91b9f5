/* What converting and packing share: a part file is filled tensor by tensor, read back, and gets its
 * name. */
#ifndef PLUMB_CONVERT_NEW_FILE_H
#define PLUMB_CONVERT_NEW_FILE_H

#include "convert/convert.h"
#include "convert/part_file.h"

typedef struct plumb_new_file {
    const plumb_convert_options *options;
    plumb_converted_file file;       /* what it will hold */
    plumb_converted_header header;
    plumb_part_file part;
    int jobs;
} plumb_new_file;

/* How its payloads come about; `user` is handed to each. */
typedef struct plumb_new_file_work {
    plumb_status (*open)(void *user, plumb_error *err); /* the part is open, nothing written yet */
    plumb_job_fn write;                                 /* one tensor that is not there yet */
    void (*close)(void *user);                          /* called after open, whatever it returned */
    plumb_status (*compare)(void *user, const plumb_shard_file *written, plumb_error *err); /* or NULL */
    void *user;
} plumb_new_file_work;

/* Makes `target`; file and header are filled, the rest is not.  origin, holes: as
 * plumb__part_file_open. */
PLUMB_MUST_CHECK plumb_status plumb__new_file_make(plumb_new_file *new_file, const char *target,
                                                   XXH128_hash_t origin, int64_t holes,
                                                   const plumb_new_file_work *work,
                                                   plumb_convert_result *result, plumb_error *err);
/* Frees file and header. */
void plumb__new_file_free(plumb_new_file *new_file);

/* The target must not be one of the files that are read. */
PLUMB_MUST_CHECK plumb_status plumb__new_file_check_target(const plumb_checkpoint *source,
                                                           const char *target, bool force,
                                                           plumb_error *err);
/* Names, sizes and times of the files: what a part was made from. */
XXH128_hash_t plumb__new_file_origin(const plumb_checkpoint *source);
/* Bytes of the source that take no space, and will take none in the target. */
int64_t plumb__new_file_holes(const plumb_checkpoint *source);

#endif
