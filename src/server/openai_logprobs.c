/* Log-probabilities of visible tokens.
 *
 * A token may be half a character: `token` shows U+FFFD for it then, `bytes` are what it really is. */
#include "server/openai.h"

#include <math.h>

#include "server/text_buffer.h"

/* JSON has no infinity; OpenAI writes this for what cannot happen. */
static const double least_logprob = -9999.0;

json_t *plumb__openai_logprob_value(float logprob) {
    return json_real(isfinite(logprob) ? (double)logprob : least_logprob);
}

static json_t *list_bytes(const char *bytes, size_t size) {
    json_t *list = json_array();
    for (size_t i = 0; i < size; i++) {
        if (json_array_append_new(list, json_integer((unsigned char)bytes[i])) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *entry(const char *bytes, size_t size, float logprob) {
    return json_pack("{s:o, s:o, s:o}", "token", plumb__text_json_bytes(bytes, size), "logprob",
                     plumb__openai_logprob_value(logprob), "bytes", list_bytes(bytes, size));
}

json_t *plumb__openai_logprob(const plumb_text *text, const plumb_generation_event *token) {
    json_t *value = entry(token->bytes, token->size, token->token.logprob), *top = json_array();
    bool failed = false;
    for (int i = 0; i < token->n_top; i++) {
        size_t size = 0;
        const char *bytes = plumb_text_token_bytes(text, token->top[i].token, &size);
        failed |= json_array_append_new(top, entry(bytes, bytes ? size : 0, token->top[i].logprob)) != 0;
    }
    failed |= json_object_set_new(value, "top_logprobs", top) != 0;
    if (!failed) return value;
    json_decref(value);
    return NULL;
}
