#include "peer_ggml.h"

#include "made_weights.h"
#include "measure.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The part of ggml's API that is used --------------------------------------------------- */

enum { GGML_F32 = 0, GGML_Q8_0 = 8, GGML_BF16 = 30, GGML_MXFP4 = 39 };

typedef struct ggml_memory { /* the argument of ggml_init */
    size_t bytes;
    void *memory;
    bool metadata_only;
} ggml_memory;

/* All handles of ggml are opaque here. */
typedef void *(*ggml_init_fn)(ggml_memory);
typedef void (*ggml_on_handle)(void *);
typedef void *(*ggml_handle_of)(void *);
typedef void *(*ggml_tensor_2d_fn)(void *context, int type, int64_t k, int64_t n);
typedef void *(*ggml_two_fn)(void *, void *);
typedef void *(*ggml_three_fn)(void *, void *, void *);
typedef void *(*ggml_graph_fn)(void *context, size_t nodes, bool gradients);
typedef void (*ggml_expand_fn)(void *graph, void *tensor);
typedef void (*ggml_set_fn)(void *tensor, const void *data, size_t offset, size_t size);
typedef int (*ggml_compute_fn)(void *backend, void *graph);
typedef void *(*ggml_device_fn)(void *registry, size_t index);
typedef void *(*ggml_address_fn)(void *registry, const char *name);
typedef bool (*ggml_supports_fn)(void *device, void *tensor);
typedef size_t (*ggml_quantize_fn)(int type, const float *from, void *to, int64_t first,
                                   int64_t rows, int64_t k, const float *importance);
typedef size_t (*ggml_row_size_fn)(int type, int64_t k);
typedef size_t (*ggml_size_fn)(void);
typedef void (*ggml_log_fn)(int level, const char *text, void *user);
typedef void (*ggml_log_set_fn)(ggml_log_fn log, void *user);
typedef void *(*ggml_registry_fn)(void);
typedef int (*ggml_score_fn)(void);
typedef void (*ggml_threads_fn)(void *backend, int threads);
typedef void **(*ggml_buffer_types_fn)(void *device);
typedef const char *(*ggml_name_fn)(void *);

typedef struct ggml_api {
    ggml_init_fn init;
    ggml_on_handle free;
    ggml_tensor_2d_fn new_tensor_2d;
    ggml_three_fn mul_mat;
    ggml_graph_fn new_graph;
    ggml_expand_fn expand;
    ggml_two_fn allocate; /* all tensors of a context in one buffer of a type */
    ggml_on_handle buffer_free;
    ggml_name_fn buffer_type_name;
    ggml_set_fn tensor_set;
    ggml_compute_fn compute;
    ggml_device_fn device;
    ggml_address_fn address;
    ggml_two_fn device_init;
    ggml_handle_of device_buffer_type;
    ggml_supports_fn supports;
    ggml_on_handle backend_free;
    ggml_quantize_fn quantize;
    ggml_row_size_fn row_size;
    ggml_size_fn tensor_overhead;
    ggml_log_set_fn log_set;
} ggml_api;

