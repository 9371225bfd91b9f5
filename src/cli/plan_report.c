/* `plumb plan` for people. */
#include "cli/plan_report.h"

#include "cli/output.h"

#include <inttypes.h>
#include <stdio.h>

static const double giga = 1e9, tera = 1e12;

static double gb(double bytes) {
    return bytes / giga;
}

typedef struct amount {
    char text[32];
} amount;

static amount bytes_of(double bytes) {
    amount a;
    snprintf(a.text, sizeof a.text, bytes < giga ? "%.3f MB" : "%.3f GB",
             bytes < giga ? bytes / 1e6 : bytes / giga);
    return a;
}

static amount time_of(double seconds) {
    amount a;
    snprintf(a.text, sizeof a.text, seconds < 1 ? "%.2f ms" : "%.2f s",
             seconds < 1 ? 1e3 * seconds : seconds);
    return a;
}

/* ---- What there is ------------------------------------------------------------------------------
 */

static const char *origin(bool measured) {
    return measured ? "measured" : "as given";
}

static void print_disk(const cli_plan *p) {
    cli_print("drive       %.2f GB/s, %s\n", gb(p->rates.disk), origin(p->disk_measured));
    if (!p->disk_measured) return;
    const plumb_disk_rate *d = &p->disk;
    cli_print("            %" PRId64 " experts, %.3f GB in %.2f s, %d at a time, by %s\n",
              d->experts, gb((double)d->bytes), d->seconds, d->in_flight, d->reader);
    if (!d->uncached)
        cli_print("            through the page cache, so part of it may have come from memory\n");
    if (d->holes)
        cli_print(
            "            the files have holes, which no drive reads: the rate says nothing\n");
}

static void print_machine(const cli_plan *p) {
    const plumb_model_sizes *s = &p->sizes;
    cli_print("model       %s\n", p->model != NULL ? p->model : "the released geometry, on paper");
    cli_print("            dense %.3f GB; %s experts of %s bytes, %.3f GB; Engram %.3f GB\n",
              gb((double)s->dense_bytes), cli_grouped(plumb__model_pairs(s)).text,
              cli_grouped(s->expert_bytes).text, gb((double)s->experts_bytes),
              gb((double)s->engram_bytes));
    print_disk(p);
    cli_print("memory      %.3f GB, %s", gb((double)p->request.memory),
              p->memory_given ? "as given" : "of this machine");
    if (p->rates.memory > 0)
        cli_print("; %.1f GB/s, %s", gb(p->rates.memory), origin(p->memory_measured));
    cli_print("\n");
    if (p->request.device_memory > 0)
        cli_print("device      %.3f GB at %.1f GB/s, link %.1f GB/s, as given\n",
                  gb((double)p->request.device_memory), gb(p->rates.device), gb(p->rates.link));
    if (p->rates.compute > 0)
        cli_print("compute     %.2f TFLOPS, as given\n", p->rates.compute / tera);
}

static void print_share(const char *name, int64_t bytes) {
    cli_print("  %-18s%10.3f", name, gb((double)bytes));
}

static void print_slots(const plumb_speed_plan *plan, const char *name, int64_t slots) {
    print_share(name, slots * plan->budget.slot_bytes);
    cli_print("   %s of %s experts, %.1f %%\n", cli_grouped(slots).text,
              cli_grouped(plan->pairs).text, 100.0 * (double)slots / (double)plan->pairs);
}

static void print_budget(const plumb_speed_plan *plan) {
    const plumb_budget *b = &plan->budget;
    bool device = b->device_memory > 0;
    cli_print("\n%-20s%10s\n", device ? "device memory" : "memory", "GB");
    print_share(device ? "driver" : "operating system", device ? b->device_system : b->system);
    cli_print("\n");
    print_share("dense weights", b->dense);
    cli_print("\n");
    print_share("session", b->session);
    cli_print("   %s positions\n", cli_grouped(b->context).text);
    print_share("prefill chunk", b->work);
    cli_print("   %s rows\n", cli_grouped(b->chunk).text);
    print_slots(plan, "expert slots", b->slots);
    if (b->unused > 0) {
        print_share("not needed", b->unused);
        cli_print("\n");
    }
    if (!device) return;
    cli_print("%-20s%10s\n", "memory behind it", "GB");
    print_share("operating system", b->system);
    cli_print("\n");
    print_slots(plan, "expert slots", b->second_slots);
}

