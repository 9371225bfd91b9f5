/* JSON read and printed as Python's json module does (spec: tokenizer-and-chat.md section 4.5).
 *
 * The model was trained on prompts whose tool schemas and arguments went through Python's
 * json.loads and json.dumps(ensure_ascii=False).  jansson, which serves the rest of the project,
 * cannot repeat that: it reads numbers as int64 and double, so that 12345678901234567890 is
 * refused, 1.0 and 1 meet, and NaN is unknown.  Hence this small tree, which keeps each
 * number as the text it was written in and turns it into Python's spelling when printing:
 *   integers  digits as written, of any length; -0 is 0
 *   floats    the shortest decimal that reads back as the same double: 1.0, 1e-07, 1e+16, Infinity
 *   objects   first position and last value of a repeated key, like a dict
 * Nothing depends on the locale. */
#ifndef PLUMB_TEXT_PYTHON_JSON_H
#define PLUMB_TEXT_PYTHON_JSON_H

#include "plumb.h"
#include "text/chat_buffer.h"

/* Arrays and objects inside each other: deeper text is refused (Python's own limit is near 1000).
 */
#define PLUMB__PYTHON_JSON_DEPTH_MAX 512

typedef enum plumb__python_kind {
    PLUMB__PYTHON_NONE,
    PLUMB__PYTHON_FALSE,
    PLUMB__PYTHON_TRUE,
    PLUMB__PYTHON_INT,
    PLUMB__PYTHON_FLOAT, /* also NaN, Infinity, -Infinity */
    PLUMB__PYTHON_STR,
    PLUMB__PYTHON_LIST,
    PLUMB__PYTHON_DICT
} plumb__python_kind;

typedef struct plumb__python_value plumb__python_value;
struct plumb__python_value {
    plumb__python_kind kind;
    const char *key; /* of a member of a dict: unescaped UTF-8, not NUL-terminated */
    size_t key_size;
    const char *bytes; /* str: unescaped UTF-8; int and float: the number as written */
    size_t size;
    int64_t count;                    /* of elements or members */
    const plumb__python_value *child; /* first element or member */
    const plumb__python_value *next;  /* next in the same list or dict */
};

typedef struct plumb__python_json {
    const plumb__python_value *root;
    bool has_duplicates;               /* some dict was written with a repeated key */
    char *text;                        /* private: the unescaped copy that values point into */
    struct plumb__python_nodes *nodes; /* private */
} plumb__python_json;

/* Reads one JSON text, which may have white space around it.  `strict` refuses NaN and the
 * infinities, which are Python's and not JSON's.  Refused in any case: invalid UTF-8, escapes of
 * lone surrogates (Python reads them, but no UTF-8 text can hold them), a byte order mark.
 * `field` names the text in errors, which are PLUMB_ERROR_TEXT with the byte offset. */
PLUMB_MUST_CHECK plumb_status plumb__python_json_read(const char *bytes, size_t size, bool strict,
                                                      const char *field, plumb__python_json *json,
                                                      plumb_error *err);
void plumb__python_json_free(plumb__python_json *json);

/* The member of a dict, or NULL; also for values of other kinds. */
const plumb__python_value *plumb__python_member(const plumb__python_value *dict, const char *key);
const char *plumb__python_kind_name(plumb__python_kind kind); /* in JSON's words */

/* Appends what json.dumps(value, ensure_ascii=False) prints. */
void plumb__python_json_print(const plumb__python_value *value, plumb__buffer *out);
/* With sort_keys=True, keys by their UTF-8 bytes: equal values print alike. */
void plumb__python_json_print_sorted(const plumb__python_value *value, plumb__buffer *out);
/* Appends the inside of a string literal (no quotes).  Bytes that need no escape go through. */
void plumb__python_json_escape(const char *bytes, size_t size, plumb__buffer *out);
/* The escape of one byte, or its own spelling; returns its length, at most 6. */
size_t plumb__python_json_escape_byte(char byte, char escaped[6]);

#endif
