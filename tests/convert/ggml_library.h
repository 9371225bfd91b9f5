/* ggml itself, as a reader of our files: the part of its public C API that opens a GGUF file and
 * turns stored numbers into float32, in a prebuilt libggml-base that is loaded at run time.  Nothing
 * of ggml is needed to build.
 *
 * The declarations state what gguf.h and ggml.h of ggml 0.23 publish.  They are our own words for a
 * binary interface, so ggml_library_open compares what can be compared: the table of types, whose
 * layout is declared here, must say what the functions of the same library say. */
#ifndef PLUMB_TESTS_GGML_LIBRARY_H
#define PLUMB_TESTS_GGML_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*ggml_to_float)(const void *stored, float *values, int64_t n);

typedef struct ggml_type_traits {
    const char *type_name;
    int64_t block_elements, block_elements_interleaved;
    size_t block_bytes;
    bool is_quantized;
    ggml_to_float to_float; /* NULL where elements are no numbers to be decoded: F32, I8 */
    void (*from_float)(const float *values, void *stored, int64_t n);
} ggml_type_traits;

typedef struct gguf_init_params {
    bool metadata_only;
    void **tensors; /* receives a ggml context with every tensor and its payload */
} gguf_init_params;

enum { GGML_DIMS = 4 };

/* The functions bear ggml's names; a file (gguf), a context and a tensor are opaque. */
typedef struct ggml_library {
    void *handle;
    const char *(*ggml_version)(void);
    const char *(*ggml_commit)(void);
    const char *(*ggml_type_name)(int type);
    int64_t (*ggml_blck_size)(int type);
    size_t (*ggml_type_size)(int type);
    const ggml_type_traits *(*ggml_get_type_traits)(int type);
    void *(*ggml_get_tensor)(void *context, const char *name);
    void *(*ggml_get_data)(const void *tensor);
    void (*ggml_free)(void *context);
    void *(*gguf_init_from_file)(const char *path, gguf_init_params params);
    void (*gguf_free)(void *gguf);
    uint32_t (*gguf_get_version)(const void *gguf);
    size_t (*gguf_get_alignment)(const void *gguf);
    int64_t (*gguf_get_n_tensors)(const void *gguf);
    int64_t (*gguf_find_tensor)(const void *gguf, const char *name); /* -1: absent */
    const char *(*gguf_get_tensor_name)(const void *gguf, int64_t tensor);
    int (*gguf_get_tensor_type)(const void *gguf, int64_t tensor);
    size_t (*gguf_get_tensor_size)(const void *gguf, int64_t tensor);
    const int64_t *(*gguf_get_tensor_ne)(const void *gguf, int64_t tensor); /* [GGML_DIMS] */
} ggml_library;

/* False after a message on stderr.  ggml_library_close in any case. */
bool ggml_library_open(ggml_library *library, const char *path);
void ggml_library_close(ggml_library *library);

#endif
