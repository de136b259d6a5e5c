#ifndef PULL_READ_REQUESTS_H
#define PULL_READ_REQUESTS_H

#include "pull/read-plan.h"
#include "wire/requests.h"

/** How long to retry a pull before its parameter is looked up again, and a batched read that nobody listens
 * to. */
#define PS_READ_RETRY_MS 1000

/** Prepares the ps_ask of a request of a plan; the request must outlive it. */
void ps_ask_for_read(struct ps_read_request *request, struct ps_ask *ask);

/** The parts of this that are specific to pulls and to batched reads. */
void ps_ask_for_block(struct ps_read_request *request, struct ps_ask *ask);
void ps_ask_for_batch(struct ps_read_request *request, struct ps_ask *ask);

/** Writes the position and the step that the shard must have reached to answer; returns the generation. */
uint64_t ps_draft_read_condition(struct ps_ask *ask, struct ps_draft *draft);

/** Notes that the shard has answered, at this position. */
void ps_note_read_answer(struct ps_read_request *request, struct ps_position position);

#endif
