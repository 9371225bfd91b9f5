/* Streaming as the commands see it: its options, the hot list's place, the route trace, and one line of
 * figures after an answer. */
#ifndef PLUMB_CLI_STREAMING_H
#define PLUMB_CLI_STREAMING_H

#include "cli/files.h"
#include "cli/model_lookup.h"
#include "stream/route_trace.h"

typedef struct cli_streaming {
    const cli_options *options;
    char hot_list[CLI_PATH_SIZE]; /* "": none */
    cli_new_file routes;          /* --trace-routes */
    plumb_route_shape shape;
    plumb_error routes_err;       /* the first failed write */
    plumb_stream_stats shown;     /* at the last line of figures */
} cli_streaming;

/* Sets what the options say of streaming; `streaming` must outlive the model, and stay in its place. */
PLUMB_MUST_CHECK plumb_status cli_streaming_prepare(const cli_options *options,
                                                    const char *model_path,
                                                    cli_streaming *streaming,
                                                    plumb_model_options *model_options,
                                                    plumb_error *err);
/* The model is open: begins the trace, if one is wanted. */
PLUMB_MUST_CHECK plumb_status cli_streaming_begin(cli_streaming *streaming, plumb_model *model,
                                                  plumb_error *err);
/* Figures since the last call, or since the model was opened, as one line; "" when the model does not
 * stream. */
void cli_streaming_describe(cli_streaming *streaming, plumb_model *model, char *line, size_t size);
/* After a command that ended well the trace appears under its name, else there is none.  Returns the exit
 * status: `status`, or that of a trace that could not be written, which is reported. */
int cli_streaming_end(cli_streaming *streaming, int status);

#endif
