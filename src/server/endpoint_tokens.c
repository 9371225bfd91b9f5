/* POST /tokenize {"content": TEXT, "add_bos": false, "match_control": false, "with_pieces": false}
 * POST /detokenize {"tokens": [ID, ...]} */
#include "server/fields.h"
#include "server/server_parts.h"
#include "server/text_buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(const plumb_api_error *error, plumb_response *response) {
    plumb__openai_refuse(error, response);
}

/* The answer is written as it goes: a JSON value for each token of a book would be gigabytes. */

static void append(plumb_text_buffer *out, const char *text) { plumb__text_append(out, text, strlen(text)); }

static void append_number(plumb_text_buffer *out, int64_t number) {
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%lld", (long long)number);
    plumb__text_append(out, digits, (size_t)size);
}

/* The bytes of a token as text; those that are no text alone, as a list of bytes. */
static void append_piece(plumb_text_buffer *out, const plumb_text *text, int32_t id) {
    size_t size = 0;
    const char *bytes = plumb_text_token_bytes(text, id, &size);
    json_t *piece = json_stringn(bytes ? bytes : "", bytes ? size : 0);
    if (!piece) {
        piece = json_array();
        for (size_t i = 0; i < size; i++)
            (void)json_array_append_new(piece, json_integer((unsigned char)bytes[i]));
    }
    plumb__text_append_json(out, piece);
    json_decref(piece);
}

static void append_token(plumb_text_buffer *out, const plumb_text *text, int32_t id, bool with_piece) {
    if (with_piece) append(out, "{\"id\":");
    append_number(out, id);
    if (!with_piece) return;
    append(out, ",\"piece\":");
    append_piece(out, text, id);
    append(out, "}");
}

static void answer_tokens(const plumb_text *text, const plumb_tokens *tokens, bool with_pieces,
                          plumb_response *response) {
    plumb_text_buffer out = {0};
    append(&out, "{\"tokens\":[");
    for (int64_t i = 0; i < tokens->count && !out.failed; i++) {
        if (i > 0) append(&out, ",");
        append_token(&out, text, tokens->ids[i], with_pieces);
    }
    append(&out, "],\"count\":");
    append_number(&out, tokens->count);
    append(&out, "}");
    if (out.failed) plumb__response_json(response, 500, NULL);
    else plumb__response_text(response, 200, "application/json", out.bytes, (size_t)out.size);
    plumb__text_free(&out);
}

typedef struct tokenize_request {
    const char *content;
    size_t size;
    bool add_bos, match_control, with_pieces;
} tokenize_request;

static bool read_tokenize(const plumb_fields *fields, tokenize_request *r) {
    const json_t *content = json_object_get(fields->object, "content");
    if (!json_is_string(content)) return plumb__field_fault(fields, "content", "'content' must be a string");
    r->content = json_string_value(content);
    r->size = json_string_length(content);
    return plumb__field_bool(fields, "add_bos", &r->add_bos) &&
           plumb__field_bool(fields, "match_control", &r->match_control) &&
           plumb__field_bool(fields, "with_pieces", &r->with_pieces);
}

static bool encode(const plumb_server *server, const tokenize_request *r, plumb_tokens *tokens,
                   const plumb_fields *fields) {
    const plumb_text *text = server->options.text;
    plumb_model_info info;
    plumb_model_get_info(server->options.model, &info);
    plumb_error err = {0};
    plumb_status status = plumb_text_encode(text, r->content, r->size, r->match_control, tokens, &err);
    if (status == PLUMB_ERROR_MEMORY) return plumb__field_no_memory(fields);
    if (status != PLUMB_OK)
        return plumb__field_fault(fields, "content", "found %s, expected %s", err.found, err.expected);
    if (!r->add_bos) return true;
    int32_t *grown = realloc(tokens->ids, (size_t)(tokens->count + 1) * sizeof *grown);
    if (!grown) return plumb__field_no_memory(fields);
    memmove(grown + 1, grown, (size_t)tokens->count * sizeof *grown);
    grown[0] = (int32_t)info.bos_id;
    tokens->ids = grown;
    tokens->count++;
    if (tokens->capacity < tokens->count) tokens->capacity = tokens->count;
    return true;
}

void plumb__endpoint_tokenize(plumb_server *server, plumb_http_exchange *exchange, plumb_response *response) {
    plumb_api_error error = {0};
    plumb_fields fields;
    tokenize_request r = {0};
    json_t *root = NULL;
    size_t size;
    const char *body = plumb__http_body(exchange, &size);
    plumb_tokens tokens = {0};
    bool taken = plumb__fields_parse(body, size, &root, &fields, &error) && read_tokenize(&fields, &r) &&
                 encode(server, &r, &tokens, &fields);
    if (taken) answer_tokens(server->options.text, &tokens, r.with_pieces, response);
    else refuse(&error, response);
    plumb_tokens_free(&tokens);
    json_decref(root);
}

/* The ids' text; what never became a character is U+FFFD. */
static json_t *decode(const plumb_text *text, const json_t *list, const plumb_fields *fields) {
    size_t capacity = 16, size = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        size_t bytes = 0;
        json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
        if (value < 0 || value >= plumb_text_vocab_size(text) ||
            !plumb_text_token_bytes(text, (int32_t)value, &bytes)) {
            (void)plumb__field_fault(fields, "tokens", "'tokens[%zu]' is not a token id of this model", i);
            return NULL;
        }
        capacity += 3 * bytes + 3;
    }
    char *bytes = malloc(capacity);
    if (!bytes) {
        (void)plumb__field_no_memory(fields);
        return NULL;
    }
    plumb_detokenizer d;
    plumb_detokenizer_init(&d, text);
    for (size_t i = 0; i < json_array_size(list); i++)
        size += plumb_detokenizer_push(&d, (int32_t)json_integer_value(json_array_get(list, i)), bytes + size,
                                       capacity - size);
    size += plumb_detokenizer_finish(&d, bytes + size, capacity - size);
    json_t *content = json_stringn(bytes, size);
    free(bytes);
    if (!content) (void)plumb__field_no_memory(fields);
    return content;
}

void plumb__endpoint_detokenize(plumb_server *server, plumb_http_exchange *exchange, plumb_response *response) {
    plumb_api_error error = {0};
    plumb_fields fields;
    json_t *root = NULL, *list = NULL, *content = NULL;
    size_t size;
    const char *body = plumb__http_body(exchange, &size);
    if (plumb__fields_parse(body, size, &root, &fields, &error) && plumb__field_array(&fields, "tokens", &list)) {
        if (list) content = decode(server->options.text, list, &fields);
        else (void)plumb__field_fault(&fields, "tokens", "'tokens' must be an array of ids");
    }
    if (content) plumb__response_json(response, 200, json_pack("{s:o}", "content", content));
    else refuse(&error, response);
    json_decref(root);
}