/* ---- Bounds -------------------------------------------------------------------------------------
 */

static void print_part(const char *name, double bytes, double rate, double seconds) {
    cli_print("  %-10s%14s%10.2f GB/s%14s\n", name, bytes_of(bytes).text, gb(rate),
              time_of(seconds).text);
}

static void print_bound(const cli_plan *p, const plumb_bound *b) {
    const plumb_cost *cost = &b->cost;
    bool device = p->rates.device > 0;
    print_part(device ? "device" : "memory", cost->memory_bytes,
               device ? p->rates.device : p->rates.memory, cost->memory_seconds);
    if (device) print_part("link", cost->link_bytes, p->rates.link, cost->link_seconds);
    print_part("drive", cost->disk_bytes, p->rates.disk, cost->disk_seconds);
    cli_print("  %-10s%8.3f TFLOP", "compute", cost->flop / tera);
    bool known = p->rates.compute > 0;
    if (known)
        cli_print("%8.2f TFLOPS%14s\n", p->rates.compute / tera,
                  time_of(cost->compute_seconds).text);
    else
        cli_print("   not bounded by compute here\n");
    /* Many rows a second from memory alone say nothing: arithmetic comes first. */
    if (!known && b->tokens > 1 && cost->memory_seconds > cost->disk_seconds + cost->link_seconds)
        cli_print("  tokens/s  compute decides: see --compute\n");
    else
        cli_print("  tokens/s  %.2f serial, %.2f overlapped\n", b->serial, b->overlapped);
}

static void print_mode(const cli_plan *p) {
    const plumb_speed_plan *plan = &p->plan;
    switch (plan->mode) {
    case PLUMB_PLAN_RESIDENT:
        cli_print("\nmode        resident: every expert has a slot, and is read once\n");
        break;
    case PLUMB_PLAN_CACHE: cli_print("\nmode        cache of experts\n"); break;
    case PLUMB_PLAN_LAYERS:
        cli_print("\nmode        layers: one token wants %s experts, more than there are slots, so "
                  "all are read\n",
                  cli_grouped(plumb__model_token_experts(&p->sizes)).text);
        return;
    }
    const char *source = p->has_routes ? "recorded routes" : "published curve";
    if (plan->budget.device_memory > 0)
        cli_print("hit rate    %.3f on the device, %.3f with the memory behind it (%s)\n",
                  plan->hits.computing, plan->hits.anywhere, source);
    else
        cli_print("hit rate    %.3f (%s)\n", plan->hits.anywhere, source);
}

static void print_bounds(const cli_plan *p) {
    const plumb_speed_plan *plan = &p->plan;
    cli_print("\ndecode: a token at position %s\n", cli_grouped(plan->budget.context - 1).text);
    print_bound(p, &plan->decode);
    cli_print("prefill: %s tokens, no expert in memory\n", cli_grouped(plan->cold_rows).text);
    print_bound(p, &plan->cold);
    cli_print("prefill: a chunk of %s tokens of a longer prompt, all its experts read\n",
              cli_grouped(plan->budget.chunk).text);
    print_bound(p, &plan->chunk);
    if (plan->kept.overlapped <= plan->chunk.overlapped) return;
    cli_print("prefill: the same, when slots keep from chunk to chunk what they can\n");
    print_bound(p, &plan->kept);
}

/* ---- Recorded routes
 * ------------------------------------------------------------------------------ */

