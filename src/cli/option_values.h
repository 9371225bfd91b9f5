/* Values of options, as text and as numbers (options.c). */
#ifndef PLUMB_CLI_OPTION_VALUES_H
#define PLUMB_CLI_OPTION_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* Experts to keep in memory: either of the two, the other is 0. */
typedef struct cli_experts {
    bool given;
    int64_t count, bytes;
} cli_experts;

/* Numbers, read in full: no leading space, no trailing text, no overflow, nothing non-finite. */
bool cli_parse_integer(const char *text, int64_t low, int64_t high, int64_t *value);
bool cli_parse_number(const char *text, double least, double most, double *value);
bool cli_parse_seed(const char *text, uint64_t *value);
bool cli_parse_level(const char *text, int64_t *level); /* 0..100, low, high, max */
/* A positive number of bytes, or NGB with at most nine decimals (1 GB is 10^9 bytes). */
bool cli_parse_bytes(const char *text, int64_t *bytes);
/* 0, bytes or NGB; unlimited or inf, also in capitals, is INT64_MAX. */
bool cli_parse_limit(const char *text, int64_t *bytes);
/* A positive number of experts, or NGB. */
bool cli_parse_experts(const char *text, cli_experts *experts);

#endif