/* A data pointer's bits as a function pointer: what dlsym is for, and ISO C has no words for. */
static bool find_function(void *library, const char *name, void *function) {
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static bool bind_api(void *base, ggml_api *api) {
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"ggml_init", &api->init},
        {"ggml_free", &api->free},
        {"ggml_new_tensor_2d", &api->new_tensor_2d},
        {"ggml_mul_mat", &api->mul_mat},
        {"ggml_new_graph_custom", &api->new_graph},
        {"ggml_build_forward_expand", &api->expand},
        {"ggml_backend_alloc_ctx_tensors_from_buft", &api->allocate},
        {"ggml_backend_buffer_free", &api->buffer_free},
        {"ggml_backend_buft_name", &api->buffer_type_name},
        {"ggml_backend_tensor_set", &api->tensor_set},
        {"ggml_backend_graph_compute", &api->compute},
        {"ggml_backend_reg_dev_get", &api->device},
        {"ggml_backend_reg_get_proc_address", &api->address},
        {"ggml_backend_dev_init", &api->device_init},
        {"ggml_backend_dev_buffer_type", &api->device_buffer_type},
        {"ggml_backend_dev_supports_op", &api->supports},
        {"ggml_backend_free", &api->backend_free},
        {"ggml_quantize_chunk", &api->quantize},
        {"ggml_row_size", &api->row_size},
        {"ggml_tensor_overhead", &api->tensor_overhead},
        {"ggml_log_set", &api->log_set},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!find_function(base, wanted[i].name, wanted[i].function)) {
            fprintf(stderr, "peer: libggml-base has no %s\n", wanted[i].name);
            return false;
        }
    return true;
}

/* ---- Products ------------------------------------------------------------------------------- */

enum { MAX_BUFFER_TYPES = 8, MADE_ROWS = 64 };

struct bench_peer {
    ggml_api api;
    void *base, *library; /* dlopen's handles */
    char level[64];
    void *backend, *device;
    ggml_threads_fn set_threads;
    void *buffer_type[MAX_BUFFER_TYPES]; /* the plain one first */
    int buffer_types;
};

struct bench_peer_product {
    bench_peer *peer;
    int threads;
    char name[64];
    int64_t bytes;
    void *weight_context, *context; /* ggml's: of the weights, of everything else */
    void *weight_buffer, *buffer;
    void *graph;
};

static int peer_type(plumb_matrix_type type, const char **name) {
    switch (type) {
    case PLUMB_MATRIX_FP4: *name = "MXFP4"; return GGML_MXFP4;
    case PLUMB_MATRIX_FP8: *name = "Q8_0"; return GGML_Q8_0;
    case PLUMB_MATRIX_BF16: *name = "BF16"; return GGML_BF16;
    case PLUMB_MATRIX_F32: break;
    }
    *name = "F32";
    return GGML_F32;
}

void bench_peer_product_destroy(bench_peer_product *p) {
    if (!p) return;
    const ggml_api *api = &p->peer->api;
    if (p->weight_buffer) api->buffer_free(p->weight_buffer);
    if (p->buffer) api->buffer_free(p->buffer);
    if (p->weight_context) api->free(p->weight_context);
    if (p->context) api->free(p->context);
    free(p);
}

void bench_peer_product_run(bench_peer_product *p) {
    p->peer->set_threads(p->peer->backend, p->threads);
    (void)p->peer->api.compute(p->peer->backend, p->graph);
}

const char *bench_peer_product_name(const bench_peer_product *p) { return p->name; }
int64_t bench_peer_product_bytes(const bench_peer_product *p) { return p->bytes; }

/* A few random rows in ggml's format, over and over: its speed does not depend on values. */
static bool set_random(const ggml_api *api, void *const *tensors, int64_t count, int type,
                       int64_t rows, int64_t k) {
    size_t row_bytes = api->row_size(type, k);
    bench_random random = {0};
    float *values = malloc((size_t)(MADE_ROWS * k) * sizeof *values);
    uint8_t *made = malloc(MADE_ROWS * row_bytes), *whole = malloc((size_t)rows * row_bytes);
    bool done = values && made && whole && bench_random_open(&random);
    if (done) {
        bench_draw_floats(&random, 0, 1, values, MADE_ROWS * k);
        (void)api->quantize(type, values, made, 0, MADE_ROWS, k, NULL);
        for (int64_t r = 0; r < rows; r++)
            memcpy(whole + (size_t)r * row_bytes, made + (size_t)(r % MADE_ROWS) * row_bytes,
                   row_bytes);
        for (int64_t i = 0; i < count; i++)
            api->tensor_set(tensors[i], whole, 0, (size_t)rows * row_bytes);
    }
    bench_random_close(&random);
    free(values);
    free(made);
    free(whole);
    return done;
}

