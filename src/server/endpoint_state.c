/* What the server tells of itself: /health, /metrics, /props, /slots. */
#include "server/server_parts.h"
#include "server/text_buffer.h"

#include <stdio.h>

enum { MOST_SLOTS = 64 };

void plumb__endpoint_health(plumb_server *server, plumb_http_exchange *exchange, plumb_response *response) {
    (void)exchange;
    plumb__response_json(response, server->stopping ? 503 : 200,
                         json_pack("{s:s}", "status", server->stopping ? "stopping" : "ok"));
}

/* ---- Properties ---- */

void plumb__endpoint_props(plumb_server *server, plumb_http_exchange *exchange, plumb_response *response) {
    (void)exchange;
    const plumb_server_options *o = &server->options;
    plumb_model_info info;
    plumb_model_get_info(o->model, &info);
    json_t *sampling = json_pack("{s:o,s:o,s:i,s:o}", "temperature", plumb__json_float(server->sampling.temperature),
                                 "top_p", plumb__json_float(server->sampling.top_p), "top_k",
                                 (int)server->sampling.top_k, "min_p", plumb__json_float(server->sampling.min_p));
    json_t *model = json_pack("{s:I,s:I,s:I,s:I,s:b}", "vocab_size", (json_int_t)info.vocab_size, "layers",
                              (json_int_t)info.layers, "experts", (json_int_t)info.experts, "max_positions",
                              (json_int_t)info.max_positions, "streaming", (int)info.streaming);
    plumb__response_json(response, 200,
                         json_pack("{s:s,s:s,s:i,s:s,s:I,s:i,s:b,s:i,s:o,s:o}", "model", o->model_id, "version",
                                   PLUMB_VERSION, "arithmetic_revision", PLUMB_ARITHMETIC_REVISION, "device",
                                   info.device, "context", (json_int_t)o->context, "slots", o->slots,
                                   "thinking", (int)o->thinking, "effort", o->effort, "sampling", sampling,
                                   "model_info", model));
}

void plumb__endpoint_slots(plumb_server *server, plumb_http_exchange *exchange, plumb_response *response) {
    (void)exchange;
    static const char *const doing[] = {"idle", "prompt", "decoding"};
    plumb_slot_stats slots[MOST_SLOTS];
    int count = plumb__scheduler_get_slots(server->scheduler, slots, MOST_SLOTS);
    json_t *list = json_array();
    for (int i = 0; i < count && i < MOST_SLOTS; i++)
        (void)json_array_append_new(
            list, json_pack("{s:i,s:s,s:I,s:I,s:I,s:I,s:I}", "id", i, "state", doing[slots[i].doing], "tokens",
                            (json_int_t)slots[i].length, "prompt_tokens", (json_int_t)slots[i].prompt_tokens,
                            "prompt_done", (json_int_t)slots[i].prompt_done, "cached_tokens",
                            (json_int_t)slots[i].cached_tokens, "generated_tokens",
                            (json_int_t)slots[i].generated_tokens));
    plumb__response_json(response, 200, list);
}

/* ---- Metrics, in the text form of Prometheus ---- */

typedef struct metric {
    const char *name, *type, *help;
    double value;
} metric;

static void add(plumb_text_buffer *text, const metric *m) {
    char lines[256];
    int size = snprintf(lines, sizeof lines, "# HELP plumb_%s %s\n# TYPE plumb_%s %s\nplumb_%s %.17g\n", m->name,
                        m->help, m->name, m->type, m->name, m->value);
    if (size < (int)sizeof lines) plumb__text_append(text, lines, (size_t)size);
    else text->failed = true;
}

void plumb__endpoint_metrics(plumb_server *server, plumb_http_exchange *exchange, plumb_response *response) {
    (void)exchange;
    plumb_scheduler_stats s;
    plumb_stream_stats stream;
    plumb__scheduler_get_stats(server->scheduler, &s);
    plumb_model_get_stream_stats(server->options.model, &stream);
    const metric metrics[] = {
        {"http_requests_total", "counter", "requests of all kinds", (double)server->requests},
        {"http_connections", "gauge", "open connections", plumb__http_connections(server->http)},
        {"jobs_finished_total", "counter", "requests for tokens that ended well", (double)s.jobs_finished},
        {"jobs_failed_total", "counter", "requests for tokens that failed", (double)s.jobs_failed},
        {"jobs_cancelled_total", "counter", "requests for tokens whose client went", (double)s.jobs_cancelled},
        {"jobs_refused_total", "counter", "requests for tokens refused, the queue being full", (double)s.jobs_refused},
        {"jobs_waiting", "gauge", "requests that wait for a slot", s.waiting},
        {"slots", "gauge", "requests that can run at the same time", s.slots},
        {"slots_busy", "gauge", "requests that run", s.busy},
        {"prompt_tokens_total", "counter", "tokens of prompts, cached ones included", (double)s.prompt_tokens},
        {"prompt_cached_tokens_total", "counter", "tokens of prompts that were known", (double)s.cached_tokens},
        {"prompt_rows_total", "counter", "tokens of prompts evaluated, replayed ones included", (double)s.prompt_rows},
        {"prompt_seconds_total", "counter", "time spent on prompts", s.prefill_seconds},
        {"generated_tokens_total", "counter", "tokens sampled", (double)s.generated_tokens},
        {"decode_seconds_total", "counter", "time spent on steps of answers", s.decode_seconds},
        {"decode_steps_total", "counter", "steps, each for all answers that run", (double)s.decode_steps},
        {"decode_rows_total", "counter", "tokens evaluated in steps", (double)s.decoded_rows},
        {"expert_hits_total", "counter", "experts found in memory", (double)stream.hits},
        {"expert_misses_total", "counter", "experts read from the disk", (double)stream.misses},
        {"expert_read_bytes_total", "counter", "bytes of experts read", (double)stream.bytes_read},
        {"expert_wait_seconds_total", "counter", "time without work for want of an expert", stream.wait_seconds},
        {"store_entries", "gauge", "sessions on disk", (double)s.store.entries},
        {"store_bytes", "gauge", "bytes of sessions on disk", (double)s.store.bytes},
        {"store_written_bytes_today", "gauge", "bytes written to the store today", (double)s.store.written_today},
        {"peak_memory_bytes", "gauge", "most memory that the process had", (double)stream.peak_memory_bytes},
    };
    plumb_text_buffer text = {0};
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) add(&text, &metrics[i]);
    if (text.failed) plumb__response_json(response, 500, NULL);
    else
        plumb__response_text(response, 200, "text/plain; version=0.0.4; charset=utf-8", text.bytes,
                             (size_t)text.size);
    plumb__text_free(&text);
}
