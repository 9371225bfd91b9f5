/* Writes snapshots of tiny and deep40 to BUILD_DIR/snapshot-examples for read_snapshot.py, which reads them by
 * what docs/snapshots.md says. */
#include "snapshot/files.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "t.h"

static void write_example(const char *name, int64_t point, int64_t length) {
    char path[600];
    file_must(mkdir(BUILD_DIR "/snapshot-examples", 0777) == 0 || errno == EEXIST, "folder");
    (void)snprintf(path, sizeof path, BUILD_DIR "/snapshot-examples/%s", name);
    specimen s = specimen_open(BUILD_DIR "/checkpoints", name);
    plumb_model *model = specimen_model(&s, 2, NULL);
    plumb_session *session = specimen_session(model, 0);
    float *logits = specimen_logits(&s);
    specimen_advance(&s, session, point, logits);
    specimen_advance(&s, session, length, logits);
    const plumb_logit_bias bias[] = {{3, -1.5f}, {7, 2.25f}};
    const plumb_sampling sampling = {.temperature = 0.5f, .top_k = 40, .top_p = 0.75f, .min_p = 0.125f,
                                     .seed = 0x123456789abcdef0u, .bias = bias, .n_bias = 2};
    snapshot_save(session, path, &(plumb_snapshot_extra){.sampling = &sampling, .note = name,
                                                         .note_bytes = (int64_t)strlen(name),
                                                         .resume_points = true});
    plumb_snapshot *snapshot = snapshot_open(path);
    T_CHECK(plumb_snapshot_length(snapshot) == length, "%s", name);
    plumb_snapshot_close(snapshot);
    free(logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
    specimen_close(&s);
}

static void tiny(void) { write_example("tiny", 5, 41); }
static void deep40(void) { write_example("deep40", 300, 517); }

T_MAIN({"tiny", tiny}, {"deep40", deep40})
