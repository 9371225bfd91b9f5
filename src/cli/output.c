/* Standard output with one remembered failure; see output.h. */
#include "cli/output.h"

#include "base/clean_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* errno of the first failed write.  The standard streams are the process's own, so is this. */
static int output_error;

static bool keep_error(bool ok) {
    if (!ok && output_error == 0) output_error = errno != 0 ? errno : EIO;
    return output_error == 0;
}

bool cli_write(const void *bytes, size_t size) {
    if (output_error != 0) return false;
    return keep_error(fwrite(bytes, 1, size, stdout) == size);
}

bool cli_print(const char *format, ...) {
    if (output_error != 0) return false;
    va_list list;
    va_start(list, format);
    int written = vprintf(format, list);
    va_end(list);
    return keep_error(written >= 0);
}

cli_digits cli_grouped(int64_t value) {
    char plain[24];
    int length = snprintf(plain, sizeof plain, "%" PRId64, value), n = 0;
    cli_digits out;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) out.text[n++] = ',';
        out.text[n++] = plain[i];
    }
    out.text[n] = '\0';
    return out;
}

cli_digits cli_count(int64_t value, const char *one, const char *many) {
    cli_digits out;
    snprintf(out.text, sizeof out.text, "%.31s %.31s", cli_grouped(value).text, value == 1 ? one : many);
    return out;
}

bool cli_output_flush(void) {
    if (output_error != 0) return false;
    return keep_error(fflush(stdout) == 0);
}

int cli_output_finish(int status) {
    cli_output_flush();
    if (output_error == 0) return status;
    if (output_error != EPIPE)
        fprintf(stderr, "plumb: standard output: %s\n", strerror(output_error));
    return status == CLI_OK ? CLI_FAILED : status;
}

void cli_complain(const cli_options *options, const char *format, ...) {
    char line[2048], clean[sizeof line];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    plumb__clean_text(line, "?", false, clean, sizeof clean);
    if (options != NULL)
        fprintf(stderr, "plumb %s: %s\n", options->command->name, clean);
    else
        fprintf(stderr, "plumb: %s\n", clean);
}

int cli_report(const cli_options *options, const plumb_error *err) {
    if (err->status == PLUMB_ERROR_CANCELLED) return CLI_INTERRUPTED;
    char line[1024];
    plumb_error_line(err, line, sizeof line);
    cli_complain(options, "%s", line);
    return CLI_FAILED;
}

void cli_log(void *user, plumb_log_level level, const char *line) {
    const cli_options *options = user;
    if (options->quiet && level == PLUMB_LOG_INFO) return;
    cli_complain(options, "%s%s", level == PLUMB_LOG_WARNING ? "warning: " : "", line);
}
