/* What an audit of a folder reads, piece by piece in the order of the files: all of it, or a
 * sample. */
#ifndef PLUMB_CONVERT_FOLDER_PIECES_H
#define PLUMB_CONVERT_FOLDER_PIECES_H

#include "format/checkpoint.h"

enum { PLUMB_PIECE_BYTES = 8 << 20 };

typedef struct plumb_piece {
    int64_t tensor;      /* its number in the checkpoint */
    int64_t begin, size; /* of its payload; begin is a multiple of PLUMB_PIECE_BYTES */
} plumb_piece;

typedef struct plumb_pieces {
    plumb_piece *piece; /* [count] */
    int64_t count;
    int64_t tensors, bytes; /* that these touch */
} plumb_pieces;

typedef enum plumb_piece_choice {
    PLUMB_PIECES_ALL,
    PLUMB_PIECES_SAMPLE,        /* about one in a hundred */
    PLUMB_PIECES_SAMPLE_TENSORS /* the same of whole tensors, none of more than 1 % of all bytes
                                 * unless there is no other */
} plumb_piece_choice;

PLUMB_MUST_CHECK plumb_status plumb__pieces_list(const plumb_checkpoint *checkpoint,
                                                 plumb_piece_choice choice, plumb_pieces *pieces,
                                                 plumb_error *err);
void plumb__pieces_free(plumb_pieces *pieces);

#endif
