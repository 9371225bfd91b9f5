/* Where a model came from, as far as its folder tells. */
#ifndef PLUMB_CONVERT_MODEL_ORIGIN_H
#define PLUMB_CONVERT_MODEL_ORIGIN_H

#include "plumb.h"

typedef struct plumb_model_origin {
    char name[256];     /* never empty */
    char url[600];      /* "": not known */
    char revision[256]; /* "": not known */
} plumb_model_origin;

/* A snapshot in the Hugging Face cache, HUB/models--ORG--NAME/snapshots/REVISION, tells all three.
 * Elsewhere the config's `_name_or_path` (may be NULL) tells name and url, when it is an id ORG/NAME and
 * no path of somebody's machine; else the folder gives the name. */
void plumb__model_origin(const char *folder, const char *name_or_path, plumb_model_origin *origin);

#endif
