/* Line input; see line_input.h.
 *
 * The editor's characters come from read_character below: libedit's own read retries after a
 * signal, in some versions without end, and Ctrl-C would be lost.  Lines of a pipe are cut out of a
 * buffer here, since cli_read waits for the file and would not see what stdio holds. */
#include "cli/line_input.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_LINES = 1000 };

struct cli_line_input {
    int fd;    /* standard input */
    int error; /* errno of a read that failed */
    /* a terminal */
    EditLine *editor; /* NULL: a pipe or file */
    History *history;
    const char *prompt;
    int64_t typed; /* characters that the editor took since its prompt */
    /* a pipe or file */
    char bytes[65536]; /* (filled) what was read; what no line has yet begins at `next` */
    size_t filled, next;
    char *line; /* (size) growing */
    int64_t size, capacity;
};

static char *show_prompt(EditLine *editor) {
    cli_line_input *input = NULL;
    el_get(editor, EL_CLIENTDATA, &input);
    return (char *)(size_t)input->prompt; /* libedit only reads it */
}

/* Reads one character (UTF-8, by the locale) for the editor: 1 read, 0 end, -1 interrupted. */
static int read_character(EditLine *editor, wchar_t *character) {
    cli_line_input *input = NULL;
    el_get(editor, EL_CLIENTDATA, &input);
    if (++input->typed > CLI_MOST_LINE_BYTES) {
        input->error = EFBIG;
        return -1;
    }
    mbstate_t state = {0};
    for (;;) {
        char byte;
        ssize_t count = cli_read(input->fd, &byte, 1);
        if (count == 0) return 0;
        if (count < 0) {
            input->error = errno;
            return -1;
        }
        size_t status = mbrtowc(character, &byte, 1, &state);
        if (status == (size_t)-1) {
            *character = 0xFFFD;
            return 1;
        }
        if (status != (size_t)-2) return 1;
    }
}

/* The editor counts characters by the locale; text here is always UTF-8. */
static void use_utf8(void) {
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0 && setlocale(LC_CTYPE, "C.UTF-8") == NULL)
        setlocale(LC_CTYPE, "en_US.UTF-8");
}

static bool open_editor(cli_line_input *input) {
    use_utf8();
    input->history = history_init();
    FILE *screen = isatty(STDOUT_FILENO) ? stdout : stderr;
    input->editor = el_init("plumb", stdin, screen, stderr);
    if (input->history == NULL || input->editor == NULL) return false;
    HistEvent event;
    history(input->history, &event, H_SETSIZE, HISTORY_LINES);
    history(input->history, &event, H_SETUNIQUE, 1);
    el_set(input->editor, EL_CLIENTDATA, input);
    el_set(input->editor, EL_PROMPT, show_prompt);
    el_set(input->editor, EL_EDITOR, "emacs");
    el_set(input->editor, EL_HIST, history, input->history);
    el_set(input->editor, EL_GETCFN, read_character);
    return true;
}

cli_line_input *cli_line_input_open(bool terminal) {
    cli_line_input *input = calloc(1, sizeof *input);
    if (input == NULL) return NULL;
    input->fd = cli_input_open();
    if (input->fd < 0 || (terminal && !open_editor(input))) {
        cli_line_input_close(input);
        return NULL;
    }
    return input;
}

void cli_line_input_close(cli_line_input *input) {
    if (input == NULL) return;
    if (input->editor != NULL) el_end(input->editor);
    if (input->history != NULL) history_end(input->history);
    if (input->fd >= 0) close(input->fd);
    free(input->line);
    free(input);
}

static cli_line_status fail_read(int error, plumb_error *err) {
    if (error == EINTR) return CLI_LINE_INTERRUPTED;
    (void)plumb__fail(err, PLUMB_ERROR_IO, "standard input", NULL, -1, strerror(error), "a line");
    return CLI_LINE_FAILED;
}

static cli_line_status read_edited(cli_line_input *input, const char **line, size_t *size,
                                   plumb_error *err) {
    int count = 0;
    input->typed = 0;
    input->error = 0;
    *line = el_gets(input->editor, &count);
    if (input->error != 0) return fail_read(input->error, err);
    if (*line == NULL || count <= 0) return CLI_LINE_END;
    *size = (size_t)count;
    return CLI_LINE_READ;
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
    input->prompt = prompt;
    cli_line_status status = input->editor != NULL ? read_edited(input, line, size, err)
                                                   : read_plain(input, line, size, err);
    if (status != CLI_LINE_READ) return status;
    while (*size > 0 && ((*line)[*size - 1] == '\n' || (*line)[*size - 1] == '\r')) (*size)--;
    return status;
}

void cli_line_input_remember(cli_line_input *input, const char *line) {
    if (input->editor == NULL || *line == '\0') return;
    HistEvent event;
    history(input->history, &event, H_ENTER, line);
}
