/* Sizes of grids and threadgroups. */
#ifndef PLUMB_TESTS_METAL_MTLTYPES_H
#define PLUMB_TESTS_METAL_MTLTYPES_H

#import <Metal/MTLDefines.h>

/* https://developer.apple.com/documentation/metal/mtlsize */
typedef struct {
    NSUInteger width, height, depth;
} MTLSize;

/* https://developer.apple.com/documentation/metal/mtlsizemake(_:_:_:) */
MTL_INLINE MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth)
{
    MTLSize size = {width, height, depth};
    return size;
}

#endif
