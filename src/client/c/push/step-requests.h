#ifndef PUSH_STEP_REQUESTS_H
#define PUSH_STEP_REQUESTS_H

#include "calls/client.h"

/**
 * Waits until shards, those with a true entry, know the members of a revision and have closed a step;
 * notes how far each is. `most` gets the largest of their closed steps, `least` the smallest.
 */
pserver_status ps_ask_for_step(struct call *call, const bool shards[PS_SHARDS_MAX], uint64_t revision,
                               uint64_t step, uint64_t *most, uint64_t *least);

/** Tells every shard that this trainer has ended its steps up to this one. */
pserver_status ps_send_clocks(struct call *call, uint64_t step);

#endif
