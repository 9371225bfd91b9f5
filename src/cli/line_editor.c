/* The editor; see line_editor.h.
 *
 * Its characters come from read_character below: libedit's own read retries after a signal, in some
 * versions without end, and Ctrl-C would be lost.
 *
 * A terminal that is asked to brackets what is pasted (ESC [200~ and ESC [201~), so that a line break in
 * it is no end of the line.  It is asked only while a line is read. */
#include "cli/line_editor.h"

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
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

enum { HISTORY_LINES = 1000 };

struct cli_line_editor {
    int fd;    /* the terminal */
    int error; /* errno of a read that failed */
    cli_line_options options;
    EditLine *edit;
    History *history;
    FILE *screen;
    bool dumb; /* it obeys no escape sequences */
    char prompt[32];
    int64_t typed; /* characters that the editor took since its prompt */
    wchar_t *pasted; /* (capacity) growing */
    int64_t capacity;
};

static cli_line_editor *editor_of(EditLine *edit) {
    cli_line_editor *editor = NULL;
    el_get(edit, EL_CLIENTDATA, &editor);
    return editor;
}

static char *show_prompt(EditLine *edit) {
    return editor_of(edit)->prompt;
}

static void set_bracketing(cli_line_editor *editor, bool on) {
    if (editor->dumb) return;
    fputs(on ? "\033[?2004h" : "\033[?2004l", editor->screen);
    fflush(editor->screen);
}

/* Ctrl-Z: others find the terminal as it was before, and the line is shown again when this goes on. */
static void pause_editor(cli_line_editor *editor) {
    set_bracketing(editor, false);
    el_set(editor->edit, EL_PREP_TERM, 0);
    cli_pause();
    el_set(editor->edit, EL_PREP_TERM, 1);
    set_bracketing(editor, true);
    el_set(editor->edit, EL_REFRESH);
}

/* Reads one character (UTF-8, by the locale) for the editor: 1 read, 0 end, -1 interrupted. */
static int read_character(EditLine *edit, wchar_t *character) {
    cli_line_editor *editor = editor_of(edit);
    if (editor->typed >= CLI_MOST_LINE_BYTES) {
        editor->error = EFBIG;
        return -1;
    }
    mbstate_t state = {0};
    for (;;) {
        char byte;
        ssize_t count = cli_read(editor->fd, &byte, 1);
        if (count == 0) return 0;
        if (count < 0 && errno == EINTR && !cli_interrupted()) {
            pause_editor(editor);
            continue;
        }
        if (count < 0) {
            editor->error = errno;
            return -1;
        }
        size_t status = mbrtowc(character, &byte, 1, &state);
        if (status == (size_t)-2) continue;
        if (status == (size_t)-1) *character = 0xFFFD;
        editor->typed++;
        el_resize(edit); /* the window may have another size by now */
        return 1;
    }
}

/* ---- Pasted text ---- */

/* Up to the closing bracket, without characters that a terminal would act on; its length, or -1. */
static int64_t read_pasted(cli_line_editor *editor) {
    static const wchar_t closing[] = L"\033[201~";
    const int64_t mark = (int64_t)wcslen(closing);
    int64_t length = 0;
    for (;;) {
        void *grown = plumb__grow(editor->pasted, &editor->capacity, length + 1, sizeof *editor->pasted);
        if (grown == NULL) {
            editor->error = ENOMEM;
            return -1;
        }
        editor->pasted = grown;
        wchar_t *last = &editor->pasted[length++];
        int status = read_character(editor->edit, last);
        if (status == 0) editor->error = EIO; /* the terminal went away */
        if (status != 1) return -1;
        if (length >= mark && wmemcmp(last + 1 - mark, closing, (size_t)mark) == 0) break;
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < length - mark; i++) {
        wchar_t c = editor->pasted[i] == L'\r' ? L'\n' : editor->pasted[i];
        if (c == L'\n' || c == L'\t' || !iswcntrl((wint_t)c)) editor->pasted[kept++] = c;
    }
    editor->pasted[kept] = L'\0';
    return kept;
}

static unsigned char take_pasted(EditLine *edit, int character) {
    (void)character;
    cli_line_editor *editor = editor_of(edit);
    int64_t length = read_pasted(editor);
    if (length < 0) return CC_EOF; /* editor->error tells more */
    if (length > 0 && el_winsertstr(edit, editor->pasted) != 0) {
        editor->error = ENOMEM;
        return CC_EOF;
    }
    return CC_REFRESH;
}

