/* Seconds since some moment, never going back. */
#ifndef PLUMB_BASE_CLOCK_H
#define PLUMB_BASE_CLOCK_H

double plumb__now(void);

#endif
