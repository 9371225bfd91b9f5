/* Pairs of neighbours, and how they are printed. */
#ifndef BENCH_CONVERT_REPORT_H
#define BENCH_CONVERT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_MAX_CONVERT_PAIRS = 64 };

typedef struct bench_convert_report {
    const char *name, *beside; /* ours and the peer */
    double wanted;             /* ratio of the rates */
    int64_t jobs, bytes;       /* jobs 0: plumb's own choice */
    bool uncached;             /* all of the page cache was dropped before each */
    double ours[BENCH_MAX_CONVERT_PAIRS], peer[BENCH_MAX_CONVERT_PAIRS]; /* bytes per second */
    int64_t pairs;
} bench_convert_report;

void bench_convert_report_print(const bench_convert_report *report, bool csv);

#endif
