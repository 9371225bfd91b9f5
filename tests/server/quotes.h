/* JSON in C strings is easier to read with ' for ": this gives the text that is meant. */
#ifndef PLUMB_TESTS_SERVER_QUOTES_H
#define PLUMB_TESTS_SERVER_QUOTES_H

#include <stdlib.h>
#include <string.h>

/* free() it. */
static inline char *quoted(const char *text) {
    char *copy = malloc(strlen(text) + 1);
    if (!copy) abort();
    strcpy(copy, text);
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    return copy;
}

#endif
