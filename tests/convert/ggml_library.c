#include "ggml_library.h"

#include "format/gguf.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static bool bind(ggml_library *library) {
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"ggml_version", &library->ggml_version},
        {"ggml_commit", &library->ggml_commit},
        {"ggml_type_name", &library->ggml_type_name},
        {"ggml_blck_size", &library->ggml_blck_size},
        {"ggml_type_size", &library->ggml_type_size},
        {"ggml_get_type_traits", &library->ggml_get_type_traits},
        {"ggml_get_tensor", &library->ggml_get_tensor},
        {"ggml_get_data", &library->ggml_get_data},
        {"ggml_free", &library->ggml_free},
        {"gguf_init_from_file", &library->gguf_init_from_file},
        {"gguf_free", &library->gguf_free},
        {"gguf_get_version", &library->gguf_get_version},
        {"gguf_get_alignment", &library->gguf_get_alignment},
        {"gguf_get_n_tensors", &library->gguf_get_n_tensors},
        {"gguf_find_tensor", &library->gguf_find_tensor},
        {"gguf_get_tensor_name", &library->gguf_get_tensor_name},
        {"gguf_get_tensor_type", &library->gguf_get_tensor_type},
        {"gguf_get_tensor_size", &library->gguf_get_tensor_size},
        {"gguf_get_tensor_ne", &library->gguf_get_tensor_ne},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        /* A data pointer's bits as a function pointer: what dlsym is for, and ISO C has no words
         * for. */
        void *address = dlsym(library->handle, wanted[i].name);
        memcpy(wanted[i].function, &address, sizeof address);
        if (!address) {
            fprintf(stderr, "the library has no %s\n", wanted[i].name);
            return false;
        }
    }
    return true;
}

/* Is the layout of ggml_type_traits this library's?  Its members against the functions that return
 * the same facts, and against what the published formats are. */
static bool check_traits(const ggml_library *library) {
    static const struct {
        int type;
        const char *name;
        int64_t elements;
        size_t bytes;
        bool quantized, decodes;
    } known[] = {
        {PLUMB_GGML_F32, "f32", 1, 4, false, false},
        {PLUMB_GGML_I8, "i8", 1, 1, false, false},
        {PLUMB_GGML_BF16, "bf16", 1, 2, false, true},
        {PLUMB_GGML_MXFP4, "mxfp4", 32, 17, true, true},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const ggml_type_traits *traits = library->ggml_get_type_traits(known[i].type);
        if (traits->type_name != library->ggml_type_name(known[i].type) ||
            traits->block_elements != library->ggml_blck_size(known[i].type) ||
            traits->block_bytes != library->ggml_type_size(known[i].type) ||
            strcmp(traits->type_name, known[i].name) != 0 ||
            traits->block_elements != known[i].elements || traits->block_bytes != known[i].bytes ||
            traits->is_quantized != known[i].quantized ||
            (traits->to_float != NULL) != known[i].decodes) {
            fprintf(stderr,
                    "ggml %s: type %s is not as published, or its table has another layout\n",
                    library->ggml_version(), known[i].name);
            return false;
        }
    }
    return true;
}

bool ggml_library_open(ggml_library *library, const char *path) {
    *library = (ggml_library){.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!library->handle) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    return bind(library) && check_traits(library);
}

void ggml_library_close(ggml_library *library) {
    if (library->handle) (void)dlclose(library->handle);
    library->handle = NULL;
}