/* ---- Completion ---- */

/* Columns that the first `size` bytes take on the screen. */
static int shown_width(const char *text, size_t size) {
    mbstate_t state = {0};
    int width = 0;
    while (size > 0) {
        wchar_t character;
        size_t bytes = mbrtowc(&character, text, size, &state);
        if (bytes == 0 || bytes > size) break;
        int columns = wcwidth(character);
        width += columns > 0 ? columns : 0;
        text += bytes;
        size -= bytes;
    }
    return width;
}

/* Lines of choices side by side, as many as the window has room for. */
static void show_choices(const cli_line_editor *editor, const char *choices) {
    struct winsize window;
    bool known = ioctl(fileno(editor->screen), TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
    int widest = 0, column = 0;
    for (const char *at = choices; *at != '\0'; at += strcspn(at, "\n") + 1) {
        int width = shown_width(at, strcspn(at, "\n"));
        if (width > widest) widest = width;
    }
    widest += 2;
    int columns = (known ? window.ws_col : 80) / widest;
    fputc('\n', editor->screen);
    for (const char *at = choices; *at != '\0';) {
        size_t size = strcspn(at, "\n");
        bool ends = at[size + 1] == '\0' || ++column >= columns;
        fprintf(editor->screen, "%.*s%*s", (int)size, at, ends ? 0 : widest - shown_width(at, size), "");
        if (ends) fputc('\n', editor->screen);
        if (ends) column = 0;
        at += size + 1;
    }
}

static unsigned char complete(EditLine *edit, int character) {
    (void)character;
    cli_line_editor *editor = editor_of(edit);
    const LineInfo *line = el_line(edit);
    char *begin = strndup(line->buffer, (size_t)(line->cursor - line->buffer));
    cli_completion completion = {0};
    unsigned char action = CC_ERROR;
    if (begin == NULL) {
        editor->error = ENOMEM;
        action = CC_EOF;
    } else if (editor->options.complete == NULL ||
               !editor->options.complete(editor->options.user, begin, &completion)) {
        if (el_winsertstr(edit, L"\t") == 0) action = CC_REFRESH;
    } else if (completion.insert != NULL) {
        if (el_insertstr(edit, completion.insert) == 0) action = CC_REFRESH;
    } else if (completion.choices != NULL) {
        show_choices(editor, completion.choices);
        action = CC_REDISPLAY;
    }
    free(begin);
    free(completion.insert);
    free(completion.choices);
    return action;
}

/* ---- Opening and closing ---- */

/* The editor counts characters by the locale; text here is always UTF-8. */
static void use_utf8(void) {
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0 && setlocale(LC_CTYPE, "C.UTF-8") == NULL)
        setlocale(LC_CTYPE, "en_US.UTF-8");
}

/* Keys as terminals of all kinds send them, whatever TERM says: what is bound to nothing would appear in the line
 * as the end of its sequence. */
static const struct {
    const char *does;
    const char *sequences[7];
} keys[] = {
    {"ed-move-to-beg", {"\\e[H", "\\eOH", "\\e[1~", "\\e[7~"}},
    {"ed-move-to-end", {"\\e[F", "\\eOF", "\\e[4~", "\\e[8~"}},
    {"ed-prev-word", {"\\e[1;5D", "\\e[1;3D", "\\e[5D", "\\eOd", "\\e\\e[D"}},
    {"em-next-word", {"\\e[1;5C", "\\e[1;3C", "\\e[5C", "\\eOc", "\\e\\e[C"}},
    {"ed-delete-next-char", {"\\e[3~"}},
    {"em-delete-next-word", {"\\e[3;5~", "\\e[3;3~"}},
    {"ed-prev-history", {"\\e[5~"}},
    {"ed-next-history", {"\\e[6~"}},
    {"ed-unassigned", {"\\e[2~", "\\e[1;5A", "\\e[1;5B", "\\e[1;2A", "\\e[1;2B", "\\e[Z"}},
};

