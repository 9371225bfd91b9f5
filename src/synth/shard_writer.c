/* A weight and its scales come out of one computation but lie apart in the file, so each batch of
 * rows is written twice, at two offsets.  Batches are split among threads by stripes of rows; what
 * a thread computes depends on the stripe alone. */
#include "synth/shard_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "synth/tensor_values.h"

enum {
    BATCH_BYTES = 16 << 20,  /* payload generated before it is written */
    ALONE_ELEMENTS = 1 << 16 /* less than this is not worth waking a thread */
};

typedef struct batch {
    const plumb__tensor_source *source;
    int64_t first_row, end_row;
    double *work;
    int64_t work_stride;
    uint8_t *payload, *scales;
    int64_t row_bytes, stripe_scales;
} batch;

static void fill_stripes(void *arg, int64_t begin, int64_t end, int thread) {
    const batch *b = arg;
    for (int64_t stripe = begin; stripe < end; stripe++) {
        int64_t row = b->first_row + stripe * PLUMB_ROW_STRIPE;
        int64_t stop = row + PLUMB_ROW_STRIPE < b->end_row ? row + PLUMB_ROW_STRIPE : b->end_row;
        plumb__tensor_stripe(b->source, row, stop, b->work + thread * b->work_stride,
                             b->payload + stripe * PLUMB_ROW_STRIPE * b->row_bytes,
                             b->scales + stripe * b->stripe_scales);
    }
}

/* ---- One tensor ----------------------------------------------------------------------------- */

static plumb__encoding encoding_of(const plumb_synth_options *options,
                                   const plumb_tensor_spec *spec) {
    switch (spec->dtype) {
    case PLUMB_DTYPE_BF16: return PLUMB_ENCODE_BF16;
    case PLUMB_DTYPE_F32: return PLUMB_ENCODE_F32;
    case PLUMB_DTYPE_I8:
        /* 13.6 billion parameters a layer: quantising numbers one by one would take hours. */
        return options->variant == PLUMB_SYNTH_RELEASE ? PLUMB_ENCODE_FP4_DRAWN
                                                       : PLUMB_ENCODE_FP4_ROWS;
    default: break;
    }
    return spec->tensor_class == PLUMB_CLASS_ENGRAM_TABLE ? PLUMB_ENCODE_FP8_ROWS
                                                          : PLUMB_ENCODE_FP8_TILES;
}

/* What the tensor's rows are made from.  A vector is one row. */
static plumb_status make_source(const plumb__shard_writer *w, const plumb__planned *tensor,
                                plumb__tensor_source *source, plumb_error *err) {
    const plumb_tensor_spec *spec = &tensor->spec;
    int64_t rows = spec->rank == 1 ? 1 : spec->shape[0];
    int64_t columns = spec->rank == 1 ? spec->shape[0] : spec->shape[1];
    if (spec->dtype == PLUMB_DTYPE_I8) columns *= 2;
    plumb__recipe recipe;
    if (!plumb__recipe_find(w->shape, tensor->name, rows, columns, w->depth, &recipe))
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, tensor->name, -1, "no recipe",
                           "a tensor of the release");
    *source = plumb__tensor_source_make(w->options->seed, tensor->name,
                                        encoding_of(w->options, spec), rows, columns, &recipe);
    return PLUMB_OK;
}

static int64_t batch_rows(const plumb__tensor_source *source) {
    int64_t row_bytes = plumb__encoded_row_bytes(source->encoding, source->columns);
    int64_t stripes = BATCH_BYTES / (row_bytes * PLUMB_ROW_STRIPE);
    return (stripes < 1 ? 1 : stripes) * PLUMB_ROW_STRIPE;
}

static plumb_status report_progress(plumb__shard_writer *w, int64_t bytes, plumb_error *err) {
    const plumb_synth_options *options = w->options;
    w->done_bytes += bytes;
    if (!options->progress ||
        !options->progress(options->progress_user, w->done_bytes, w->plan->real_bytes))
        return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_CANCELLED, options->folder, NULL, -1, "cancelled", NULL);
}

