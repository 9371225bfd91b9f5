/* Model text on standard output or, beside a table, on standard error.  A terminal acts on control
 * bytes, and a model may be made to print any, so on a terminal they are replaced; a file or pipe
 * receives the text as it is. */
#ifndef PLUMB_CLI_SHOWN_TEXT_H
#define PLUMB_CLI_SHOWN_TEXT_H

#include "plumb.h"

#include <stdio.h>

typedef struct cli_shown_text {
    plumb_detokenizer detokenizer;
    char *buffer; /* holds any one token's text */
    size_t capacity;
    FILE *stream;
    bool terminal;
} cli_shown_text;

void cli_shown_text_open(cli_shown_text *shown, const plumb_text *text);
void cli_shown_text_open_on_errors(cli_shown_text *shown, const plumb_text *text);
void cli_shown_token(cli_shown_text *shown, int32_t token);
void cli_shown_text_finish(cli_shown_text *shown); /* an unfinished character */
void cli_shown_text_close(cli_shown_text *shown);

/* Whole UTF-8 characters on standard output, made harmless if standard output is a terminal. */
void cli_show(bool terminal, const char *bytes, size_t size);

#endif
