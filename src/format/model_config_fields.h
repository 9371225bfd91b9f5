/* The fields of config.json as data (spec: model.md sections 1.1 to 1.3): one loop parses them, the
 * tests walk them.  Shared by model_config*.c only. */
#ifndef PLUMB_FORMAT_MODEL_CONFIG_FIELDS_H
#define PLUMB_FORMAT_MODEL_CONFIG_FIELDS_H

#include "format/model_config.h"

/* The config while it is being read: lists whose meaning depends on other fields wait here. */
typedef struct plumb_config_reading {
    plumb_model_config config;
    int64_t ratios;                                  /* how many */
    int64_t kv_sources, kv_source_id[PLUMB_MAX_LAYERS];
    int64_t index_sources, index_source_id[PLUMB_MAX_LAYERS];
    int64_t engram_tables;                           /* entries of engram_num_embeddings */
} plumb_config_reading;

typedef enum plumb_config_section {
    PLUMB_CONFIG_ROOT,
    PLUMB_CONFIG_QUANTIZATION,
    PLUMB_CONFIG_TEXT,
    PLUMB_CONFIG_ROPE_SCALING, /* inside text_config */
    PLUMB_CONFIG_VISION,
    PLUMB_CONFIG_SECTIONS
} plumb_config_section;

typedef enum plumb_config_kind {
    PLUMB_CONFIG_INTEGER,       /* int64_t in [low, high], a multiple of `multiple` */
    PLUMB_CONFIG_DOUBLE,        /* in [low, high] */
    PLUMB_CONFIG_FLOAT,         /* the same, stored as float32 */
    PLUMB_CONFIG_OPTIONAL,      /* double in [low, high]; 0 when null or absent */
    PLUMB_CONFIG_INTEGERS,      /* list of at most max_count, each in [low, high] */
    PLUMB_CONFIG_IS_TEXT,       /* must be `text` */
    PLUMB_CONFIG_IS_NUMBER,     /* must be `low` */
    PLUMB_CONFIG_IS_NUMBER_OR_ABSENT,
    PLUMB_CONFIG_IS_TRUE,
    PLUMB_CONFIG_IS_FALSE,
    PLUMB_CONFIG_IS_TEXTS,      /* must be [`text`] */
    PLUMB_CONFIG_IS_NUMBERS,    /* must be max_count times `low` */
    PLUMB_CONFIG_OBJECT,        /* another section */
    PLUMB_CONFIG_UNUSED         /* changes no result; any value, may be absent */
} plumb_config_kind;

typedef struct plumb_config_field {
    plumb_config_section section;
    const char *key;
    plumb_config_kind kind;
    double low, high;
    size_t offset;       /* in plumb_config_reading */
    int64_t multiple;
    int64_t max_count;
    size_t count_offset; /* of a list, in plumb_config_reading */
    const char *text;
    const char *alias;   /* the key's other name, or NULL */
} plumb_config_field;

extern const plumb_config_field plumb__config_fields[];
extern const int plumb__config_field_count;
/* "", "quantization_config", "text_config", ... */
extern const char *const plumb__config_section_names[PLUMB_CONFIG_SECTIONS];

/* What depends on more than one field; also derives the per-layer arrays. */
PLUMB_MUST_CHECK plumb_status plumb__config_check(plumb_config_reading *reading, const char *path,
                                                  plumb_error *err);

#endif
