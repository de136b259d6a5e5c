#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include "calls/client.h"
#include "wire/clock.h"

/** Sets time back to its beginning. */
void set_clock(void);

/** The time since set_clock(), which goes on only while somebody waits; asking for it takes none. */
int64_t time_ms(void);

/** The test's: when the next thing happens, by time_ms(), PS_NEVER_MS if nothing is left; and has it
 * happen. No lock is held. */
int64_t next_event_ms(void);
void happen(void);

/** Lets time go on until the client can do nothing more. */
void run_until_lost(const struct ps_client *client);

#endif
