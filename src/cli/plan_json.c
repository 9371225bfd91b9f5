/* `plumb plan` for programs.  Bytes, seconds, and per second; null is "not known". */
#include "cli/plan_report.h"

#include "cli/json_report.h"

static json_t *known(double value) {
    return value > 0 ? json_real(value) : json_null();
}

static json_t *model_json(const cli_plan *p) {
    const plumb_model_sizes *s = &p->sizes;
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "path",
                     p->model != NULL ? cli_json_text(p->model) : json_null(), "dense_bytes",
                     (json_int_t)s->dense_bytes, "experts", (json_int_t)plumb__model_pairs(s),
                     "expert_bytes", (json_int_t)s->expert_bytes, "experts_bytes",
                     (json_int_t)s->experts_bytes, "engram_bytes", (json_int_t)s->engram_bytes,
                     "token_experts", (json_int_t)plumb__model_token_experts(s));
}

static json_t *disk_json(const cli_plan *p) {
    const plumb_disk_rate *d = &p->disk;
    if (!p->disk_measured) return json_null();
    return json_pack("{s:I, s:f, s:I, s:i, s:b, s:b, s:s}", "bytes", (json_int_t)d->bytes,
                     "seconds", d->seconds, "experts", (json_int_t)d->experts, "in_flight",
                     d->in_flight, "uncached", d->uncached, "holes", d->holes, "reader", d->reader);
}

static json_t *rates_json(const cli_plan *p) {
    return json_pack("{s:f, s:o, s:b, s:o, s:b, s:o, s:o, s:o}", "disk", p->rates.disk,
                     "disk_measured", disk_json(p), "memory_given", p->memory_given, "memory",
                     known(p->rates.memory), "memory_measured", p->memory_measured, "device",
                     known(p->rates.device), "link", known(p->rates.link), "compute",
                     known(p->rates.compute));
}

static json_t *budget_json(const plumb_speed_plan *plan) {
    const plumb_budget *b = &plan->budget;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "memory",
                     (json_int_t)b->memory, "system", (json_int_t)b->system, "device_memory",
                     (json_int_t)b->device_memory, "device_system", (json_int_t)b->device_system,
                     "dense", (json_int_t)b->dense, "session", (json_int_t)b->session, "context",
                     (json_int_t)b->context, "work", (json_int_t)b->work, "chunk",
                     (json_int_t)b->chunk, "slot_bytes", (json_int_t)b->slot_bytes, "slots",
                     (json_int_t)b->slots, "second_slots", (json_int_t)b->second_slots, "unused",
                     (json_int_t)b->unused);
}

static json_t *bound_json(const plumb_bound *b) {
    const plumb_cost *c = &b->cost;
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:f, s:f}", "tokens", b->tokens,
                     "disk_bytes", c->disk_bytes, "link_bytes", c->link_bytes, "memory_bytes",
                     c->memory_bytes, "flop", c->flop, "disk_seconds", c->disk_seconds,
                     "link_seconds", c->link_seconds, "memory_seconds", c->memory_seconds,
                     "compute_seconds", known(c->compute_seconds), "serial", b->serial,
                     "overlapped", b->overlapped);
}

static json_t *bounds_json(const plumb_speed_plan *plan) {
    return json_pack("{s:s, s:f, s:f, s:o, s:o, s:o, s:o}", "mode",
                     plumb__plan_mode_name(plan->mode), "hit_rate_computing", plan->hits.computing,
                     "hit_rate", plan->hits.anywhere, "decode", bound_json(&plan->decode),
                     "prefill_cold", bound_json(&plan->cold), "prefill_chunk",
                     bound_json(&plan->chunk), "prefill_kept", bound_json(&plan->kept));
}

static json_t *count_json(const plumb_replay_count *c) {
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:f}", "batches", (json_int_t)c->batches, "tokens",
                     (json_int_t)c->tokens, "wanted", (json_int_t)c->wanted, "hits",
                     (json_int_t)c->hits, "hit_rate", plumb__replay_hit_rate(c), "misses_per_token",
                     plumb__replay_misses(c));
}

static json_t *routes_json(const cli_plan *p) {
    if (!p->has_routes) return json_null();
    const plumb_recorded *r = &p->routes;
    json_t *replays = json_array();
    for (int i = 0; i < r->n; i++) {
        const plumb_replay *of[] = {&r->lru[i], &r->age_over_use[i]};
        for (int k = 0; k < 2; k++) /* a failed append shows in the size */
            (void)json_array_append_new(replays, json_pack("{s:I, s:s, s:o, s:o}", "slots",
                                                           (json_int_t)of[k]->slots, "eviction",
                                                           plumb__eviction_name(of[k]->eviction),
                                                           "decode", count_json(&of[k]->decode),
                                                           "prefill", count_json(&of[k]->prefill)));
    }
    if (json_array_size(replays) != (size_t)(2 * r->n)) {
        json_decref(replays);
        return NULL;
    }
    return json_pack("{s:I, s:s, s:o}", "distinct", (json_int_t)r->lru[0].distinct, "better",
                     plumb__eviction_name(r->better), "replays", replays);
}

static json_t *changes_json(const cli_plan *p) {
    static const char *const names[] = {[PLUMB_CHANGE_CACHE] = "memory_for_cache",
                                        [PLUMB_CHANGE_MEMORY] = "memory",
                                        [PLUMB_CHANGE_DISK] = "disk",
                                        [PLUMB_CHANGE_CHUNK] = "chunk"};
    json_t *changes = json_array();
    for (int i = 0; i < p->n_changes; i++) {
        const plumb_change *c = &p->changes[i];
        (void)json_array_append_new(
            changes, json_pack("{s:s, s:f, s:I, s:f, s:f, s:f, s:f, s:f}", "change", names[c->kind],
                               "value", c->value, "slots", (json_int_t)c->plan.slots, "hit_rate",
                               c->plan.hits.anywhere, "decode_serial", c->plan.decode.serial,
                               "decode_overlapped", c->plan.decode.overlapped, "prefill_chunk",
                               c->plan.chunk.overlapped, "prefill_kept", c->plan.kept.overlapped));
    }
    if (json_array_size(changes) == (size_t)p->n_changes) return changes;
    json_decref(changes);
    return NULL;
}

bool cli_plan_print_json(const cli_plan *p) {
    /* A part that could not be made is NULL, and then so is the whole. */
    json_t *report =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "model", model_json(p), "rates", rates_json(p),
                  "budget", budget_json(&p->plan), "bounds", bounds_json(&p->plan), "routes",
                  routes_json(p), "changes", changes_json(p));
    if (report == NULL) return false;
    cli_json_print(report, 15);
    json_decref(report);
    return true;
}
