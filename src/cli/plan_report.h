/* What `plumb plan` found out, and its two ways of printing it. */
#ifndef PLUMB_CLI_PLAN_REPORT_H
#define PLUMB_CLI_PLAN_REPORT_H

#include "cli/options.h"
#include "plan/machine.h"
#include "plan/speed_plan.h"
#include "plan/recorded.h"

typedef struct cli_plan {
    const char *model; /* its folder, or NULL: the released geometry, on paper */
    plumb_model_sizes sizes;
    plumb_budget_request request;
    plumb_rates rates;
    bool memory_given, disk_measured, memory_measured;
    plumb_disk_rate disk; /* when measured */
    plumb_speed_plan plan;
    plumb_change changes[PLUMB_CHANGES];
    int n_changes;
    bool has_routes;
    plumb_recorded routes;
} cli_plan;

void cli_plan_print(const cli_plan *p);
/* One JSON object with every number that the text shows; false without memory for it. */
bool cli_plan_print_json(const cli_plan *p);

#endif
