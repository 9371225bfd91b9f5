/* The small files beside the weights: config.json, tokenizer.json and the like.  In a model folder
 * they are files; a converted file holds each byte for byte as metadata.
 *
 * `model` is the path of a folder or of a converted file.  Any other file stands for the one that is
 * asked for, so that a tokenizer.json alone will do where no more is needed. */
#ifndef PLUMB_FORMAT_MODEL_FILES_H
#define PLUMB_FORMAT_MODEL_FILES_H

#include "plumb.h"

/* config.json is the string deepseek41.config, engram_token_map.i32 the bytes of the array
 * deepseek41.engram.token_map, every other NAME the strings of the array "plumb.file.NAME", joined.
 * They are pieces since some readers fetch a header part by part, and take strings that are longer
 * than what they fetched for complete. */
#define PLUMB_GGUF_CONFIG_KEY "deepseek41.config"
#define PLUMB_GGUF_TOKEN_MAP_KEY "deepseek41.engram.token_map"
#define PLUMB_GGUF_FILE_KEY "plumb.file."
#define PLUMB_GGUF_FORMAT_KEY "plumb.format" /* u32 */
/* What we write, and read. */
enum { PLUMB_GGUF_FORMAT = 1, PLUMB_GGUF_ALIGNMENT = 16384 };

/* What a model is made of beside its weights; not every model has them all. */
enum { PLUMB_MODEL_FILES = 6, PLUMB_MODEL_FILE_BYTES = 1 << 28 /* none is larger */ };
extern const char *const plumb__model_files[PLUMB_MODEL_FILES];

/* Is the model a single file (a converted one)?  Told by its first bytes, or else by the name's end
 * .gguf: with damage in its first bytes it is still one, so that whoever reads it says so. */
bool plumb__model_is_file(const char *model);
/* Does it have this file?  Absent is false; a link that leads nowhere and a converted file that
 * cannot be read are true, so that loading it says what is wrong. */
bool plumb__model_file_exists(const char *model, const char *name);
/* The whole of it, with a NUL after it; free() it.  At most `limit` bytes.  In errors the file is
 * called as plumb__model_file_name says, or MODEL with the metadata's key as the field. */
PLUMB_MUST_CHECK plumb_status plumb__model_file_load(const char *model, const char *name,
                                                     int64_t limit, char **text, int64_t *size,
                                                     plumb_error *err);
/* What to call it in errors about its content: MODEL/NAME, inside a converted file too, or MODEL
 * where that is the file itself.  NULL without memory; free() it. */
char *plumb__model_file_name(const char *model, const char *name);

/* Both have the same small files, byte for byte.  The index is left out, since a converted file has
 * none, and so is an engram_token_map.i32 that `source` lacks, since it follows from the tokenizer.
 * The first difference is PLUMB_ERROR_VALUE with the file, the offset in it and both bytes. */
PLUMB_MUST_CHECK plumb_status plumb__model_files_compare(const char *model, const char *source,
                                                         plumb_error *err);

#endif
