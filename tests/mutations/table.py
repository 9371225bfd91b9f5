"""Faults that the tests must notice: what is changed, in which file, which tests see it and why it
matters.  `edits` are pairs of old and new text; the old text must occur exactly once in the file.
Tests are tried in the given order until one is red, so the quickest comes first."""

from typing import NamedTuple

KERNELS = "src/backend/cpu/kernels/"


class Mutation(NamedTuple):
    name: str
    file: str
    edits: list
    tests: list
    why: str
    needs: str = ""  # a flag of /proc/cpuinfo, or simde


def one(name, file, old, new, tests, why, needs=""):
    return Mutation(name, file, [(old, new)], tests.split(), why, needs)


ORACLE = "oracle_units_operators_test oracle_sublayer_test oracle_smooth_test"
MUTATIONS = [
    # ---- Hyper-connections -------------------------------------------------------------------
    Mutation(
        "comb_transposed", KERNELS + "hyper_connections.c",
        [("float mixed = comb[k] * copy[0];", "float mixed = comb[k * COPIES] * copy[0];"),
         ("mixed = mixed + comb[j * COPIES + k] * copy[j];",
          "mixed = mixed + comb[k * COPIES + j] * copy[j];")],
        ORACLE.split(), "comb[j][k] carries copy j into copy k; doubly stochastic either way"),
    one("pre_of_this_sublayer", "src/model/forward.c",
        "PLUMB_HC * hidden, w->pre + first * PLUMB_HC,",
        "PLUMB_HC * hidden, w->pre_next + first * PLUMB_HC,",
        "oracle_smooth_test", "a sublayer's input uses the mix that the previous one computed"),
    one("four_sinkhorn_iterations", "src/model/forward.c", "c->sinkhorn_iterations", "4",
        "oracle_smooth_test", "twenty iterations, ending on columns"),
    one("post_not_doubled", KERNELS + "hyper_connections.c",
        "post[c] = 2.0f * plumb__sigmoid", "post[c] = plumb__sigmoid",
        ORACLE, "post lies between 0 and 2"),

    # ---- Attention ----------------------------------------------------------------------------
    one("query_norm_per_head", "src/model/attention.c",
        "    ops->rotate(n->backend, query, rows, c->heads,",
        "    ops->rms_norm(n->backend, query, rows * c->heads, c->head_dim, weights->kv_norm,\n"
        "                  c->norm_eps, query);\n"
        "    ops->rotate(n->backend, query, rows, c->heads,",
        "oracle_sublayer_test oracle_smooth_test", "earlier models of the family have this norm"),
    one("window_one_short", KERNELS + "attention.c",
        "position + 1 < a->window ? position + 1 : a->window;",
        "position + 1 < a->window ? position + 1 : a->window - 1;",
        "oracle_sublayer_test oracle_smooth_test", "a window of n holds n positions"),
    one("sink_left_out", KERNELS + "attention.c", "+ plumb__exp(sink - most)", "+ 0.0f * sink",
        "oracle_units_attention_test oracle_smooth_test", "the sink is part of the denominator"),
    one("probabilities_not_rounded", KERNELS + "attention.c",
        "score[j] = plumb__load(plumb__store(score[j]));", "(void)score[j];",
        "oracle_units_attention_test oracle_band_test", "probabilities are bf16 in the numerator"),
    one("keys_newest_first", KERNELS + "attention.c",
        "int64_t at = position - (n_window - 1) + j;", "int64_t at = position - j;",
        "contract_test",
        "window positions are summed oldest first"),
    one("no_inverse_rotation", "src/model/attention.c", "first * pairs, true);",
        "first * pairs, false);", "oracle_sublayer_test oracle_smooth_test",
        "the output is rotated back, since keys serve as values"),
    one("yarn_on_plain_layers", "src/model/network.c",
        "plumb__rotary_frequencies(c->rope_theta, NULL,",
        "plumb__rotary_frequencies(c->rope_theta, &yarn,",
        "oracle_smooth_test", "layers without compression rotate without YaRN"),
    one("output_groups_swapped", "src/model/attention.c", "attended + g * width",
        "attended + (c->o_groups - 1 - g) * width", "oracle_sublayer_test oracle_smooth_test",
        "each group of heads has its own projection"),
    one("ring_written_before_use", "src/model/attention.c",
        "    int64_t source = c->kv_source[layer], row_width",
        "    int64_t bytes = plumb__window_row_bytes(c->head_dim);\n"
        "    for (int64_t r = 0; r < batch->rows; r++)\n"
        "        memcpy(batch->state->layer[layer].ring +\n"
        "                   (batch->state->length + r) % c->window * bytes,\n"
        "               w->chunk + r * bytes, (size_t)bytes);\n"
        "    int64_t source = c->kv_source[layer], row_width",
        "session_test state_test", "earlier rows of a chunk still need what later ones displace"),

    # ---- Compressor and indexer ------------------------------------------------------------------
    one("keys_last_published", "src/model/indexer.c",
        ".keys = batch->state->layer[c->kv_source[layer]].index_keys",
        ".keys = batch->state->layer[batch->rows == 1 && batch->state->length % 2 == 0 &&\n"
        "                                    c->candidate_source >= 0\n"
        "                                ? c->candidate_source\n"
        "                                : c->kv_source[layer]]\n"
        "                    .index_keys",
        "state_test equality_test",
        "the published decode step reads another layer's keys on every second position"),
    one("keys_of_the_last_source", "src/model/indexer.c",
        ".keys = batch->state->layer[c->kv_source[layer]].index_keys",
        ".keys = batch->state->layer[c->candidate_source].index_keys",
        "oracle_smooth_test", "every index source scores against its own source's keys"),
    one("carry_dropped", "src/model/indexer.c", "    if (waiting) {",
        "    if (waiting && batch->rows == 0) {", "session_test state_test",
        "the first token of a pair may lie in an earlier chunk"),
    one("index_keys_shifted_at_a_chunk", "src/model/indexer.c",
        "cache->index_keys + first * plumb__index_row_bytes",
        "cache->index_keys + (first + (batch->state->length > 0)) * plumb__index_row_bytes",
        "session_test state_test", "index keys are appended where the compressed keys are"),
    one("latent_at_its_last_token", "src/model/indexer.c", "(first + j) * ratio,",
        "(first + j) * ratio + ratio - 1,", "oracle_smooth_test",
        "a latent stands at the position of its first token"),
    one("pair_visible_late", "src/backend/cpu/cpu_attention.c",
        "int64_t visible = (a->position + row + 1) / a->ratio;",
        "int64_t visible = (a->position + row) / a->ratio;", "oracle_smooth_test",
        "a pair is visible from its second token on"),
    one("newest_block_not_forced", "src/backend/cpu/cpu_attention.c",
        "    if (blocks > 0) block_score[blocks - 1] = plumb__float_of(0x7F800000u);\n", "",
        "oracle_smooth_test", "the newest block is always a candidate"),
    one("pool_ignored", "src/backend/cpu/cpu_attention.c", "    if (a->use_pool) {",
        "    if (a->use_pool && a->heads == 0) {", "oracle_smooth_test",
        "later index sources search the candidate pool only"),
    Mutation(
        "ties_to_the_later", "src/backend/cpu/select.c",
        [("    uint32_t edge = kth_key(value, n, k, &above);\n",
          "    uint32_t edge = kth_key(value, n, k, &above);\n    int64_t equal = 0;\n"
          "    for (int64_t i = 0; i < n; i++) equal += order_key(value[i]) == edge;\n"),
         ("(tie & (ties > 0));\n            ties -= tie;",
          "(tie & (equal <= ties));\n            equal -= tie;")],
        ["select_test"], "equal scores: the smaller index first"),
    one("subnormals_ordered", "src/backend/cpu/select.c",
        "    magnitude = magnitude < 0x00800000u ? 0 : magnitude;\n", "", "select_test", "-0 and subnormals equal +0"),
    one("score_rounded_twice_only", KERNELS + "indexer.c", "score[j] = rounded(sum[j]);",
        "score[j] = sum[j];", "contract_test oracle_band_test", "the third rounding makes the ties"),
    one("negative_scores_kept", KERNELS + "indexer.c", "            t = t > 0.0f ? t : 0.0f;\n", "",
        "oracle_sublayer_test oracle_smooth_test", "a head that rejects a key adds nothing"),

    # ---- Mixture of experts ------------------------------------------------------------------------
    one("experts_in_order_of_score", KERNELS + "experts.c", "j > 0 && ids[j - 1] > ids[j]; j--",
        "j > i && ids[j - 1] > ids[j]; j--", ORACLE, "experts are added in ascending id"),
    one("bias_ignored", KERNELS + "experts.c", "biased[e] = score[e] + bias[e];",
        "biased[e] = score[e] + 0.0f * bias[e];", ORACLE, "the bias selects"),
    Mutation(
        "weights_after_bias", KERNELS + "experts.c",
        [("sum = sum + score[ids[i]];", "sum = sum + biased[ids[i]];"),
         ("weights[i] = score[ids[i]] /", "weights[i] = biased[ids[i]] /")],
        ORACLE.split(), "and never weighs"),
    one("route_scale_left_out", KERNELS + "experts.c", "(sum + 1e-20f) * route_scale;",
        "(sum + 1e-20f) * (route_scale * 0.0f + 1.0f);", ORACLE, "weights add up to 1.5"),
    Mutation(
        "clamp_removed", KERNELS + "experts.c",
        [("        u = u > limit ? limit : u;\n        v = v > limit ? limit : v;\n"
          "        v = v < -limit ? -limit : v;\n", "        (void)limit;\n")],
        ORACLE.split(), "the gated activation is clamped"),
    one("gate_clamped_below", KERNELS + "experts.c", "u = u > limit ? limit : u;",
        "u = u > limit ? limit : u < -limit ? -limit : u;", ORACLE,
        "the gate is clamped from above only"),

    # ---- Engram --------------------------------------------------------------------------------------
    one("engram_zeroed", KERNELS + "engram.c", "float added = gate * plumb__load",
        "float added = 0.0f * gate * plumb__load", ORACLE, "the looked-up value is added"),
    one("engram_one_token_late", "src/model/engram_hash.c", "int32_t id = newest[-n];",
        "int32_t id = newest[n + 1 < hash->ngram ? -n - 1 : -n];", "arith_engram_hash_test",
        "the n-gram ends with the token itself"),
    one("engram_pad_wrong", "src/model/engram_hash.c", "if (dead) id = hash->folded_pad;",
        "if (dead) id = 0;", "arith_engram_hash_test", "missing history is the folded pad"),
    one("engram_no_barrier", "src/model/engram_hash.c", "dead = dead || id < 0;", "dead = id < 0;",
        "arith_engram_hash_test", "an image token hides everything before it"),
    one("engram_multipliers_as_doubles", "src/model/engram_hash.c",
        "2 * (uint64_t)draws[n] + 1;", "(uint64_t)(double)(2 * (uint64_t)draws[n] + 1);",
        "arith_engram_hash_test", "multipliers beyond 2^53"),

    # ---- Arithmetic ------------------------------------------------------------------------------------
    one("nibbles_swapped", KERNELS + "linear_quantized.c",
        "plumb__e2m1_times2(codes[i] & 15);\n"
        "        out.high[2 * i + 1] = (int16_t)plumb__e2m1_times2(codes[i] >> 4);",
        "plumb__e2m1_times2(codes[i] >> 4);\n"
        "        out.high[2 * i + 1] = (int16_t)plumb__e2m1_times2(codes[i] & 15);",
        "oracle_units_products_test exact_test", "element 2i is the low nibble"),
    one("scale_of_the_tile_before", KERNELS + "linear_quantized.c",
        "const uint8_t *scales = w->scales + n / PLUMB_BLOCK * blocks;",
        "const uint8_t *scales = w->scales + (n > 0 ? n - 1 : 0) / PLUMB_BLOCK * blocks;",
        "oracle_units_products_test exact_test", "one scale per 32 rows, from row 0 on"),
    one("one_long_segment", KERNELS + "linear_quantized.c", "BLOCKS_PER_SEGMENT = 32",
        "BLOCKS_PER_SEGMENT = 1024", "exact_test oracle_units_products_test",
        "a new sum every 1024 elements"),
    one("block_not_fused", KERNELS + "linear_quantized.c",
        "segment = plumb__fma(d, power, segment);",
        "segment = plumb__load(plumb__store(d * power)) + segment;",
        "exact_test oracle_units_products_test", "a block is rounded once, to float32"),
    one("lanes_joined_in_order", "src/arith/lanes.h",
        "    for (int half = PLUMB_LANES / 2; half > 0; half /= 2)\n"
        "        for (int i = 0; i < half; i++) lane[i] = lane[i] + lane[i + half];\n",
        "    for (int i = 1; i < PLUMB_LANES; i++) lane[0] = lane[0] + lane[i];\n",
        "contract_test", "lanes are joined by a tree"),
    one("q8_scale_by_true_division", "src/arith/rounding.h",
        "plumb__ceil_log2(amax * plumb__float_of(0x3B124925u))",
        "plumb__ceil_log2(amax / 447.0f)", "oracle_units_formats_test exact_test",
        "the scale comes from a product with fl32(1/448)"),
    one("e2m1_ties_up", "src/arith/formats.h", "(uint32_t)(a > 0.25f)", "(uint32_t)(a >= 0.25f)",
        "oracle_units_formats_test contract_test", "ties to the even code"),
    one("bf16_rounds_up", "src/arith/formats.h", "(u + 0x7FFFu + ((u >> 16) & 1u)) >> 16",
        "(u + 0x8000u) >> 16", "oracle_units_formats_test contract_test", "ties to even"),

    # ---- Levels, threads, guards ----------------------------------------------------------------------
    one("avx2_differs", KERNELS + "rows.c", "    float r = 1.0f / plumb__sqrt(mean + eps);\n",
        "#ifdef __AVX2__\n"
        "    float r = plumb__float_of(plumb__bits_of(1.0f / plumb__sqrt(mean + eps)) + 1);\n"
        "#else\n"
        "    float r = 1.0f / plumb__sqrt(mean + eps);\n"
        "#endif\n",
        "kernels_test", "one level that is an ulp off", needs="avx2"),
    one("reads_one_too_far", KERNELS + "rows.c",
        "for (int64_t i = 0; i < width; i++) scratch[i] = plumb__load(x[i]);",
        "for (int64_t i = 0; i <= width; i++) scratch[i] = plumb__load(x[i]);",
        "kernels_test", "a read behind the row"),
    one("nan_not_noticed", KERNELS + "linear_quantized.c",
        "finite &= is_finite(plumb__absolute_max(value, PLUMB_BLOCK));", "(void)is_finite;",
        "threads_test", "a NaN activation is an error"),

    # ---- Sessions and files --------------------------------------------------------------------------
    one("rewind_past_its_point", "src/engine/session.c",
        "s->point[kept - 1].length > length) kept--;",
        "s->point[kept - 1].length > length + 1) kept--;", "session_test state_test equality_test",
        "a resume point must not lie beyond the wanted length"),
    one("failure_not_undone", "src/engine/session.c",
        "if (status != PLUMB_OK) plumb__state_restore_fixed(s->state, start, s->backup);",
        "if (status == PLUMB_ERROR_ARGUMENT) plumb__state_restore_fixed(s->state, start, s->backup);",
        "session_test", "a failed call leaves the session where it was"),
    one("context_not_checked", "src/engine/session.c", "if (n > s->options.context - length)",
        "if (n > INT64_MAX - length)", "session_test", "the context has an end"),
    one("weights_not_checked", "src/stream/weight_source.c",
        "    return plumb__checkpoint_check_values(source->checkpoint, tensor, begin, size, into, err);",
        "    return PLUMB_OK;", "damage_test", "NaN in an expert or a row is an error"),
    Mutation(
        "opened_in_the_callers_mode", "src/engine/model.c",
        [("    plumb__float_env_enter(&modes);\n", "    modes = 0;\n"),
         ("    plumb__float_env_leave(modes);\n", "    (void)modes;\n")],
        ["equality_test"], "rotary tables must not depend on the caller's rounding mode"),

    # ---- Text ------------------------------------------------------------------------------------------
    one("control_strings_in_peoples_text", "src/text/tokenizer.c",
        "match_added ? encode_template", "match_added || size > 0 ? encode_template",
        "test_tokenizer test_chat_encode test_chat_tokens",
        "what a person writes never becomes a control token"),

    # ---- AVX2 variants -----------------------------------------------------------------------
    one("avx2_low_plane_dropped", KERNELS + "matvec_avx2.c", "bool low = any_low(x, b);",
        "bool low = false;", "exact_test kernels_test", "two blocks of a hundred have one", "avx2"),
    one("avx2_low_plane_of_one_row", KERNELS + "matmul_avx2.c",
        "if (x[0].has_low[b] | x[1].has_low[b])\n", "if (x[0].has_low[b])\n", "kernels_test",
        "either row of a pair may have it", "avx2"),
    one("avx2_power_not_clamped", KERNELS + "quantized_avx2.h",
        "__m256i e = _mm256_max_epi32(biased, _mm256_setzero_si256());", "__m256i e = biased;",
        "exact_test kernels_test", "powers below the normal range are zero", "avx2"),
    one("avx2_halves_swapped", KERNELS + "linear_quantized_avx2.c",
        "finite &= store(sums[r].total[0], upper, out);",
        "finite &= store(sums[r].total[1], upper, out);", "kernels_test",
        "a panel is two vectors of weight rows", "avx2"),
    one("avx2_tail_block_lost", KERNELS + "matvec_avx2.c",
        "for (int64_t i = 0; i < count; i++) segment", "for (int64_t i = 0; i + 1 < count; i++) segment",
        "exact_test kernels_test", "the last chunk may be short", "avx2"),
    one("avx2_segments_joined", KERNELS + "matmul_avx2.c",
        "bool ends = (b + count) % PLUMB_BLOCKS_PER_SEGMENT == 0 ||", "bool ends =", "oracle_units_products_test kernels_test",
        "segments are summed on their own", "avx2"),

    # ---- Tiles, selection and rows that threads share ---------------------------------------------
    one("avx2_tree_in_another_order", KERNELS + "tiles_avx2.c",
        "_mm256_add_ps(_mm256_add_ps(quarter[0][i], quarter[2][i]),\n"
        "                                 _mm256_add_ps(quarter[1][i], quarter[3][i]));",
        "_mm256_add_ps(_mm256_add_ps(quarter[0][i], quarter[1][i]),\n"
        "                                 _mm256_add_ps(quarter[2][i], quarter[3][i]));",
        "contract_test kernels_test", "lane 16 is added to lane 0 first", "avx2"),
    one("avx2_one_row_in_another_order", KERNELS + "tiles_avx2.c",
        "_mm256_add_ps(lane[0], lane[2]), _mm256_add_ps(lane[1], lane[3])",
        "_mm256_add_ps(lane[0], lane[1]), _mm256_add_ps(lane[2], lane[3])",
        "contract_test kernels_test", "the same where a row is alone", "avx2"),
    one("avx2_long_rows_start_over", KERNELS + "tiles_avx2.c",
        "begin == 0 ? _mm256_setzero_ps() : lane[i];",
        "begin < CHUNK * 9 ? _mm256_setzero_ps() : lane[i];",
        "contract_test kernels_test", "a long row is one sum however it is read", "avx2"),
    one("avx2_column_that_is_not_there", KERNELS + "tiles_avx2.c",
        "column[i] = y + (c + (i < wide ? i : wide - 1)) * n;", "column[i] = y + (c + i) * n;",
        "kernels_test", "nothing is read behind the last column", "avx2"),
    one("avx2_stand_in_adds_twice", KERNELS + "tiles_avx2.c",
        "r + h < rows ? r + h : rows - 1;", "r + h < rows ? r + h : 0;", "contract_test kernels_test",
        "a sum that stands in starts with the others", "avx2"),
    one("avx2_nibbles_of_keys_swapped", KERNELS + "unpack_avx2.c",
        "low = _mm_unpacklo_epi8(even, odd)", "low = _mm_unpacklo_epi8(odd, even)",
        "contract_test kernels_test", "element 2i is the low nibble", "avx2"),
    one("second_tile_weighs_as_the_first", KERNELS + "attention.c",
        "PLUMB_KERNEL(add_weighted)(p + first,", "PLUMB_KERNEL(add_weighted)(p,", "contract_test",
        "each key has its own probability"),
    one("bits_of_the_last_key", "src/backend/cpu/select.c", "differ |= key[i] ^ first_key;",
        "differ = key[i] ^ first_key;", "select_test", "a byte is skipped only if all keys share it"),
    one("threads_score_the_first_keys", "src/backend/cpu/cpu_attention.c",
        "    if (!s->searched) from.keys += begin * plumb__index_row_bytes(from.dim);\n", "",
        "threads_test", "each thread scores its own keys"),
    one("second_mix_of_the_first_row", "src/backend/cpu/cpu_rows.c",
        "finish_mix(job, first + i, wide + i * job->width, m + i * MIX);",
        "finish_mix(job, first + i, wide + i * job->width, m);", "threads_test",
        "rows that are mixed together keep their own products"),
    one("nan_in_a_mix_not_noticed", "src/backend/cpu/cpu_rows.c",
        "finite &= (plumb__bits_of(m[i]) & 0x7F800000u) != 0x7F800000u;", "(void)m;",
        "threads_test", "a non-finite product is an error"),
    # ---- AVX-512 variants, by emulation --------------------------------------------------------
    one("avx512_low_plane_of_three_blocks", KERNELS + "matvec_avx512.c", " | x->has_low[3]) != 0",
        ") != 0", "exact_test kernels_test", "any of the four blocks may have it", "simde"),
    one("avx512_low_plane_of_the_last_row", KERNELS + "matmul_avx512.c",
        "low |= chunk[r]->has_low[in_chunk];", "low = chunk[r]->has_low[in_chunk];", "kernels_test",
        "any row of a tile may have it", "simde"),
    one("avx512_take_back_in_other_units", KERNELS + "matvec_avx512.c",
        "low ? 8 * x->take_high[i]", "low ? x->take_high[i]", "exact_test kernels_test",
        "12 times the sum is taken back in units of the result", "simde"),
    one("avx512_rows_transposed_wrongly", KERNELS + "matvec_avx512.c",
        "block[1] = _mm512_shuffle_i32x4(a, b, 0xDD);", "block[1] = _mm512_shuffle_i32x4(b, a, 0xDD);",
        "exact_test kernels_test", "a lane is a weight row", "simde"),
    one("avx512_join_loses_a_bit", KERNELS + "fp8_avx512.h", "(256 << shift) - 1",
        "(128 << shift) - 1", "exact_test kernels_test", "a block sum has up to 41 bits", "simde"),
    one("avx512_join_without_carry", KERNELS + "fp8_avx512.h",
        "    high = _mm512_add_epi32(high, _mm512_srai_epi32(low, 11));\n", "",
        "exact_test kernels_test", "the low planes reach into the high ones", "simde"),
    one("avx512_power_wraps", KERNELS + "quantized_avx512.h",
        "_mm512_max_epi16(_mm512_adds_epi16(weight, act), _mm512_setzero_si512())",
        "_mm512_adds_epi16(weight, act)", "exact_test kernels_test",
        "powers below the normal range are zero", "simde"),
    one("avx512_missing_rows_are_read", KERNELS + "quantized_avx512.h",
        "(i < rows ? i : rows - 1) * stride", "i * stride", "kernels_test exact_test",
        "a matrix ends somewhere", "simde"),
    one("avx512_scales_behind_the_end", KERNELS + "matvec_avx512.c",
        "plumb__transpose_avx512(w->scales, b, (__mmask16)((1u << count) - 1), scales);",
        "plumb__transpose_avx512(w->scales, b, 0xFFFF, scales);", "kernels_test exact_test",
        "so does a row of scales", "simde"),
    one("avx512_digit_of_129", KERNELS + "quantize_avx512.c", "_mm512_set1_epi16(128)",
        "_mm512_set1_epi16(127)", "exact_test kernels_test", "digits are -128 to 127", "simde"),
    one("avx512_bound_of_planes", KERNELS + "quantize_avx512.c",
        "_mm512_test_epi32_mask(value[h], _mm512_set1_epi32(7))",
        "_mm512_test_epi32_mask(value[h], _mm512_set1_epi32(3))", "exact_test kernels_test",
        "an eighth of what is high is whole", "simde"),
    one("avx512_subnormal_steps", KERNELS + "quantize_avx512.c", "(127 + 3) << 23", "(127 + 4) << 23",
        "exact_test kernels_test", "the least step of e4m3 is 2^-9", "simde"),
    one("avx512_segments_joined", KERNELS + "matmul_avx512.c",
        "if ((b + count) % PLUMB_BLOCKS_PER_SEGMENT == 0 ||", "if (",
        "oracle_units_products_test kernels_test",
        "segments are summed on their own", "simde"),
    one("avx512_empty_group_is_read", KERNELS + "matmul_avx512.c",
        "if (left <= 0) first = n, left = rows;", "if (left <= 0) left = rows;", "kernels_test",
        "a panel may have one group", "simde"),
    one("avx512_reads_behind_the_row", KERNELS + "linear_avx512.c",
        "_mm512_maskz_loadu_ps((__mmask16)(mask >> 16), x + 16)",
        "_mm512_maskz_loadu_ps((__mmask16)mask, x + 16)", "contract_test kernels_test",
        "a row may end inside either vector", "simde"),
    Mutation(
        "avx512_tree_of_lanes", KERNELS + "linear_avx512.c",
        [("_mm_movehl_ps(four, four)", "_mm_shuffle_ps(four, four, 0xB1)"),
         ("_mm_shuffle_ps(two, two, 1)", "_mm_shuffle_ps(two, two, 2)")],
        ["contract_test", "kernels_test"], "lanes are joined by a tree", "simde"),
    one("avx512_bf16_pairs", KERNELS + "quantize_avx512.c", "{0,  4,  1,  5,  2,", "{0,  1,  4,  5,  2,",
        "exact_test kernels_test", "pairs are four codes apart", "simde"),
    one("avx512_bf16_sums_rounded", KERNELS + "quantize_avx512.c",
        "store_bf16(high, 0x1p-6f, out->bf16_high[b]);",
        "store_bf16(value, 0x1p-9f, out->bf16_high[b]);", "kernels_test",
        "one plane alone does not stay below 2^24", "simde"),

    # ---- Rows that a layer may leave out -----------------------------------------------------------
    one("trapezoid_one_row_short", "src/model/needed_rows.c", "full - (c->window - 1)",
        "full - (c->window - 2)", "equality_test state_test",
        "a row reads window - 1 rows before it"),
    one("trapezoid_skips_compressed_keys", "src/model/needed_rows.c",
        "input = c->is_kv_source[l] ? 0 : key;", "input = key;", "state_test equality_test",
        "compressed keys are made of every row"),
]
