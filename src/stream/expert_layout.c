#include "stream/expert_layout.h"

#include "base/error.h"
#include "format/stored_units.h"

#include <string.h>

static plumb_status find_payloads(const plumb_checkpoint *checkpoint, int64_t layer, int64_t id,
                                  plumb_expert_layout *layout, plumb_error *err) {
    for (int i = 0; i < PLUMB_EXPERT_PAYLOADS; i++) {
        plumb__text192 name =
            plumb__format("layers.%lld.ffn.experts.%lld.w%d.%s", (long long)layer, (long long)id,
                          i / 2 + 1, i % 2 == 0 ? "weight" : "scale");
        layout->tensor[i] = plumb__checkpoint_find(checkpoint, "%s", name.s);
        if (!layout->tensor[i])
            return plumb__fail(err, PLUMB_ERROR_TENSOR, plumb__checkpoint_path(checkpoint),
                               name.s, -1, "no such tensor", "it to be present");
    }
    return PLUMB_OK;
}

/* Numbers of the payloads in the order in which they lie in the files. */
static void sort_by_place(const plumb_expert_layout *layout, int order[PLUMB_EXPERT_PAYLOADS]) {
    for (int i = 0; i < PLUMB_EXPERT_PAYLOADS; i++) {
        const plumb_tensor *tensor = layout->tensor[i];
        int at = i;
        for (; at > 0; at--) {
            const plumb_tensor *before = layout->tensor[order[at - 1]];
            if (before->shard < tensor->shard ||
                (before->shard == tensor->shard && before->offset < tensor->offset))
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

int64_t plumb__expert_layout_end(const plumb_expert_layout *layout, int i) {
    const plumb_tensor *tensor = layout->tensor[i];
    plumb_stored_units units = plumb__stored_units(tensor, tensor->stored);
    return tensor->offset + units.count * units.stored;
}

plumb_status plumb__expert_layout_find(const plumb_checkpoint *checkpoint, int64_t layer,
                                       int64_t id, int64_t alignment, plumb_expert_layout *layout,
                                       plumb_error *err) {
    *layout = (plumb_expert_layout){0};
    plumb_status status = find_payloads(checkpoint, layer, id, layout, err);
    if (status != PLUMB_OK) return status;
    int order[PLUMB_EXPERT_PAYLOADS];
    sort_by_place(layout, order);
    int64_t place = 0;
    for (int i = 0; i < PLUMB_EXPERT_PAYLOADS; i++) {
        const plumb_tensor *tensor = layout->tensor[order[i]];
        int64_t begin = tensor->offset / alignment * alignment;
        int64_t end = plumb__expert_layout_end(layout, order[i]);
        int last = layout->n_runs - 1;
        /* Beside the run before, or in a page that it reads anyway. */
        bool joins = last >= 0 && layout->run[last].shard == tensor->shard &&
                     begin <= layout->run[last].offset + layout->run[last].size;
        if (!joins) {
            last = layout->n_runs++;
            layout->run[last].shard = tensor->shard;
            layout->run[last].offset = begin;
            layout->run[last].place = place;
        }
        layout->run[last].needed = end - layout->run[last].offset;
        layout->run[last].size = (layout->run[last].needed + alignment - 1) / alignment * alignment;
        layout->place[order[i]] =
            layout->run[last].place + tensor->offset - layout->run[last].offset;
        place = layout->run[last].place + layout->run[last].size;
    }
    /* Scales that share blocks with codes come after them. */
    for (int i = 0; i < PLUMB_EXPERT_PAYLOADS; i += 2)
        if (layout->tensor[i]->stored == PLUMB_STORED_MXFP4)
            layout->place[i + 1] = layout->place[i] + layout->tensor[i]->bytes;
    return PLUMB_OK;
}

/* ---- In memory --------------------------------------------------------------------------------- */

static int64_t blocks(int64_t width) { return (width + PLUMB_BLOCK - 1) / PLUMB_BLOCK; }

int64_t plumb__expert_layout_bytes(const plumb_model_config *c, int64_t alignment) {
    int64_t codes = 3 * c->hidden * c->inter / 2;
    int64_t scales = 2 * c->inter * blocks(c->hidden) + c->hidden * blocks(c->inter);
    return codes + scales + PLUMB_EXPERT_PAYLOADS * 2 * (alignment - 1);
}

bool plumb__expert_layout_is_packed(const plumb_expert_layout *layout) {
    bool packed = false;
    for (int i = 0; i < PLUMB_EXPERT_PAYLOADS; i += 2)
        packed |= layout->tensor[i]->stored == PLUMB_STORED_MXFP4;
    return packed;
}

/* The scales of the largest matrix. */
int64_t plumb__expert_unpack_room(const plumb_model_config *c) {
    int64_t up = c->inter * blocks(c->hidden), down = c->hidden * blocks(c->inter);
    return up > down ? up : down;
}

void plumb__expert_unpack(const plumb_expert_layout *layout, uint8_t *memory, uint8_t *room) {
    for (int i = 0; i < PLUMB_EXPERT_PAYLOADS; i += 2) {
        if (layout->tensor[i]->stored != PLUMB_STORED_MXFP4) continue;
        uint8_t *matrix = memory + layout->place[i];
        int64_t n = layout->tensor[i + 1]->bytes; /* a scale per block */
        plumb__mxfp4_unpack(matrix, n, matrix, room);
        memcpy(memory + layout->place[i + 1], room, (size_t)n);
    }
}

plumb_expert plumb__expert_layout_bind(const plumb_expert_layout *layout, const uint8_t *memory) {
    plumb_matrix matrix[3];
    for (int i = 0; i < 3; i++) {
        const plumb_tensor *codes = layout->tensor[2 * i];
        matrix[i] = (plumb_matrix){.type = PLUMB_MATRIX_FP4,
                                   .n = codes->shape[0],
                                   .k = codes->shape[1] * 2,
                                   .codes = memory + layout->place[2 * i],
                                   .scales = memory + layout->place[2 * i + 1]};
    }
    return (plumb_expert){.gate = matrix[0], .down = matrix[1], .up = matrix[2]};
}
