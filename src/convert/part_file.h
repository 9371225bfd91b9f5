/* A file that is being written under another name, PATH.part, until it is whole and checked.
 *
 * Until then its first bytes say that it is a part and what it is made from, so that no reader takes
 * it for a model.  Finished payloads are noted in the header's digests, after they have reached the
 * disk: whoever begins the same work again goes on where the last one was killed. */
#ifndef PLUMB_CONVERT_PART_FILE_H
#define PLUMB_CONVERT_PART_FILE_H

#include "convert/converted_header.h"
#include "format/shard_file.h"

#include <pthread.h>

typedef struct plumb_part_file {
    char *path, *final;         /* PATH.part, PATH */
    int fd;                     /* locked against other writers */
    int payload_fd;             /* for aligned writes, past the page cache where that is possible */
    plumb_converted_header *header;
    XXH128_hash_t origin;
    bool force;
    pthread_mutex_t lock;       /* of the header's digests */
    int64_t unsynced;           /* payload bytes finished and not yet noted */
    int64_t note_bytes;         /* so many are noted */
    bool lost;                  /* the system lost writes: nothing more is noted */
    bool resumed;               /* it goes on from an earlier run */
    bool ends;                  /* no later run can go on from it */
} plumb_part_file;

/* What it is made from and how. */
typedef struct plumb_part_work {
    XXH128_hash_t origin; /* of the source: another one is another work */
    int64_t holes;        /* bytes of the file that will take no space: for the check of what is free */
    int64_t note_bytes;   /* of payloads, from one note of what is there to the next; 0: 256 MiB */
    bool force;           /* replace a file of the final name */
} plumb_part_work;

/* PATH.part; free() it.  NULL: no memory. */
char *plumb__part_file_path(const char *path);

/* May `path` be written?  Not when it is something else than a file, or exists (unless force). */
PLUMB_MUST_CHECK plumb_status plumb__part_file_check(const char *path, bool force, plumb_error *err);
/* Creates PATH.part or, when it was made from the same origin with the same header, takes over the
 * digests it has.  A part of anything else begins anew: *replaced; a file that is no part is refused.
 * The header is kept and must outlive it. */
PLUMB_MUST_CHECK plumb_status plumb__part_file_open(const char *path, const plumb_part_work *work,
                                                    plumb_converted_header *header,
                                                    plumb_part_file *part, bool *replaced,
                                                    plumb_error *err);
/* Notes a finished payload.  Thread-safe, as is plumb__part_file_note_source. */
PLUMB_MUST_CHECK plumb_status plumb__part_file_note(plumb_part_file *part, int64_t tensor,
                                                    XXH128_hash_t digest, int64_t bytes,
                                                    plumb_error *err);
/* Sets the digest of a released tensor, before the payload that it is part of is noted. */
void plumb__part_file_note_source(plumb_part_file *part, int64_t tensor, XXH128_hash_t digest);
/* What is written so far reaches the disk and is noted there. */
PLUMB_MUST_CHECK plumb_status plumb__part_file_sync(plumb_part_file *part, plumb_error *err);
/* What was read back is not what was written: the next run begins anew. */
void plumb__part_file_distrust(plumb_part_file *part);
/* All payloads are there: writes the sealed header (not yet the first bytes) and fills *shard, for
 * reading everything back; valid until the part is closed. */
PLUMB_MUST_CHECK plumb_status plumb__part_file_seal(plumb_part_file *part, plumb_shard_file *shard,
                                                    plumb_error *err);
/* The last step: first bytes, then the name. */
PLUMB_MUST_CHECK plumb_status plumb__part_file_finish(plumb_part_file *part, plumb_error *err);
/* Leaves PATH.part where it is, unless it has become PATH. */
void plumb__part_file_close(plumb_part_file *part);

#endif
