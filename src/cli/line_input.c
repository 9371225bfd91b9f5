/* Line input; see line_input.h.  Lines of a pipe are cut out of a buffer here, since cli_read waits for
 * the file and would not see what stdio holds. */
#include "cli/line_input.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cli_line_input {
    int fd;    /* standard input */
    int error; /* errno of a read that failed */
    cli_line_editor *editor; /* NULL: a pipe or file */
    /* a pipe or file */
    char bytes[65536]; /* (filled) what was read; what no line has yet begins at `next` */
    size_t filled, next;
    char *line; /* (size) growing */
    int64_t size, capacity;
};

cli_line_input *cli_line_input_open(const cli_line_options *options) {
    cli_line_input *input = calloc(1, sizeof *input);
    if (input == NULL) return NULL;
    input->fd = cli_input_open();
    if (input->fd >= 0 && options->terminal) input->editor = cli_line_editor_open(input->fd, options);
    if (input->fd < 0 || (options->terminal && input->editor == NULL)) {
        cli_line_input_close(input);
        return NULL;
    }
    return input;
}

void cli_line_input_close(cli_line_input *input) {
    if (input == NULL) return;
    cli_line_editor_close(input->editor);
    if (input->fd >= 0) close(input->fd);
    free(input->line);
    free(input);
}

static cli_line_status fail_read(int error, plumb_error *err) {
    if (error == EINTR) return CLI_LINE_INTERRUPTED;
    (void)plumb__fail(err, PLUMB_ERROR_IO, "standard input", NULL, -1, strerror(error), "a line");
    return CLI_LINE_FAILED;
}

/* A byte of standard input, or EOF with input->error 0 at the end and errno after a fault. */
static int read_byte(cli_line_input *input) {
    if (input->next == input->filled) {
        ssize_t count = cli_read(input->fd, input->bytes, sizeof input->bytes);
        input->error = count < 0 ? errno : 0;
        if (count <= 0) return EOF;
        input->filled = (size_t)count;
        input->next = 0;
    }
    return (unsigned char)input->bytes[input->next++];
}

static cli_line_status read_plain(cli_line_input *input, const char **line, size_t *size,
                                  plumb_error *err) {
    int byte;
    input->size = 0;
    input->error = 0;
    while ((byte = read_byte(input)) != EOF) {
        if (input->size == CLI_MOST_LINE_BYTES) {
            (void)plumb__fail(err, PLUMB_ERROR_IO, "standard input", NULL, -1, "a longer line",
                              "at most %d bytes", CLI_MOST_LINE_BYTES);
            return CLI_LINE_FAILED;
        }
        if (input->size == input->capacity) {
            void *grown = plumb__grow(input->line, &input->capacity, input->size + 1, 1);
            if (grown == NULL) {
                (void)plumb__fail_memory(err, "line", (size_t)input->size + 1);
                return CLI_LINE_FAILED;
            }
            input->line = grown;
        }
        input->line[input->size++] = (char)byte;
        if (byte == '\n') break;
    }
    if (input->error != 0) return fail_read(input->error, err);
    if (input->size == 0) return CLI_LINE_END;
    *line = input->line;
    *size = (size_t)input->size;
    return CLI_LINE_READ;
}

cli_line_status cli_line_input_read(cli_line_input *input, const char *prompt, const char **line,
                                    size_t *size, plumb_error *err) {
    cli_line_status status = input->editor != NULL
                                 ? cli_line_editor_read(input->editor, prompt, line, size, err)
                                 : read_plain(input, line, size, err);
    if (status != CLI_LINE_READ) return status;
    while (*size > 0 && ((*line)[*size - 1] == '\n' || (*line)[*size - 1] == '\r')) (*size)--;
    return status;
}

void cli_line_input_remember(cli_line_input *input, const char *line) {
    if (input->editor != NULL) cli_line_editor_remember(input->editor, line);
}
