/* The tokenizer as other programs read it from a converted file: tokenizer.ggml.model "gpt2" and pre
 * "joyai-llm"; tokens [vocab], vocabulary entries spelled as in tokenizer.json; token_type i32 [vocab];
 * merges, "LEFT RIGHT" in order of rank; bos_token_id, eos_token_id u32; add_bos_token, add_eos_token
 * where tokenizer_config.json has them. */
#ifndef PLUMB_CONVERT_GGUF_TOKENIZER_H
#define PLUMB_CONVERT_GGUF_TOKENIZER_H

#include "format/gguf.h"
#include "format/model_config.h"

/* Values of token_type, as ggml numbers them. */
typedef enum plumb_token_type {
    PLUMB_TOKEN_TYPE_NORMAL = 1,
    PLUMB_TOKEN_TYPE_CONTROL = 3,     /* added, special */
    PLUMB_TOKEN_TYPE_USER_DEFINED = 4 /* added */
} plumb_token_type;

/* Of a model that has a tokenizer.json whose ids are those of the config, without holes. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_tokenizer_write(plumb_gguf_writer *writer,
                                                          const char *model,
                                                          const plumb_model_config *config,
                                                          plumb_error *err);

#endif
