/* Addresses as kernels see them. */
#ifndef PLUMB_TESTS_METAL_MTLGPUADDRESS_H
#define PLUMB_TESTS_METAL_MTLGPUADDRESS_H

#include <stdint.h>

/* https://developer.apple.com/documentation/metal/mtlgpuaddress (uint64_t itself in SDKs before macOS 26) */
typedef uint64_t MTLGPUAddress;

#endif
