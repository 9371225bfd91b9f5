/* A checkpoint: config, files, and where every tensor's bytes are.  A folder in the released layout, or
 * one converted file (docs/convert.md): both list the released tensors and give their released bytes.
 *
 * Opening checks everything that can be checked without reading payloads (spec: checkpoint.md
 * sections 2, 3 and 7): the config; the index; every shard's header; that the set of names is
 * exactly the expected one (vision tensors may be absent or idle when the config switches vision
 * off, so may the draft's, and a draft may be absent as a whole); dtypes, shapes, byte ranges,
 * overlaps, shard sizes.  Payloads are read by plumb__checkpoint_read, which notices a file that
 * was replaced, truncated or vanished since. */
#ifndef PLUMB_FORMAT_CHECKPOINT_H
#define PLUMB_FORMAT_CHECKPOINT_H

#include "format/gguf.h"
#include "format/model_config.h"
#include "format/tensor.h"

typedef struct plumb_checkpoint plumb_checkpoint;

/* `path` is a folder that holds config.json, model.safetensors.index.json and shards, or one
 * model.safetensors; or a converted file. */
PLUMB_MUST_CHECK plumb_status plumb__checkpoint_open(const char *path, plumb_log_fn log,
                                                     void *log_user, plumb_checkpoint **checkpoint,
                                                     plumb_error *err);
void plumb__checkpoint_close(plumb_checkpoint *checkpoint);
const plumb_model_config *plumb__checkpoint_config(const plumb_checkpoint *checkpoint);
const char *plumb__checkpoint_path(const plumb_checkpoint *checkpoint);
/* The header of a converted file; NULL for a folder. */
const plumb_gguf *plumb__checkpoint_gguf(const plumb_checkpoint *checkpoint);
int64_t plumb__checkpoint_count(const plumb_checkpoint *checkpoint);
/* Tensors in ascending name order. */
const plumb_tensor *plumb__checkpoint_tensor(const plumb_checkpoint *checkpoint, int64_t i);
/* By printf-formatted name; NULL when absent. */
const plumb_tensor *plumb__checkpoint_find(const plumb_checkpoint *checkpoint, const char *format,
                                           ...)
    __attribute__((format(printf, 2, 3)));
/* The scales of an FP8 matrix's tiles, by its codes; NULL with an error when there are none. */
const plumb_tensor *plumb__checkpoint_scales_of(const plumb_checkpoint *checkpoint,
                                                const plumb_tensor *codes, plumb_error *err);
int64_t plumb__checkpoint_shards(const plumb_checkpoint *checkpoint);
const char *plumb__checkpoint_shard_path(const plumb_checkpoint *checkpoint, int64_t shard);
/* The file as it was opened (shard_file.h). */
const struct plumb_shard_file *plumb__checkpoint_shard(const plumb_checkpoint *checkpoint,
                                                       int64_t shard);
/* The checkpoint's own descriptor of a shard; reads through it use the page cache. */
int plumb__checkpoint_shard_fd(const plumb_checkpoint *checkpoint, int64_t shard);

/* Reads bytes [begin, begin + size) of the tensor's released payload into `into`, decoding what is
 * stored in another form.  Thread-safe.  A short or
 * failing read, or a shard whose size or modification time changed since open or whose path leads
 * to another file, is an error naming file, tensor and offset. */
PLUMB_MUST_CHECK plumb_status plumb__checkpoint_read(const plumb_checkpoint *checkpoint,
                                                     const plumb_tensor *tensor, int64_t begin,
                                                     int64_t size, void *into, plumb_error *err);
/* For whoever reads shards by descriptors of their own: is the tensor's shard still the file that was
 * opened, under its path, with its size and modification time?  To be asked after a read, so that
 * what it returned is known to be of that file.  Thread-safe. */
PLUMB_MUST_CHECK plumb_status plumb__checkpoint_check_unchanged(const plumb_checkpoint *checkpoint,
                                                                const plumb_tensor *tensor,
                                                                plumb_error *err);
/* A second descriptor of a shard, whose reads go past the page cache: aligned ones only (on Linux
 * offset, size and memory to 4096).  Where the file system refuses, an ordinary one; *uncached
 * tells, and `why` (may be NULL) receives a phrase for the log.  close() it.  A path that no longer
 * leads to the file that was opened, unchanged, is an error.  Thread-safe. */
PLUMB_MUST_CHECK plumb_status plumb__checkpoint_open_uncached(const plumb_checkpoint *checkpoint,
                                                              int64_t shard, int *fd,
                                                              bool *uncached, char *why,
                                                              size_t why_size, plumb_error *err);
/* Refuses NaN: e4m3 codes 0x7F/0xFF, ue8m0 byte 255, NaN or infinite bf16/f32.  `begin` is the
 * payload offset of `bytes`, for the message.  (e2m1 has no NaN.) */
PLUMB_MUST_CHECK plumb_status plumb__checkpoint_check_values(const plumb_checkpoint *checkpoint,
                                                             const plumb_tensor *tensor,
                                                             int64_t begin, int64_t size,
                                                             const void *bytes, plumb_error *err);

#endif
