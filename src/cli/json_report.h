/* What reports for programs have in common: JSON is UTF-8, names of files need not be, and a report goes
 * to standard output as all results do. */
#ifndef PLUMB_CLI_JSON_REPORT_H
#define PLUMB_CLI_JSON_REPORT_H

#include <jansson.h>

/* A string of any bytes: U+FFFD stands for what is not UTF-8.  NULL without memory. */
json_t *cli_json_text(const char *text);

/* Prints a report and a newline; `digits` of a number that is not whole, at most 17. */
void cli_json_print(const json_t *report, int digits);

#endif
