/* Copies bytes between places that need not be aligned; a thread takes sixteen. */
#include "backend/metal/kernels/common.h"

kernel void copy(device plumb_metal_control &control [[buffer(0)]],
                 constant plumb_metal_copy &args [[buffer(1)]],
                 device const uchar *from [[buffer(2)]], device uchar *to [[buffer(3)]],
                 uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control)) return;
    ulong at = (ulong)item * 16, bytes = args.bytes;
    ulong end = at + 16 < bytes ? at + 16 : bytes;
    for (; at + 4 <= end; at += 4)
        *(device packed_uchar4 *)(to + at) = *(device const packed_uchar4 *)(from + at);
    for (; at < end; at++) to[at] = from[at];
}
