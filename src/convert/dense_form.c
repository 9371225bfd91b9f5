/* A product of an e4m3 code and a scale has four significant bits, so only the scale can keep it from
 * fitting: values are looked at one by one only where a scale is extreme.  Float32 matrices are looked
 * at in full. */
#include "convert/dense_form.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* With these ue8m0 scales every code times its scale is a bfloat16: from 3 on the smallest code
 * (2^-9) is no smaller than the smallest bfloat16 (2^-133), up to 246 the largest (448) no larger than
 * the largest. */
enum { LEAST_EASY_SCALE = 3, MOST_EASY_SCALE = 246, PIECE = 1 << 20 };

typedef struct looker {
    const plumb_converted_file *file;
    plumb_log_fn log;
    void *log_user;
    uint8_t *codes, *tiles, *stored;
    int64_t codes_room, tiles_room, stored_room;
} looker;

static plumb_status make_room(uint8_t **memory, int64_t *room, int64_t bytes, plumb_error *err) {
    return plumb__reserve_aligned(memory, room, bytes) ? PLUMB_OK
                                                       : plumb__fail_memory(err, "matrix", (size_t)bytes);
}

static bool scales_are_easy(const uint8_t *scales, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (scales[i] < LEAST_EASY_SCALE || scales[i] > MOST_EASY_SCALE) return false;
    return true;
}

/* The first element that the form cannot hold, or -1: *unfit. */
static plumb_status look(looker *l, const plumb_stored_tensor *t, int form, int64_t *unfit,
                         plumb_error *err) {
    const plumb_checkpoint *checkpoint = l->file->checkpoint;
    const plumb_tensor *codes = t->part->codes;
    plumb_stored_units u = plumb__stored_units(codes, form);
    *unfit = -1;
    if (u.tiles) {
        plumb_status status = make_room(&l->tiles, &l->tiles_room, t->tiles->bytes, err);
        if (status == PLUMB_OK)
            status = plumb__checkpoint_read(checkpoint, t->tiles, 0, t->tiles->bytes, l->tiles, err);
        if (status != PLUMB_OK || scales_are_easy(l->tiles, t->tiles->bytes)) return status;
    }
    int64_t largest = u.stored > u.codes ? u.stored : u.codes;
    int64_t most = largest < PIECE ? PIECE / largest : 1;
    for (int64_t first = 0; first < u.count && *unfit < 0; first += most) {
        int64_t n = u.count - first < most ? u.count - first : most;
        plumb_status status = make_room(&l->codes, &l->codes_room, most * u.codes, err);
        if (status == PLUMB_OK)
            status = make_room(&l->stored, &l->stored_room, most * u.stored, err);
        if (status == PLUMB_OK)
            status = plumb__checkpoint_read(checkpoint, codes, first * u.codes, n * u.codes,
                                            l->codes, err);
        if (status == PLUMB_OK)
            status = plumb__checkpoint_check_values(checkpoint, codes, first * u.codes, n * u.codes,
                                                    l->codes, err);
        if (status != PLUMB_OK) return status;
        const uint8_t *tiles = u.tiles ? l->tiles + plumb__stored_tiles_begin(&u, first) : NULL;
        int64_t bad = plumb__stored_encode(&u, first, n, l->codes, NULL, tiles, l->stored);
        if (bad >= 0) *unfit = first * (u.tiles ? u.columns : 1) + bad;
    }
    return PLUMB_OK;
}

void plumb__dense_form_tell(const plumb_stored_tensor *matrix, int wanted, int64_t unfit,
                            plumb_log_fn log, void *log_user) {
    if (!log) return;
    const bool bf16 = wanted == PLUMB_STORED_BF16;
    const int64_t columns = matrix->shape[0];
    log(log_user, PLUMB_LOG_INFO,
        plumb__format("%s stays %s: the value in row %lld, column %lld does not fit %s", matrix->name,
                      bf16 ? "f32" : "fp8 as released", (long long)(unfit / columns),
                      (long long)(unfit % columns), bf16 ? "bf16" : "f32").s);
}

/* Tries the forms from the wanted one on; told is what keeps the matrix from the next one. */
static plumb_status choose(looker *l, plumb_stored_tensor *t, plumb_dense dense, plumb_error *err) {
    static const int forms[] = {PLUMB_STORED_BF16, PLUMB_STORED_F32};
    int first = dense == PLUMB_DENSE_BF16 ? 0 : 1;
    int last = t->tiles ? 1 : 0; /* a float32 matrix is as released */
    int wanted = PLUMB_STORED_F32;
    int64_t unfit = -1;
    for (int i = first; i <= last; i++) {
        int64_t before = unfit;
        plumb_status status = look(l, t, forms[i], &unfit, err);
        if (status != PLUMB_OK) return status;
        if (unfit >= 0) {
            wanted = forms[i];
            continue;
        }
        plumb__stored_tensor_set_form(t, forms[i]);
        unfit = before;
        break;
    }
    if (unfit >= 0) plumb__dense_form_tell(t, wanted, unfit, l->log, l->log_user);
    return PLUMB_OK;
}

plumb_status plumb__dense_forms_choose(plumb_converted_file *file, plumb_dense dense,
                                       plumb_log_fn log, void *log_user, plumb_error *err) {
    looker l = {.file = file, .log = log, .log_user = log_user};
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < file->count && status == PLUMB_OK; i++)
        if (dense != PLUMB_DENSE_FP8 && plumb__stored_tensor_has_choice(&file->tensor[i]))
            status = choose(&l, &file->tensor[i], dense, err);
    plumb__free_aligned(l.codes);
    plumb__free_aligned(l.tiles);
    plumb__free_aligned(l.stored);
    return status;
}
