/* The page at / and the files that it needs, which are part of the program. */
#ifndef PLUMB_SERVER_PAGE_H
#define PLUMB_SERVER_PAGE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct plumb_page_file {
    const char *path;         /* "/" or "/page/NAME" */
    const char *content_type;
    const char *etag;         /* of these bytes, with its quotes */
    const unsigned char *bytes;
    size_t size;
} plumb_page_file;

typedef struct plumb_page_header {
    const char *name, *value;
} plumb_page_header;

/* Made from src/server/web by cmake/web_page.cmake. */
extern const plumb_page_file plumb__page_files[];
extern const int plumb__page_file_count;

/* What every answer with a file of the page has, besides its content type and ETag; the last name is NULL. */
extern const plumb_page_header plumb__page_headers[];

/* The file at a decoded path without its query; NULL: none. */
const plumb_page_file *plumb__page_find(const char *path);

/* Whether the value of If-None-Match (NULL: there was none) names the file as it is: answer 304 then. */
bool plumb__page_unchanged(const plumb_page_file *file, const char *if_none_match);

#endif
