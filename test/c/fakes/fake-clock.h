#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include "client/client.h"
#include "wire/wire.h"

/** Sets the clock to its initial time. */
void set_clock(void);

/** Returns the time since set_clock(), which advances only while a thread waits. Reading it takes no time. */
int64_t time_ms(void);

/** Defined by the test: return the time_ms() of the next event, PS_NEVER_MS if there is none; and make it
 * happen, with no lock held. */
int64_t next_event_ms(void);
void happen(void);

/** Lets so much time pass, in which the I/O thread runs and events happen. */
void run_for(int64_t duration_ms);

/** Advances the clock until the client has failed for good. */
void run_until_lost(const struct ps_client *client);

#endif
