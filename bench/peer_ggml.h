/* ggml's CPU kernels as the peer to compare with, through ggml's public C API in prebuilt shared
 * libraries (scripts/fetch-peer).  Nothing of ggml is needed to build.
 *
 * A folder holds libggml-base and one library per instruction level; every level that this machine
 * can run is tried and the fastest kept.  Likewise a product is tried with its weights as they are
 * and in each repacked form that the level offers. */
#ifndef BENCH_PEER_GGML_H
#define BENCH_PEER_GGML_H

#include "backend/backend.h"

typedef struct bench_peer bench_peer;

/* NULL after a message on stderr. */
bench_peer *bench_peer_open(const char *folder);
void bench_peer_close(bench_peer *peer);
const char *bench_peer_level(const bench_peer *peer); /* the library's name for it: "haswell" */

/* `copies` different matrices [n][k] of the type that stands nearest to ours: MXFP4 for FP4, Q8_0
 * for FP8; each is multiplied with the same `tokens` rows of activations, which ggml quantises
 * itself. */
typedef struct bench_peer_product bench_peer_product;
bench_peer_product *bench_peer_product_create(bench_peer *peer, plumb_matrix_type type, int64_t n,
                                              int64_t k, int64_t tokens, int64_t copies,
                                              int threads);
void bench_peer_product_destroy(bench_peer_product *product);
void bench_peer_product_run(bench_peer_product *product);
const char *bench_peer_product_name(const bench_peer_product *product); /* "MXFP4 repacked" */
int64_t bench_peer_product_bytes(const bench_peer_product *product);    /* of all weights */

#endif
