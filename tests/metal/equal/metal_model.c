#include "metal/equal/metal_model.h"

plumb_model *metal_model_open(const specimen *s, plumb_device device, plumb_model_options options) {
    plumb_model *model = NULL;
    plumb_error err;
    options.device = device;
    specimen_must(plumb_model_open(s->folder, &options, &model, &err), &err, s->name);
    return model;
}

float *metal_reference(const specimen *s) {
    float *logits = specimen_logits(s);
    plumb_model *model = metal_model_open(s, PLUMB_DEVICE_CPU, (plumb_model_options){.threads = 1});
    plumb_session *session = specimen_session(model, s->count);
    specimen_advance(s, session, s->count, logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
    return logits;
}
