/* The metadata of a converted file (docs/convert.md).
 *
 *   general.*               architecture "deepseek41", name; source.url and source.revision where known
 *   deepseek41.KEY          fields of text_config under their released names: u32, f32, string, bool,
 *                           u32 arrays; rope_scaling.KEY likewise.  rope_theta and compress_rope_theta
 *                           are f32 where they are no whole numbers; candidate_source_layer_id is
 *                           absent where there is none
 *   deepseek41.config       config.json, byte for byte
 *   deepseek41.engram.*     encoding, a string: codes and scales of a row and the row's bytes;
 *                           layer_ids u32 [layers]; rows u64 [layers]; compressed_vocab_size and pad_id
 *                           (a token id) u32; multipliers u64 [layers][ngram], newest id first; primes
 *                           u64 [layers][ngram - 1][heads]; token_map i32 [vocab]
 *   tokenizer.ggml.*        with a tokenizer only (gguf_tokenizer.h)
 *   plumb.format            u32, this layout's number
 *   plumb.fp8.encoding      how FP8 matrices and their plumb.*.scale belong together
 *   plumb.file.NAME         tokenizer.json, tokenizer_config.json, generation_config.json where present,
 *                           byte for byte: strings of at most 64 KiB and, last, an empty one */
#ifndef PLUMB_CONVERT_GGUF_METADATA_H
#define PLUMB_CONVERT_GGUF_METADATA_H

#include "format/gguf.h"
#include "format/model_config.h"

/* Adds all of it to the writer.  `config` is that of the model, which may be a folder or a converted
 * file.  Errors name the small file that cannot be read or does not fit the config; those of the
 * writer itself are told by plumb__gguf_writer_finish. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_metadata_write(plumb_gguf_writer *writer,
                                                         const char *model,
                                                         const plumb_model_config *config,
                                                         plumb_error *err);

#endif
