/* JSON Schemas compiled to rules; README.md has the subset. */
#ifndef PLUMB_GRAMMAR_SCHEMA_H
#define PLUMB_GRAMMAR_SCHEMA_H

#include <jansson.h>

#include "grammar/automaton.h"

/* Which values of a schema, and how they are written: a call's parameters have strings as raw text and all
 * others as JSON. */
typedef enum plumb__form {
    PLUMB__FORM_JSON,       /* all, as JSON */
    PLUMB__FORM_NO_STRINGS, /* all but strings, as JSON */
    PLUMB__FORM_RAW_STRINGS /* strings alone, as they are */
} plumb__form;

/* What a subschema was compiled to, by its address. */
typedef struct plumb__compiled {
    const json_t *schema;
    plumb__form form;
    int32_t rule;  /* -1: no value in that form */
    int32_t level; /* that it is being compiled at; -1: it is done */
} plumb__compiled;

typedef struct plumb__schemas {
    const json_t *root;   /* where references begin */
    char *root_pointer;   /* of it, in the whole document */
    plumb__compiled *table;
    int64_t count, n_slots;
    json_t *merged;       /* array of the objects that merging made, whose addresses must stay theirs */
    int depth;            /* schemas within schemas now */
    int32_t level;        /* of them, objects and arrays: what consumes text */
    int merges;           /* so far */
    int64_t values;       /* of JSON, in all of the document */
} plumb__schemas;

/* Compiles document `root` within the builder, whose pointer tells where it is.  Rules, or -1 where the schema
 * has no value of that form; after a failure anything. */
bool plumb__schemas_open(plumb__builder *b, plumb__schemas *schemas, const json_t *root);
void plumb__schemas_close(plumb__schemas *schemas);
/* A whole document: opens, compiles and closes.  Where its JSON texts begin; after a failure anything. */
int32_t plumb__add_document(plumb__builder *b, const json_t *root);
int32_t plumb__rule_of_schema(plumb__builder *b, const json_t *schema, plumb__form form);

/* ---- Parts of the compiler, in files of their own ---- */

/* The schema without $ref and allOf, which are merged into it; NULL after a failure.  Kept by b->schemas. */
const json_t *plumb__flat_schema(plumb__builder *b, const json_t *schema);
/* Whether values of one cannot be values of the other, as far as is easily seen. */
bool plumb__schemas_disjoint(plumb__builder *b, const json_t *one, const json_t *other);
/* What a local reference points to; NULL after a failure. */
const json_t *plumb__resolve(plumb__builder *b, const json_t *reference);

bool plumb__is_annotation(const char *keyword);

int32_t plumb__compile_enum(plumb__builder *b, const json_t *schema, plumb__form form);
int32_t plumb__compile_object(plumb__builder *b, const json_t *schema);
int32_t plumb__compile_array(plumb__builder *b, const json_t *schema);
int32_t plumb__compile_number(plumb__builder *b, const json_t *schema, bool integer);
/* A string in marks, or raw. */
int32_t plumb__compile_string(plumb__builder *b, const json_t *schema, plumb__form form);
/* Text that a regular expression matches, in the writing of an alphabet. */
int32_t plumb__add_pattern(plumb__builder *b, const char *keyword, const char *pattern, plumb__alphabet alphabet,
                           int32_t next);
/* Whether the schema's "type", or what stands in for it, names this type. */
bool plumb__schema_has_type(const json_t *schema, const char *type);

/* A keyword that is a count; `missing` without it. */
int32_t plumb__count_keyword(plumb__builder *b, const json_t *schema, const char *keyword, int32_t missing);

/* Extends the builder's pointer; the length to go back to. */
size_t plumb__enter_pointer(plumb__builder *b, const char *key);
size_t plumb__enter_index(plumb__builder *b, size_t index);
void plumb__leave_pointer(plumb__builder *b, size_t length);

#endif
