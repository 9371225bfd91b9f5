/* Made-up tokens are uniform over the ids of ordinary text: a seed gives the same ones on every
 * machine. They cost what any tokens cost, but choose experts and Engram rows more evenly than text
 * does. */
#include "cli/bench_tokens.h"

#include "base/error.h"
#include "cli/output.h"
#include "cli/prompt.h"
#include "synth/number_stream.h"

#include <stdlib.h>

/* Ids that text is made of: neither control tokens nor unknown to the tokenizer.  Without a
 * tokenizer (text is NULL) all but the two that begin and end a sentence. */
static int64_t ordinary_ids(const plumb_model_info *info, const plumb_text *text, int32_t *ids) {
    int64_t n = 0;
    for (int32_t id = 0; id < info->vocab_size; id++) {
        size_t size = 0;
        bool control = id == info->bos_id || id == info->eos_id;
        if (text != NULL &&
            (plumb_text_is_control(text, id) || plumb_text_token_bytes(text, id, &size) == NULL))
            control = true;
        if (!control) ids[n++] = id;
    }
    return n;
}

static plumb_status make_up(const cli_runtime *runtime, const plumb_text *text, int64_t wanted,
                            plumb_tokens *tokens, plumb_error *err) {
    const plumb_model_info *info = &runtime->info;
    int32_t *ids = malloc((size_t)info->vocab_size * sizeof *ids);
    tokens->ids = malloc((size_t)wanted * sizeof *tokens->ids);
    plumb_status status = PLUMB_OK;
    if (ids == NULL || tokens->ids == NULL) {
        status = plumb__fail_memory(err, "made-up tokens", (size_t)wanted * sizeof *tokens->ids);
        goto done;
    }
    int64_t n = ordinary_ids(info, text, ids);
    if (n == 0) {
        status = plumb__fail(err, PLUMB_ERROR_TEXT, info->path, "tokenizer", -1,
                             "control tokens only", "tokens of text");
        goto done;
    }
    plumb__number_stream numbers = plumb__number_stream_of(runtime->options->seed, "bench");
    tokens->capacity = tokens->count = wanted;
    tokens->ids[0] = (int32_t)info->bos_id;
    for (int64_t i = 1; i < wanted; i++) tokens->ids[i] = ids[plumb__stream_below(numbers, i, n)];
done:
    free(ids);
    return status;
}

plumb_status cli_bench_tokens(const cli_runtime *runtime, int64_t wanted, plumb_tokens *tokens,
                              plumb_error *err) {
    const cli_options *options = runtime->options;
    if (options->prompt_file != NULL) return cli_read_prompt(runtime, tokens, err);
    if (options->tokens_file != NULL) return cli_read_ids(runtime, tokens, err);
    if (!options->quiet)
        cli_complain(
            options,
            "neither --prompt-file nor --tokens-file: the tokens are made up, from seed %llu",
            (unsigned long long)options->seed);
    /* A model may come without a tokenizer, and one that cannot be read matters to nobody here. */
    plumb_text *text = NULL;
    if (runtime->text == NULL && plumb_text_open(runtime->info.path, &text, NULL) != PLUMB_OK)
        text = NULL;
    plumb_status status =
        make_up(runtime, runtime->text != NULL ? runtime->text : text, wanted, tokens, err);
    plumb_text_close(text);
    return status;
}
