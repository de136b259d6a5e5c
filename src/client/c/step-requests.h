#ifndef STEP_REQUESTS_H
#define STEP_REQUESTS_H

#include "client.h"

/**
 * Waits until shards, those with a true entry, know the members of a revision and have closed a step;
 * notes how far each is. `most` gets the largest of their closed steps, `least` the smallest.
 */
pserver_status ask_for_step(struct call *call, const bool shards[LANES_MAX], uint64_t revision,
                            uint64_t step, uint64_t *most, uint64_t *least);

/** Tells every shard that this trainer has ended its steps up to this one. */
pserver_status send_clocks(struct call *call, uint64_t step);

#endif
