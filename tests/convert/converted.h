/* Converted files of every flavour, made by the test that reads them, and what they must give back.
 *
 * What these helpers need to go on is not what is tested: when it fails the program ends. */
#ifndef PLUMB_TESTS_CONVERT_CONVERTED_H
#define PLUMB_TESTS_CONVERT_CONVERTED_H

#include "convert/audit.h"
#include "convert/convert.h"

typedef enum flavour { FLAVOUR_F32, FLAVOUR_BF16, FLAVOUR_FP8, FLAVOUR_PACKED, FLAVOURS } flavour;

/* A model's folder and a file of it. */
typedef struct converted {
    char source[512], path[512];
    const char *model;
    flavour flavour;
} converted;

enum { CONVERTED_MODELS = 3 };
extern const char *const converted_models[CONVERTED_MODELS]; /* tiny, deep40, demo */
/* The released folder: of the `checkpoints` fixture, or the demo model. */
void converted_source(const char *model, char folder[512]);
const char *flavour_name(flavour flavour); /* "packed" */

/* Writes BUILD_DIR/PLACE/MODEL-FLAVOUR.gguf, in place of an older one.  Packed files are made from the
 * F32 file of the same place, which must be there. */
converted converted_make(const char *place, const char *model, flavour flavour);
/* The same from any folder, whose files are called NAME-FLAVOUR.gguf. */
converted converted_make_from(const char *place, const char *name, const char *folder,
                              flavour flavour);
/* Removes the files of all flavours. */
void converted_remove(const char *place, const char *name);

/* Audits the file; `source` may be NULL. */
plumb_status converted_audit(const char *path, const char *source, int jobs, bool sample,
                             plumb_error *err);
/* Every tensor of the file, read as released: whole, and in ranges that begin and end anywhere, equals
 * the folder's.  Counts checks of t.h; includes it for its caller. */
#define CONVERTED_CHECK_RELEASED(path, folder)                                        \
    do {                                                                              \
        char fault_[512];                                                             \
        T_CHECK(converted_gives_back(path, folder, fault_), "%s: %s", path, fault_);  \
    } while (0)
bool converted_gives_back(const char *path, const char *folder, char fault[512]);

/* Gives a header that was made by hand the digests of its own. */
void converted_seal(uint8_t *header, int64_t bytes, int64_t file_bytes);
/* The same numbers on every machine: xorshift64*. */
uint64_t converted_random(uint64_t *state);
void converted_must(plumb_status status, const plumb_error *err, const char *what);

#endif