/* `payload_at` and `scales_at` are offsets in the file. */
static plumb_status write_tensor(plumb__shard_writer *w, const plumb__planned *tensor,
                                 int64_t payload_at, int64_t scales_at, plumb_error *err) {
    plumb__tensor_source source;
    plumb_status status = make_source(w, tensor, &source, err);
    if (status != PLUMB_OK) return status;
    int64_t step = batch_rows(&source), stripe = PLUMB_ROW_STRIPE * source.columns;
    batch b = {
        .source = &source,
        .work = w->work,
        .work_stride = stripe,
        .payload = w->payload,
        .scales = w->scales,
        .row_bytes = plumb__encoded_row_bytes(source.encoding, source.columns),
        .stripe_scales =
            plumb__encoded_stripe_scales(source.encoding, PLUMB_ROW_STRIPE, source.columns),
    };
    for (int64_t row = 0; row < source.rows && status == PLUMB_OK; row += step) {
        int64_t rows = source.rows - row < step ? source.rows - row : step;
        int64_t stripes = (rows + PLUMB_ROW_STRIPE - 1) / PLUMB_ROW_STRIPE;
        int64_t last = rows - (stripes - 1) * PLUMB_ROW_STRIPE;
        b.first_row = row;
        b.end_row = row + rows;
        plumb__pool_run(w->pool, stripes, ALONE_ELEMENTS / stripe, fill_stripes, &b);
        int64_t scale_bytes = (stripes - 1) * b.stripe_scales +
                              plumb__encoded_stripe_scales(source.encoding, last, source.columns);
        status = plumb__output_write(w->output, payload_at, w->payload, rows * b.row_bytes, err);
        if (status == PLUMB_OK)
            status = plumb__output_write(w->output, scales_at, w->scales, scale_bytes, err);
        payload_at += rows * b.row_bytes;
        scales_at += scale_bytes;
        if (status == PLUMB_OK) status = report_progress(w, rows * b.row_bytes + scale_bytes, err);
    }
    return status;
}

/* ---- One shard ------------------------------------------------------------------------------ */

static plumb_status write_header(plumb__shard_writer *w, int shard, int64_t *data_at,
                                 plumb_error *err) {
    plumb__json_text header = plumb__json_compact();
    plumb__plan_write_header(w->plan, shard, &header);
    plumb_status status;
    if (plumb__json_failed(&header)) {
        status = plumb__fail_memory(err, w->plan->shards[shard].file, (size_t)header.size);
    } else {
        uint8_t length[8];
        for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)header.size >> (8 * i));
        status = plumb__output_write(w->output, 0, length, sizeof length, err);
        if (status == PLUMB_OK)
            status = plumb__output_write(w->output, sizeof length, header.bytes, header.size, err);
        *data_at = (int64_t)sizeof length + header.size;
    }
    plumb__json_free(&header);
    return status;
}

static plumb_status write_shard(plumb__shard_writer *w, int shard, plumb_error *err) {
    const plumb__planned_shard *s = &w->plan->shards[shard];
    plumb_status status = plumb__output_create(w->output, s->file, err);
    int64_t data_at = 0;
    if (status == PLUMB_OK) status = write_header(w, shard, &data_at, err);
    if (status == PLUMB_OK)
        status = plumb__output_set_size(w->output, data_at + s->data_bytes, err);
    for (int64_t i = s->first; i < s->first + s->count && status == PLUMB_OK; i++) {
        const plumb__planned *tensor = &w->plan->tensors[i];
        /* Scales are written with their weight, the next tensor. */
        if (!tensor->real || tensor->spec.dtype == PLUMB_DTYPE_F8_E8M0) continue;
        int64_t scales_at = i > s->first ? w->plan->tensors[i - 1].begin : 0;
        status = write_tensor(w, tensor, data_at + tensor->begin, data_at + scales_at, err);
    }
    if (status == PLUMB_OK) status = plumb__output_finish(w->output, err);
    return status;
}

/* The largest buffers that any tensor of the plan asks for. */
static plumb_status make_buffers(plumb__shard_writer *w, plumb_error *err) {
    int64_t work = 1, payload = 1, scales = 1;
    for (int64_t i = 0; i < w->plan->count; i++) {
        const plumb__planned *tensor = &w->plan->tensors[i];
        if (!tensor->real || tensor->spec.dtype == PLUMB_DTYPE_F8_E8M0) continue;
        plumb__tensor_source source;
        plumb_status status = make_source(w, tensor, &source, err);
        if (status != PLUMB_OK) return status;
        int64_t rows = batch_rows(&source), columns = source.columns;
        int64_t bytes = rows * plumb__encoded_row_bytes(source.encoding, columns);
        int64_t groups = rows / PLUMB_ROW_STRIPE *
                         plumb__encoded_stripe_scales(source.encoding, PLUMB_ROW_STRIPE, columns);
        if (columns > work) work = columns;
        if (bytes > payload) payload = bytes;
        if (groups > scales) scales = groups;
    }
    work *= PLUMB_ROW_STRIPE * (int64_t)plumb__pool_threads(w->pool);
    w->work = plumb__alloc_aligned(work, sizeof *w->work);
    w->payload = plumb__alloc_aligned(payload, 1);
    w->scales = plumb__alloc_aligned(scales, 1);
    if (w->work && w->payload && w->scales) return PLUMB_OK;
    return plumb__fail_memory(err, "generation buffers", (size_t)(8 * work + payload + scales));
}

plumb_status plumb__write_shards(plumb__shard_writer *writer, plumb_error *err) {
    plumb_status status = make_buffers(writer, err);
    for (int shard = 0; shard < writer->plan->n_shards && status == PLUMB_OK; shard++)
        status = write_shard(writer, shard, err);
    plumb__free_aligned(writer->work);
    plumb__free_aligned(writer->payload);
    plumb__free_aligned(writer->scales);
    return status;
}
