/* Calls of the test program itself, in place of the C library's.  fsync, link and flock can fail, and
 * something may happen just before one of them; ioctl and fstatvfs can be those of another disk. */
#ifndef PLUMB_TESTS_CONVERT_FAULTY_SYSTEM_H
#define PLUMB_TESTS_CONVERT_FAULTY_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct faulty_call {
    int calls;                 /* since it was last set */
    int failing;               /* the call that fails, from 1; 0: none */
    int error;                 /* errno of that one */
    int disturbed;             /* the call before which `before` happens, from 1; 0: none */
    void (*before)(void);
} faulty_call;

extern faulty_call faulty_fsync, faulty_link, faulty_flock;

typedef struct faulty_disk {
    bool shares;   /* files can share ranges (which are copied, in truth) */
    int shared;    /* so many were */
    bool is_small; /* `available` is what it tells of its free space, in bytes */
    int64_t available;
} faulty_disk;

extern faulty_disk faulty_disk_now;

/* All of them do what they should again. */
void faulty_system_reset(void);

#endif