/* Names of functions are given as wide strings, of which libedit makes no copies that it forgets. */
static void bind_keys(EditLine *edit) {
    el_wset(edit, EL_ADDFN, L"plumb-paste", L"Insert pasted text", take_pasted);
    el_wset(edit, EL_ADDFN, L"plumb-complete", L"Complete a command or file name", complete);
    el_set(edit, EL_BIND, "\\e[200~", "plumb-paste", NULL);
    el_set(edit, EL_BIND, "^I", "plumb-complete", NULL);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        for (int j = 0; keys[i].sequences[j]; j++) el_set(edit, EL_BIND, keys[i].sequences[j], keys[i].does, NULL);
}

static bool open_libedit(cli_line_editor *editor) {
    static const char *const dumb[] = {"dumb", "unknown", ""};
    editor->history = history_init();
    editor->screen = isatty(STDOUT_FILENO) ? stdout : stderr;
    editor->edit = el_init("plumb", stdin, editor->screen, stderr);
    if (editor->history == NULL || editor->edit == NULL) return false;
    HistEvent event;
    history(editor->history, &event, H_SETSIZE, HISTORY_LINES);
    history(editor->history, &event, H_SETUNIQUE, 1);
    el_set(editor->edit, EL_CLIENTDATA, editor);
    /* What stands between these marks takes no room on the screen. */
    el_set(editor->edit, EL_PROMPT_ESC, show_prompt, '\1');
    el_set(editor->edit, EL_EDITOR, "emacs");
    el_set(editor->edit, EL_HIST, history, editor->history);
    el_set(editor->edit, EL_GETCFN, read_character);
    bind_keys(editor->edit);
    const char *terminal = NULL;
    if (el_get(editor->edit, EL_TERMINAL, &terminal) != 0 || terminal == NULL) terminal = "";
    for (size_t i = 0; i < sizeof dumb / sizeof dumb[0]; i++)
        if (strcmp(terminal, dumb[i]) == 0) editor->dumb = true;
    return true;
}

cli_line_editor *cli_line_editor_open(int fd, const cli_line_options *options) {
    cli_line_editor *editor = calloc(1, sizeof *editor);
    if (editor == NULL) return NULL;
    editor->fd = fd;
    editor->options = *options;
    use_utf8();
    if (open_libedit(editor)) return editor;
    cli_line_editor_close(editor);
    return NULL;
}

void cli_line_editor_close(cli_line_editor *editor) {
    if (editor == NULL) return;
    if (editor->edit != NULL) el_end(editor->edit);
    if (editor->history != NULL) history_end(editor->history);
    free(editor->pasted);
    free(editor);
}

/* ---- Lines ---- */

/* The colour ends before the last character, since libedit drops an escape sequence at the end. */
static void set_prompt(cli_line_editor *editor, const char *prompt) {
    size_t length = strlen(prompt);
    if (length > 1 && editor->options.color && !editor->dumb)
        snprintf(editor->prompt, sizeof editor->prompt, "\1\033[1;36m\1%.*s\1\033[0m\1%s",
                 (int)length - 1, prompt, prompt + length - 1);
    else
        snprintf(editor->prompt, sizeof editor->prompt, "%s", prompt);
}

static cli_line_status fail_read(const cli_line_editor *editor, plumb_error *err) {
    if (editor->error == EINTR) return editor->typed > 0 ? CLI_LINE_CLEARED : CLI_LINE_INTERRUPTED;
    (void)plumb__fail(err, PLUMB_ERROR_IO, "standard input", NULL, -1, strerror(editor->error), "a line");
    return CLI_LINE_FAILED;
}

cli_line_status cli_line_editor_read(cli_line_editor *editor, const char *prompt, const char **line,
                                     size_t *size, plumb_error *err) {
    int count = 0;
    editor->typed = 0;
    editor->error = 0;
    set_prompt(editor, prompt);
    el_resize(editor->edit);
    set_bracketing(editor, true);
    cli_pause_catch(true);
    *line = el_gets(editor->edit, &count);
    cli_pause_catch(false);
    set_bracketing(editor, false);
    if (editor->error != 0) return fail_read(editor, err);
    if (*line == NULL || count <= 0) return CLI_LINE_END;
    *size = (size_t)count;
    return CLI_LINE_READ;
}

void cli_line_editor_remember(cli_line_editor *editor, const char *line) {
    HistEvent event;
    if (*line != '\0') history(editor->history, &event, H_ENTER, line);
}
