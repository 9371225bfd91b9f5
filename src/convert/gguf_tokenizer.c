/* tokenizer.json as arrays. */
#include "convert/gguf_tokenizer.h"

#include "base/error.h"
#include "format/model_files.h"
#include "text/tokenizer_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CONFIG_BYTES = 1 << 20 };

typedef struct token {
    plumb__slice text;
    int32_t type;
} token;

static plumb_status place(token *tokens, int64_t count, int64_t id, token item,
                          const plumb__tokenizer_json *file, plumb_error *err) {
    if (id >= count)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, file->path, "id", -1,
                           plumb__format("%lld", (long long)id).s, "below %lld, the config's vocab_size",
                           (long long)count);
    tokens[id] = item;
    return PLUMB_OK;
}

/* tokens[count] by id; an added token's entry hides the vocabulary's. */
static plumb_status sort_by_id(const plumb__tokenizer_json *file, token *tokens, int64_t count,
                               plumb_error *err) {
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < file->n_vocab && status == PLUMB_OK; i++) {
        token item = {file->vocab[i].spelling, PLUMB_TOKEN_TYPE_NORMAL};
        status = place(tokens, count, file->vocab[i].id, item, file, err);
    }
    for (int64_t i = 0; i < file->n_added && status == PLUMB_OK; i++) {
        const plumb__added_entry *added = &file->added[i];
        token item = {added->content, added->special ? PLUMB_TOKEN_TYPE_CONTROL
                                                     : PLUMB_TOKEN_TYPE_USER_DEFINED};
        status = place(tokens, count, added->id, item, file, err);
    }
    for (int64_t id = 0; id < count && status == PLUMB_OK; id++)
        if (!tokens[id].text.bytes)
            status = plumb__fail(err, PLUMB_ERROR_FORMAT, file->path, "id", -1,
                                 plumb__format("no token %lld", (long long)id).s,
                                 "%lld ids without holes", (long long)count);
    return status;
}

static plumb_status write_tokens(plumb_gguf_writer *writer, const plumb__tokenizer_json *file,
                                 int64_t count, plumb_error *err) {
    token *tokens = calloc((size_t)count, sizeof *tokens);
    int32_t *types = malloc((size_t)count * sizeof *types);
    plumb_status status = tokens && types ? sort_by_id(file, tokens, count, err)
                                          : plumb__fail_memory(err, "tokens", (size_t)count * sizeof *tokens);
    if (status == PLUMB_OK) {
        plumb__gguf_write_strings_begin(writer, "tokenizer.ggml.tokens", count);
        for (int64_t id = 0; id < count; id++) {
            plumb__gguf_write_strings_add(writer, tokens[id].text.bytes, (int64_t)tokens[id].text.size);
            types[id] = tokens[id].type;
        }
        plumb__gguf_write_array(writer, "tokenizer.ggml.token_type", PLUMB_GGUF_I32, types, count);
    }
    free(tokens);
    free(types);
    return status;
}

static plumb_status write_merges(plumb_gguf_writer *writer, const plumb__tokenizer_json *file,
                                 plumb_error *err) {
    size_t longest = 0;
    for (int64_t i = 0; i < file->n_merges; i++) {
        size_t size = file->merges[i].left.size + 1 + file->merges[i].right.size;
        if (size > longest) longest = size;
    }
    char *pair = malloc(longest + 1);
    if (!pair) return plumb__fail_memory(err, "merges", longest + 1);
    plumb__gguf_write_strings_begin(writer, "tokenizer.ggml.merges", file->n_merges);
    for (int64_t i = 0; i < file->n_merges; i++) {
        plumb__slice left = file->merges[i].left, right = file->merges[i].right;
        memcpy(pair, left.bytes, left.size);
        pair[left.size] = ' ';
        memcpy(pair + left.size + 1, right.bytes, right.size);
        plumb__gguf_write_strings_add(writer, pair, (int64_t)(left.size + 1 + right.size));
    }
    free(pair);
    return PLUMB_OK;
}

static void write_flag(plumb_gguf_writer *writer, const json_t *root, const char *key) {
    const json_t *value = json_object_get(root, key);
    if (json_is_boolean(value))
        plumb__gguf_write_bool(writer, plumb__format("tokenizer.ggml.%s", key).s,
                               json_is_true(value));
}

static plumb_status write_flags(plumb_gguf_writer *writer, const char *model, plumb_error *err) {
    static const char name[] = "tokenizer_config.json";
    if (!plumb__model_file_exists(model, name)) return PLUMB_OK;
    char *text;
    int64_t size;
    plumb_status status = plumb__model_file_load(model, name, MOST_CONFIG_BYTES, &text, &size, err);
    if (status != PLUMB_OK) return status;
    json_error_t fault;
    json_t *root = json_loadb(text, (size_t)size, 0, &fault);
    if (json_is_object(root)) {
        write_flag(writer, root, "add_bos_token");
        write_flag(writer, root, "add_eos_token");
    } else {
        status = plumb__fail(err, PLUMB_ERROR_FORMAT, model, name, root ? 0 : fault.position,
                             root ? "another JSON value" : "faulty JSON", "one JSON object");
    }
    json_decref(root);
    free(text);
    return status;
}

plumb_status plumb__gguf_tokenizer_write(plumb_gguf_writer *writer, const char *model,
                                         const plumb_model_config *config, plumb_error *err) {
    static const char kind[] = "gpt2", splits[] = "joyai-llm";
    plumb__tokenizer_json file;
    plumb_status status = plumb__tokenizer_json_read(&file, model, err);
    if (status == PLUMB_OK) {
        plumb__gguf_write_string(writer, "tokenizer.ggml.model", kind, sizeof kind - 1);
        plumb__gguf_write_string(writer, "tokenizer.ggml.pre", splits, sizeof splits - 1);
        plumb__gguf_write_u32(writer, "tokenizer.ggml.bos_token_id", (uint32_t)config->bos_id);
        plumb__gguf_write_u32(writer, "tokenizer.ggml.eos_token_id", (uint32_t)config->eos_id);
        status = write_flags(writer, model, err);
    }
    if (status == PLUMB_OK) status = write_tokens(writer, &file, config->vocab, err);
    if (status == PLUMB_OK) status = write_merges(writer, &file, err);
    plumb__tokenizer_json_free(&file);
    return status;
}
