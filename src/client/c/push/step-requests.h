#ifndef PUSH_STEP_REQUESTS_H
#define PUSH_STEP_REQUESTS_H

#include "calls/client.h"

/**
 * Asks shards, those with a true entry, how far they are once they know this revision of the members and
 * have closed the step that the call waits for. Raises `step_answered` or `ask_failed` for each; all that
 * are unanswered fail with the first error. Clears the entries.
 */
void ps_ask_for_step(struct call *call, struct ps_step_call *step_call, bool shards[PS_SHARDS_MAX],
                     uint64_t revision);

/** Tells every shard that this trainer has ended its steps up to this one. */
pserver_status ps_send_clocks(struct call *call, uint64_t step);

#endif