/* Weights of `buffer_type`, the graph over all copies.  False where that type of memory does not
 * do this product. */
static bool build(bench_peer_product *p, void *buffer_type, int type, int64_t n, int64_t k,
                  int64_t tokens, int64_t copies) {
    const ggml_api *api = &p->peer->api;
    size_t nodes = 2 * (size_t)copies + 8;
    /* Room for the tensors' descriptions and for the graph's arrays, generously. */
    size_t room = nodes * (api->tensor_overhead() + 256) + 65536;
    p->weight_context = api->init((ggml_memory){.bytes = room, .metadata_only = true});
    p->context = api->init((ggml_memory){.bytes = room, .metadata_only = true});
    void **weights = calloc((size_t)copies, sizeof *weights);
    bool built = false;
    if (!p->weight_context || !p->context || !weights) goto done;
    for (int64_t i = 0; i < copies; i++)
        weights[i] = api->new_tensor_2d(p->weight_context, type, k, n);
    void *x = api->new_tensor_2d(p->context, GGML_F32, k, tokens), *y = NULL;
    p->graph = api->new_graph(p->context, nodes, false);
    for (int64_t i = 0; i < copies; i++) {
        y = api->mul_mat(p->context, weights[i], x);
        api->expand(p->graph, y);
    }
    p->weight_buffer = api->allocate(p->weight_context, buffer_type);
    p->buffer = api->allocate(p->context, p->peer->buffer_type[0]);
    if (!p->weight_buffer || !p->buffer || !api->supports(p->peer->device, y)) goto done;
    built = set_random(api, weights, copies, type, n, k) &&
            set_random(api, &x, 1, GGML_F32, tokens, k);
    p->bytes = copies * n * (int64_t)api->row_size(type, k);
done:
    free(weights);
    return built;
}

static double quickest_of_two(bench_peer_product *p) {
    double best = 0;
    for (int run = 0; run < 3; run++) { /* the first warms up */
        double start = bench_now();
        bench_peer_product_run(p);
        double taken = bench_now() - start;
        if (run == 1 || (run == 2 && taken < best)) best = taken;
    }
    return best;
}

bench_peer_product *bench_peer_product_create(bench_peer *peer, plumb_matrix_type type, int64_t n,
                                              int64_t k, int64_t tokens, int64_t copies,
                                              int threads) {
    bench_peer_product *best = NULL;
    double best_seconds = 0;
    const char *type_name;
    int ggml_type = peer_type(type, &type_name);
    for (int i = 0; i < peer->buffer_types; i++) {
        bench_peer_product *p = calloc(1, sizeof *p);
        if (!p) break;
        p->peer = peer;
        p->threads = threads;
        (void)snprintf(p->name, sizeof p->name, "%s%s", type_name, i == 0 ? "" : " repacked");
        double seconds =
            build(p, peer->buffer_type[i], ggml_type, n, k, tokens, copies) ? quickest_of_two(p) : -1;
        if (seconds >= 0 && (!best || seconds < best_seconds)) {
            bench_peer_product_destroy(best);
            best = p;
            best_seconds = seconds;
        } else {
            bench_peer_product_destroy(p);
        }
    }
    return best;
}

/* ---- Levels --------------------------------------------------------------------------------- */

static void ignore_log(int level, const char *text, void *user) {
    (void)level;
    (void)text;
    (void)user;
}

static void close_level(bench_peer *peer) {
    if (peer->backend) peer->api.backend_free(peer->backend);
    if (peer->library) (void)dlclose(peer->library);
    peer->backend = peer->library = NULL;
}