static void print_routes(const plumb_recorded *r, const plumb_model_sizes *sizes) {
    const plumb_replay *first = &r->lru[0];
    cli_print("\nrecorded routes: %s tokens decoded, %s prefilled in %s batches; %s of %s experts "
              "used\n",
              cli_grouped(first->decode.tokens).text, cli_grouped(first->prefill.tokens).text,
              cli_grouped(first->prefill.batches).text, cli_grouped(first->distinct).text,
              cli_grouped(plumb__model_pairs(sizes)).text);
    cli_print("  %8s%18s%18s%18s%18s\n", "", "decode", "decode", "prefill", "prefill");
    cli_print("  %8s%18s%18s%18s%18s\n", "slots", plumb__eviction_name(PLUMB_EVICT_LRU),
              plumb__eviction_name(PLUMB_EVICT_AGE_OVER_USE), plumb__eviction_name(PLUMB_EVICT_LRU),
              plumb__eviction_name(PLUMB_EVICT_AGE_OVER_USE));
    for (int i = 0; i < r->n; i++) {
        const plumb_replay *of[] = {&r->lru[i], &r->age_over_use[i]};
        cli_print("  %8s", cli_grouped(of[0]->slots).text);
        for (int k = 0; k < 2; k++)
            cli_print("%8.3f %9.2f", plumb__replay_hit_rate(&of[k]->decode),
                      plumb__replay_misses(&of[k]->decode));
        for (int k = 0; k < 2; k++)
            cli_print("%8.3f %9.2f", plumb__replay_hit_rate(&of[k]->prefill),
                      plumb__replay_misses(&of[k]->prefill));
        cli_print("\n");
    }
    cli_print("  hit rate, misses a token; %s misses less at the slots of this plan\n",
              plumb__eviction_name(r->better));
}

/* ---- Changes
 * -------------------------------------------------------------------------------------- */

/* What decoding waits for. */
static void print_limit(const cli_plan *p) {
    const plumb_cost *c = &p->plan.decode.cost;
    double kernels =
        c->memory_seconds > c->compute_seconds ? c->memory_seconds : c->compute_seconds;
    double carried = c->link_seconds > c->disk_seconds ? c->link_seconds : c->disk_seconds;
    const char *carrier = c->link_seconds > c->disk_seconds ? "the link" : "the drive";
    const char *kernel = c->memory_seconds > c->compute_seconds ? "memory" : "arithmetic";
    bool waits = carried > kernels;
    cli_print("  Decoding is limited by %s: %s a token, against %s of %s.\n",
              waits ? carrier : kernel, time_of(waits ? carried : kernels).text,
              time_of(waits ? kernels : carried).text, waits ? kernel : carrier);
}

static void print_change(const plumb_change *change) {
    const plumb_speed_plan *after = &change->plan;
    switch (change->kind) {
    case PLUMB_CHANGE_CACHE:
        cli_print("  With %.1f GB of memory a cache holds one token's experts: %s slots",
                  gb(change->value), cli_grouped(after->slots).text);
        break;
    case PLUMB_CHANGE_MEMORY:
        cli_print("  With %.1f GB of memory: %s slots", gb(change->value),
                  cli_grouped(after->slots).text);
        break;
    case PLUMB_CHANGE_DISK: cli_print("  With a drive of %.2f GB/s", gb(change->value)); break;
    case PLUMB_CHANGE_CHUNK:
        cli_print("  With chunks of %s rows", cli_grouped((int64_t)change->value).text);
        break;
    }
    if (change->kind == PLUMB_CHANGE_CACHE || change->kind == PLUMB_CHANGE_MEMORY)
        cli_print(", hit rate %.3f", after->hits.anywhere);
    cli_print(": decode %.2f serial, %.2f overlapped; chunks %.1f", after->decode.serial,
              after->decode.overlapped, after->chunk.overlapped);
    /* What slots can keep from chunk to chunk soon leaves arithmetic to decide. */
    if (after->rates.compute > 0 && after->kept.overlapped > after->chunk.overlapped)
        cli_print(" to %.1f", after->kept.overlapped);
    cli_print(" tokens/s.\n");
}

void cli_plan_print(const cli_plan *p) {
    print_machine(p);
    print_budget(&p->plan);
    print_mode(p);
    print_bounds(p);
    if (p->has_routes) print_routes(&p->routes, &p->sizes);
    cli_print("\nto go faster\n");
    print_limit(p);
    for (int i = 0; i < p->n_changes; i++) print_change(&p->changes[i]);
}
