/* fsync, link and flock of the test program itself, in place of the C library's: they can fail, and
 * something may happen just before one of them. */
#ifndef PLUMB_TESTS_CONVERT_FAULTY_SYSTEM_H
#define PLUMB_TESTS_CONVERT_FAULTY_SYSTEM_H

typedef struct faulty_call {
    int calls;                 /* since it was last set */
    int failing;               /* the call that fails, from 1; 0: none */
    int error;                 /* errno of that one */
    int disturbed;             /* the call before which `before` happens, from 1; 0: none */
    void (*before)(void);
} faulty_call;

extern faulty_call faulty_fsync, faulty_link, faulty_flock;

/* All of them do what they should again. */
void faulty_system_reset(void);

#endif