/* Opens one library as a level; false where this machine cannot run it. */
static bool open_level(bench_peer *peer, const char *path) {
    ggml_score_fn score;
    ggml_registry_fn registry_of;
    peer->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!peer->library || !find_function(peer->library, "ggml_backend_score", &score) ||
        score() == 0 || !find_function(peer->library, "ggml_backend_init", &registry_of))
        return false;
    void *registry = registry_of();
    peer->device = peer->api.device(registry, 0);
    peer->backend = peer->api.device_init(peer->device, NULL);
    void *address = peer->api.address(registry, "ggml_backend_set_n_threads");
    if (!peer->backend || !address) return false;
    memcpy(&peer->set_threads, &address, sizeof address);
    peer->buffer_types = 0;
    peer->buffer_type[peer->buffer_types++] = peer->api.device_buffer_type(peer->device);
    address = peer->api.address(registry, "ggml_backend_dev_get_extra_bufts");
    if (address) {
        ggml_buffer_types_fn extra;
        memcpy(&extra, &address, sizeof address);
        for (void **type = extra(peer->device); type && *type; type++)
            if (peer->buffer_types < MAX_BUFFER_TYPES)
                peer->buffer_type[peer->buffer_types++] = *type;
    }
    return true;
}

/* One token and many tokens through experts, as times to be multiplied. */
static double try_level(bench_peer *peer) {
    static const int64_t tokens[] = {1, 64};
    double product = 1;
    for (int i = 0; i < 2; i++) {
        bench_peer_product *p = bench_peer_product_create(peer, PLUMB_MATRIX_FP4, 2304, 5120,
                                                          tokens[i], i == 0 ? 8 : 1, 1);
        product *= p ? quickest_of_two(p) : 1e9;
        bench_peer_product_destroy(p);
    }
    return product;
}

static bool is_level(const char *name) {
    return !strncmp(name, "libggml-cpu", 11) &&
           (strstr(name, ".so") != NULL || strstr(name, ".dylib") != NULL);
}

static void name_level(const char *file, char *level, size_t size) {
    const char *name = file + strlen("libggml-cpu");
    if (*name == '-') name++;
    (void)snprintf(level, size, "%.*s", (int)strcspn(name, "."), name);
}

/* The fastest level's library into `best`; false when none runs. */
static bool choose_level(bench_peer *peer, const char *folder, char *best, size_t size) {
    DIR *entries = opendir(folder);
    double best_time = 0;
    bool found = false;
    for (struct dirent *e; entries && (e = readdir(entries));) {
        char path[4096];
        if (!is_level(e->d_name)) continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (open_level(peer, path)) {
            double taken = try_level(peer);
            if (!found || taken < best_time) {
                best_time = taken;
                found = true;
                (void)snprintf(best, size, "%s", path);
                name_level(e->d_name, peer->level, sizeof peer->level);
            }
        }
        close_level(peer);
    }
    if (entries) (void)closedir(entries);
    return found;
}

static void *open_base(const char *folder) {
    static const char *const suffix[] = {"so", "dylib"};
    void *base = NULL;
    for (int i = 0; i < 2 && !base; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/libggml-base.%s", folder, suffix[i]);
        base = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    return base;
}

bench_peer *bench_peer_open(const char *folder) {
    char path[4096];
    bench_peer *peer = calloc(1, sizeof *peer);
    if (!peer) return NULL;
    peer->base = open_base(folder);
    if (!peer->base) fprintf(stderr, "peer: %s: no libggml-base to open there\n", folder);
    else if (bind_api(peer->base, &peer->api)) {
        peer->api.log_set(ignore_log, NULL);
        if (choose_level(peer, folder, path, sizeof path) && open_level(peer, path)) return peer;
        fprintf(stderr, "peer: %s: no libggml-cpu there that this machine can run\n", folder);
    }
    bench_peer_close(peer);
    return NULL;
}

void bench_peer_close(bench_peer *peer) {
    if (!peer) return;
    close_level(peer);
    if (peer->base) (void)dlclose(peer->base);
    free(peer);
}

const char *bench_peer_level(const bench_peer *peer) { return peer->level; }
