/* Options of the bench programs: --name VALUE, from a table. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "plumb.h"

enum { BENCH_MAX_LIST = 256 };

typedef struct bench_list {
    int64_t value[BENCH_MAX_LIST];
    int64_t count;
} bench_list;

typedef enum bench_option_kind {
    BENCH_FLAG,   /* bool; takes no value */
    BENCH_TEXT,   /* const char * */
    BENCH_LEVEL,  /* the same; help adds the kernel levels of this machine, the best first */
    BENCH_SECONDS,/* double > 0 */
    BENCH_COUNT,  /* int64_t >= 0 */
    BENCH_LIST,   /* bench_list of counts, separated by commas */
    BENCH_OPERAND /* const char *; without a dash, at most one and not left out */
} bench_option_kind;

typedef struct bench_option {
    const char *name; /* without dashes; of an operand, what help calls it */
    bench_option_kind kind;
    void *target;     /* holds the default, receives the value */
    const char *help;
} bench_option;

/* False after a message (or the help asked for by --help): the program should end with *status. */
bool bench_options_parse(int argc, char **argv, const bench_option *options, int n, int *status);

/* Threads from 1 to 256, or a message and false. */
bool bench_threads_valid(const bench_list *threads);

#endif
