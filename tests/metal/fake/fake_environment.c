/* For a whole program that uses the fake Metal: PLUMB_FAKE_METAL says what differs from the
 * defaults, as NAME=VALUE,NAME=VALUE with the names of fake_metal_options, and what validation
 * objected to is printed when the program ends, which then fails. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_metal.h"

enum { USAGE = 98, OBJECTIONS = 99, TEXT_BYTES = 1024 };

typedef enum { NUMBER, FLAG, TEXT } kind;

static const struct {
    const char *name;
    kind kind;
    size_t offset;
} fields[] = {
    {"seed", NUMBER, offsetof(fake_metal_options, seed)},
    {"delay_us_min", NUMBER, offsetof(fake_metal_options, delay_us_min)},
    {"delay_us_max", NUMBER, offsetof(fake_metal_options, delay_us_max)},
    {"absent", FLAG, offsetof(fake_metal_options, absent)},
    {"name", TEXT, offsetof(fake_metal_options, name)},
    {"metal3", FLAG, offsetof(fake_metal_options, metal3)},
    {"apple_family", NUMBER, offsetof(fake_metal_options, apple_family)},
    {"unified_memory", FLAG, offsetof(fake_metal_options, unified_memory)},
    {"residency_sets", FLAG, offsetof(fake_metal_options, residency_sets)},
    {"working_set_bytes", NUMBER, offsetof(fake_metal_options, working_set_bytes)},
    {"max_buffer_bytes", NUMBER, offsetof(fake_metal_options, max_buffer_bytes)},
    {"threadgroup_bytes", NUMBER, offsetof(fake_metal_options, threadgroup_bytes)},
    {"max_threads", NUMBER, offsetof(fake_metal_options, max_threads)},
    {"memory_bytes", NUMBER, offsetof(fake_metal_options, memory_bytes)},
    {"fail_commit", NUMBER, offsetof(fake_metal_options, fail_commit)},
    {"fail_code", NUMBER, offsetof(fake_metal_options, fail_code)},
    {"fail_signals", FLAG, offsetof(fake_metal_options, fail_signals)},
    {"compile_error", TEXT, offsetof(fake_metal_options, compile_error)},
    {"compiler_is_strict", FLAG, offsetof(fake_metal_options, compiler_is_strict)},
    {"missing_kernel", TEXT, offsetof(fake_metal_options, missing_kernel)},
    {"refused_kernel", TEXT, offsetof(fake_metal_options, refused_kernel)},
    {"wrong_kernel", TEXT, offsetof(fake_metal_options, wrong_kernel)},
    {"wrong_bit", NUMBER, offsetof(fake_metal_options, wrong_bit)},
};

/* `value` must stay. */
static void set(fake_metal_options *options, const char *name, const char *value) {
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(fields[i].name, name)) continue;
        char *field = (char *)options + fields[i].offset;
        int64_t number = strtoll(value, NULL, 0);
        bool flag = number != 0;
        if (fields[i].kind == NUMBER)
            memcpy(field, &number, sizeof number);
        else if (fields[i].kind == FLAG)
            memcpy(field, &flag, sizeof flag);
        else
            memcpy(field, &value, sizeof value);
        return;
    }
    fprintf(stderr, "PLUMB_FAKE_METAL: there is no option %s\n", name);
    _exit(USAGE);
}

__attribute__((constructor)) static void configure(void) {
    static char text[TEXT_BYTES]; /* values are kept by pointer */
    const char *wishes = getenv("PLUMB_FAKE_METAL");
    if (!wishes) return;
    snprintf(text, sizeof text, "%s", wishes);
    fake_metal_options options = fake_metal_defaults();
    char *rest;
    for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(item, '=');
        if (value) *value++ = 0;
        set(&options, item, value ? value : "1");
    }
    fake_metal_configure(&options);
}

__attribute__((destructor)) static void report(void) {
    for (int i = 0; i < fake_metal_errors(); i++) {
        fprintf(stderr, "Metal validation: %s\n", fake_metal_error(i));
    }
    fflush(NULL);
    if (fake_metal_errors() > 0) _exit(OBJECTIONS);
}
