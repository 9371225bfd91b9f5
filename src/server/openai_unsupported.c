/* Members of the official APIs and of other local servers that would change an answer and that this server has
 * nowhere.  One that says what happens anyway is no reason to refuse a request: tools send all that they know,
 * switched off. */
#include "server/openai.h"

#include <string.h>

static const struct {
    const char *key;
    double off;
} numbers[] = {
    {"presence_penalty", 0},   {"frequency_penalty", 0}, {"repetition_penalty", 1}, {"repeat_penalty", 1},
    {"length_penalty", 1},     {"typical_p", 1},         {"tfs", 1},                {"tfs_z", 1},
    {"top_a", 0},              {"mirostat", 0},          {"mirostat_mode", 0},      {"dry_multiplier", 0},
    {"xtc_probability", 0},    {"dynatemp_range", 0},    {"smoothing_factor", 0},   {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},         {"guidance_scale", 1},    {"min_tokens", 0},         {"min_length", 0},
    {"no_repeat_ngram_size", 0},
};

/* Off are null, false and what is empty. */
static const char *const others[] = {
    "moderation", "grammar", "grammar_string", "json_schema", "guided_regex", "guided_choice", "guided_grammar",
    "structured_outputs", "stop_token_ids", "bad_words", "banned_strings", "allowed_token_ids", "logits_processors",
    "negative_prompt", "ignore_eos", "use_beam_search", "ban_eos_token", "prompt_logprobs",
};

/* An empty object has its defaults: off is null alone. */
static const char *const options[] = {"audio", "web_search_options", "guided_json"};

static bool is_off(const json_t *value) {
    if (json_is_string(value)) return json_string_length(value) == 0;
    if (json_is_array(value)) return json_array_size(value) == 0;
    if (json_is_object(value)) return json_object_size(value) == 0;
    return !value || json_is_null(value) || json_is_false(value);
}

/* Of what kinds the answer may be: text is the only one. */
static bool check_modalities(const plumb_fields *fields) {
    json_t *list = NULL, *kind;
    size_t i;
    if (!plumb__field_array(fields, "modalities", &list)) return false;
    json_array_foreach(list, i, kind)
        if (!json_is_string(kind) || strcmp(json_string_value(kind), "text") != 0)
            return plumb__field_fault(fields, "modalities", "'modalities' has other than 'text'");
    return true;
}

bool plumb__openai_refuse_unsupported(const plumb_fields *fields) {
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double value = numbers[i].off;
        if (!plumb__field_number(fields, numbers[i].key, -1e9, 1e9, &value)) return false;
        if (value != numbers[i].off)
            return plumb__field_fault(fields, numbers[i].key, "'%s' is not supported, except %g", numbers[i].key,
                                      numbers[i].off);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!is_off(json_object_get(fields->object, others[i])))
            return plumb__field_fault(fields, others[i], "'%s' is not supported", others[i]);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const json_t *value = json_object_get(fields->object, options[i]);
        if (value && !json_is_null(value))
            return plumb__field_fault(fields, options[i], "'%s' is not supported", options[i]);
    }
    return check_modalities(fields);
}
