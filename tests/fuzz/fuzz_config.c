/* config.json from anywhere: a config that loads must also be safe to compute sizes with. */
#include "format/tensor_table.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct totals {
    const plumb_model_config *config;
    int64_t bytes, visited;
} totals;

/* Sums must not overflow (the sanitizer watches), names must be found again. */
static int add(void *user, const char *name, const plumb_tensor_spec *spec) {
    totals *t = user;
    plumb_tensor_spec found;
    t->bytes += spec->bytes;
    if (spec->bytes <= 0 ||
        plumb__tensor_table_find(t->config, name, &found) != PLUMB_TENSOR_NEEDED)
        abort();
    return ++t->visited > 20000; /* a million experts are legal and slow */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    plumb_model_config config;
    plumb_error err;
    plumb_status status =
        plumb__config_parse((const char *)data, size, "config.json", NULL, NULL, &config, &err);
    if (status == PLUMB_OK) {
        totals t = {.config = &config};
        (void)plumb__tensor_table_visit(&config, add, &t);
    } else if (err.status != status || !err.field[0] || !err.found[0]) {
        abort();
    }
    return 0;
}
