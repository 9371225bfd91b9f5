/* A specimen's folder copied, so that a test may damage its files. */
#ifndef PLUMB_TESTS_EQUAL_SPECIMEN_COPY_H
#define PLUMB_TESTS_EQUAL_SPECIMEN_COPY_H

#include "equal/specimen.h"

/* A copy under `parent` (made when it is not there), named `name`; files there are written anew.  Ends
 * the program when it cannot. */
specimen specimen_copy(const specimen *original, const char *parent, const char *name);
void specimen_copy_file(const char *from, const char *to);

#endif
