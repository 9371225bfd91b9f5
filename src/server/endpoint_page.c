/* The page at / and its files. */
#include "server/page.h"
#include "server/server_parts.h"

#include <stdio.h>

void plumb__endpoint_page(plumb_server *server, plumb_http_exchange *exchange, plumb_response *response) {
    const plumb_page_file *file = plumb__page_find(plumb__http_path(exchange));
    if (!file) {
        plumb_api_error error = {.refusal = PLUMB_REFUSAL_NOT_FOUND};
        snprintf(error.message, sizeof error.message, "there is nothing at this path");
        plumb__openai_refuse(&error, response);
        return;
    }
    for (const plumb_page_header *h = plumb__page_headers; h->name; h++)
        if (!plumb__http_set_header(exchange, h->name, h->value))
            plumb__server_log(server, PLUMB_LOG_WARNING, "no memory for the header %s", h->name);
    (void)plumb__http_set_header(exchange, "ETag", file->etag);
    if (plumb__page_unchanged(file, plumb__http_header(exchange, "if-none-match")))
        plumb__response_text(response, 304, file->content_type, "", 0);
    else
        plumb__response_text(response, 200, file->content_type, (const char *)file->bytes, file->size);
}
