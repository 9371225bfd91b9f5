/* plumb plan: what a machine will do with a model.  Measures what is not given, and leaves the
 * arithmetic to src/plan and the words to plan_report.c and plan_json.c. */
#include "cli/commands.h"

#include "base/machine.h"
#include "cli/model_lookup.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "synth/variants.h"

static const double giga = 1e9, tera = 1e12;

/* ---- What was asked ---------------------------------------------------------------------------
 */

static int check_options(const cli_options *o) {
    if (o->n_arguments > 0 && o->model != NULL) {
        cli_complain(o, "found '%s' and -m %s, expected one model", o->arguments[0], o->model);
        return CLI_USAGE;
    }
    int device = (o->device_memory > 0) + (o->device_rate > 0) + (o->link_rate > 0);
    if (device != 0 && device != 3) {
        cli_complain(o, "--device-memory, --device-rate and --link-rate belong together");
        return CLI_USAGE;
    }
    bool paper = o->n_arguments == 0 && o->model == NULL;
    if (paper && (o->disk_rate <= 0 || (o->memory_rate <= 0 && device == 0))) {
        cli_complain(o, "a plan without MODEL needs --disk-rate, and --memory-rate or a device");
        return CLI_USAGE;
    }
    return CLI_OK;
}

static void released_sizes(plumb_model_sizes *sizes) {
    plumb_synth_options whole = {.variant = PLUMB_SYNTH_RELEASE};
    plumb_model_config shape;
    plumb__variant_shape(&whole, &shape);
    plumb__model_sizes(&shape, sizes);
}

static void take_options(const cli_options *o, cli_plan *p) {
    p->memory_given = o->memory > 0;
    p->request = (plumb_budget_request){.memory = p->memory_given ? o->memory
                                                                  : plumb__machine_memory_bytes(),
                                        .device_memory = o->device_memory,
                                        .context = o->context,
                                        .chunk = o->chunk};
    p->rates = (plumb_rates){.disk = o->disk_rate * giga,
                             .memory = o->memory_rate * giga,
                             .device = o->device_rate * giga,
                             .link = o->link_rate * giga,
                             .compute = o->compute * tera};
}

/* ---- What is measured ---------------------------------------------------------------------------
 */

static plumb_status measure(const cli_options *o, const plumb_checkpoint *checkpoint, cli_plan *p,
                            plumb_error *err) {
    const double disk_seconds = 1.5, memory_seconds = 0.5;
    plumb_status status = PLUMB_OK;
    if (p->rates.disk <= 0) {
        status = plumb__measure_disk(checkpoint, disk_seconds, &p->disk, err);
        p->disk_measured = true;
        p->rates.disk = p->disk.bytes_per_second;
    }
    if (status == PLUMB_OK && p->rates.memory <= 0) {
        int threads = o->threads > 0 ? (int)o->threads : plumb__machine_cores();
        p->memory_measured = true;
        status = plumb__measure_memory(threads, memory_seconds, &p->rates.memory, err);
    }
    return status;
}

static plumb_status make_plan(const cli_options *o, cli_plan *p, plumb_error *err) {
    plumb_hit_curve curve = plumb__hit_curve_published();
    plumb_status status =
        plumb__speed_plan_make(&p->sizes, &p->request, &p->rates, &curve, &p->plan, err);
    if (status == PLUMB_OK && o->trace != NULL) {
        p->has_routes = true;
        status = plumb__recorded_open(o->trace, &p->sizes, &p->plan.budget, &p->routes, err);
        if (status != PLUMB_OK) return status;
        curve = p->routes.curve;
        status = plumb__speed_plan_make(&p->sizes, &p->request, &p->rates, &curve, &p->plan, err);
    }
    if (status == PLUMB_OK)
        p->n_changes = plumb__speed_plan_changes(&p->sizes, &p->request, &p->rates, &curve,
                                                 &p->plan, p->changes);
    return status;
}

/* ---- The command ---------------------------------------------------------------------------- */

int cli_run_plan(const cli_options *options) {
    int result = check_options(options);
    if (result != CLI_OK) return result;
    cli_options named = *options;
    if (options->n_arguments > 0) named.model = options->arguments[0];
    char path[CLI_PATH_SIZE];
    plumb_checkpoint *checkpoint = NULL;
    plumb_error err;
    plumb_status status = PLUMB_OK;
    cli_plan plan = {.model = NULL};
    take_options(options, &plan);
    if (named.model != NULL) {
        status = cli_find_model(&named, path, &err);
        if (status == PLUMB_OK)
            status = plumb__checkpoint_open(path, cli_log, &named, &checkpoint, &err);
        if (status == PLUMB_OK) {
            plan.model = plumb__checkpoint_path(checkpoint);
            plumb__model_sizes(plumb__checkpoint_config(checkpoint), &plan.sizes);
            status = measure(options, checkpoint, &plan, &err);
        }
    } else {
        released_sizes(&plan.sizes);
    }
    if (status == PLUMB_OK) status = make_plan(options, &plan, &err);
    if (status != PLUMB_OK)
        result = cli_report(options, &err);
    else if (!options->json)
        cli_plan_print(&plan);
    else if (!cli_plan_print_json(&plan)) {
        cli_complain(options, "no memory for the report");
        result = CLI_FAILED;
    }
    plumb__checkpoint_close(checkpoint);
    return result;
}
