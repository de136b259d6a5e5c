#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include <stdbool.h>

#include "clock.h"

/** Sets time back to its beginning. */
void set_clock(void);

/** Has the next thing happen while somebody waits; false if nothing is left. No lock is held. */
bool something_happens(void);

#endif
