/* Kernels reach the payloads of experts by addresses in tables (arguments.h): memory that no
 * binding keeps alive or makes resident. */
#include <stdio.h>
#include <string.h>

#import "fake_queue.h"
#import "fake_run.h"

#include "backend/metal/kernels/arguments.h"

typedef struct search {
    FakeCommandBuffer *buffer;
    char *fault;
} search;

static bool check_address(const search *s, uint64_t address) {
    if (!address) return true; /* not in memory: the kernel halts the queue */
    fake_lock();
    FakeBuffer *reached = fake_buffer_at(address);
    bool resident = reached && [s->buffer->queue hasResident:reached at:s->buffer->committed_at];
    if (reached) [s->buffer reach:reached];
    fake_unlock();
    if (!reached)
        snprintf(s->fault, EMULATED_FAULT_BYTES,
                 "a table has an address that lies in no live buffer");
    else if (!resident)
        snprintf(s->fault, EMULATED_FAULT_BYTES,
                 "a table has the address of a buffer that was in no committed residency set of "
                 "the queue");
    return resident;
}

static bool check_expert(const search *s, const plumb_metal_expert *expert) {
    const uint64_t addresses[6] = {expert->gate_codes,  expert->gate_scales, expert->down_codes,
                                   expert->down_scales, expert->up_codes,    expert->up_scales};
    for (int i = 0; i < 6; i++) {
        if (!check_address(s, addresses[i])) return false;
    }
    return true;
}

static bool check_experts(const search *s, const fake_binding *binding, int64_t count) {
    for (int64_t i = 0;
         i < count && (i + 1) * (int64_t)sizeof(plumb_metal_expert) <= fake_bound_bytes(binding);
         i++) {
        plumb_metal_expert expert;
        memcpy(&expert, fake_bound_start(binding) + (size_t)i * sizeof expert, sizeof expert);
        if (!check_expert(s, &expert)) return false;
    }
    return true;
}

/* What an unused group holds is nobody's business. */
static bool check_groups(const search *s, const fake_binding *binding, int64_t count) {
    for (int64_t i = 0;
         i < count && (i + 1) * (int64_t)sizeof(plumb_metal_group) <= fake_bound_bytes(binding);
         i++) {
        plumb_metal_group group;
        memcpy(&group, fake_bound_start(binding) + (size_t)i * sizeof group, sizeof group);
        if (group.count > 0 && !check_expert(s, &group.expert)) return false;
    }
    return true;
}

bool fake_check_addresses(FakeCommandBuffer *buffer, const fake_dispatch *dispatch,
                          char fault[EMULATED_FAULT_BYTES]) {
    static const struct {
        const char *kernel;
        int groups; /* the index of the list of groups */
    } readers[] = {{"experts_gate_up", 3}, {"experts_activate", 4}, {"experts_down", 3}};
    const search s = {buffer, fault};
    const char *name = dispatch->pipeline->kernel->name;
    plumb_metal_control control;
    if (fake_bound_bytes(&dispatch->binding[0]) < (int64_t)sizeof control) return true;
    memcpy(&control, fake_bound_start(&dispatch->binding[0]), sizeof control);
    if (control.halted) return true; /* the kernel does nothing, and its groups are not written */
    if (!strcmp(name, "group_experts")) {
        plumb_metal_group_experts args;
        memcpy(&args, fake_bound_start(&dispatch->binding[1]), sizeof args);
        return check_experts(&s, &dispatch->binding[4], args.experts) &&
               check_experts(&s, &dispatch->binding[5], 1);
    }
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (!strcmp(name, readers[i].kernel)) {
            return check_groups(&s, &dispatch->binding[readers[i].groups], dispatch->groups[2]);
        }
    }
    return true;
}
