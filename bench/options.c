#include "options.h"

#include "backend/cpu/kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_levels(void) {
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int n = plumb__cpu_kernel_levels(levels);
    for (int i = 0; i < n; i++) printf("%s%s", i > 0 ? ", " : ": ", levels[i]->level);
    printf(" (%s)", levels[0]->level);
}

static const bench_option *find_operand(const bench_option *options, int n) {
    for (int i = 0; i < n; i++)
        if (options[i].kind == BENCH_OPERAND) return &options[i];
    return NULL;
}

static void print_help(const char *program, const bench_option *options, int n) {
    static const char *const value[] = {"", " TEXT", " LEVEL", " SECONDS", " N", " N,N,...", ""};
    const bench_option *operand = find_operand(options, n);
    printf("usage: %s [options]%s%s\n", program, operand ? " " : "", operand ? operand->name : "");
    for (int i = 0; i < n; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s%s%s", &options[i] == operand ? "" : "--",
                       options[i].name, value[options[i].kind]);
        printf("  %-26s %s", name, options[i].help);
        if (options[i].kind == BENCH_LEVEL) print_levels();
        printf("\n");
    }
}

static bool parse_count(const char *text, const char **end, int64_t *value) {
    char *stop;
    if (*text < '0' || *text > '9') return false;
    *value = strtoll(text, &stop, 10);
    *end = stop;
    return *value < INT32_MAX;
}

static bool parse_list(const char *text, bench_list *list) {
    list->count = 0;
    for (;;) {
        if (list->count == BENCH_MAX_LIST) return false;
        if (!parse_count(text, &text, &list->value[list->count++])) return false;
        if (*text == '\0') return true;
        if (*text++ != ',') return false;
    }
}

static bool parse_value(const bench_option *option, const char *text) {
    char *stop;
    const char *end;
    double *seconds = option->target;
    switch (option->kind) {
    case BENCH_FLAG: return false;
    case BENCH_TEXT:
    case BENCH_OPERAND:
    case BENCH_LEVEL: *(const char **)option->target = text; return true;
    case BENCH_SECONDS: *seconds = strtod(text, &stop); return !*stop && *seconds > 0;
    case BENCH_COUNT: return parse_count(text, &end, option->target) && !*end;
    case BENCH_LIST: return parse_list(text, option->target);
    }
    return false;
}

bool bench_options_parse(int argc, char **argv, const bench_option *options, int n, int *status) {
    const bench_option *operand = find_operand(options, n);
    *status = 2;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) {
            print_help(argv[0], options, n);
            *status = 0;
            return false;
        }
        const bench_option *option = NULL;
        if (strncmp(argv[i], "--", 2) && operand && !*(const char **)operand->target) {
            *(const char **)operand->target = argv[i];
            continue;
        }
        for (int j = 0; j < n; j++)
            if (&options[j] != operand && !strncmp(argv[i], "--", 2) &&
                !strcmp(argv[i] + 2, options[j].name))
                option = &options[j];
        if (!option) {
            fprintf(stderr, "%s: no such option: %s (--help lists them)\n", argv[0], argv[i]);
            return false;
        }
        if (option->kind == BENCH_FLAG) *(bool *)option->target = true;
        else if (++i == argc || !parse_value(option, argv[i])) {
            fprintf(stderr, "%s: --%s: %s is no value for it\n", argv[0], option->name,
                    i == argc ? "nothing" : argv[i]);
            return false;
        }
    }
    if (!operand || *(const char **)operand->target) return true;
    fprintf(stderr, "%s: %s is missing (--help explains)\n", argv[0], operand->name);
    return false;
}

bool bench_threads_valid(const bench_list *threads) {
    for (int64_t i = 0; i < threads->count; i++)
        if (threads->value[i] < 1 || threads->value[i] > 256) {
            fprintf(stderr, "--threads: %lld is not from 1 to 256\n", (long long)threads->value[i]);
            return false;
        }
    return true;
}
