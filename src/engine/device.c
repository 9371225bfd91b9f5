#include "engine/device.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/metal/metal_backend.h"
#include "base/error.h"
#include "base/machine.h"

static plumb_status open_metal(plumb_model *model, const plumb_model_options *options,
                               plumb_error *err) {
    plumb_status status = plumb__metal_backend_create(&model->backend, err);
    if (status != PLUMB_OK) return status;
    model->cpu_level = NULL;
    plumb__model_log(options, PLUMB_LOG_INFO,
        plumb__format("metal: %s", plumb__metal_device_name(model->backend)).s);
    return PLUMB_OK;
}

static plumb_status open_cpu(plumb_model *model, const plumb_model_options *options,
                             plumb_error *err) {
    const char *level = plumb__machine_level_from_environment();
    plumb_status status =
        plumb__cpu_backend_create(model->threads, level ? level : options->cpu_level,
                                  &model->backend, &model->cpu_level, err);
    if (status != PLUMB_OK) return status;
    plumb__model_log(options, PLUMB_LOG_INFO,
        plumb__format("cpu: %s kernels, %d threads", model->cpu_level, model->threads).s);
    return PLUMB_OK;
}

plumb_status plumb__device_open(plumb_model *model, const plumb_model_options *options,
                                plumb_error *err) {
    if (options->device == PLUMB_DEVICE_METAL) return open_metal(model, options, err);
    if (options->device == PLUMB_DEVICE_BEST && plumb__metal_is_built()) {
        plumb_error why = {0};
        if (open_metal(model, options, &why) == PLUMB_OK) return PLUMB_OK;
        char line[1024];
        plumb_error_line(&why, line, sizeof line);
        plumb__model_log(options, PLUMB_LOG_WARNING, plumb__format("not on Metal: %s", line).s);
    }
    return open_cpu(model, options, err);
}
