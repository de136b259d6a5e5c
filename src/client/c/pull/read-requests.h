#ifndef PULL_READ_REQUESTS_H
#define PULL_READ_REQUESTS_H

#include "pull/read-plan.h"
#include "wire/requests.h"

/** How long a pull is retried before its parameter is looked up again, and a batched read without an owner. */
#define PS_READ_RETRY_MS 1000

/** Makes the question that a request of a plan is; it lives no longer than the request. */
void ps_ask_for_read(struct ps_read_request *request, struct ps_ask *ask);

/** The same for one block, by its own subject, and for a batch. */
void ps_ask_for_block(struct ps_read_request *request, struct ps_ask *ask);
void ps_ask_for_batch(struct ps_read_request *request, struct ps_ask *ask);

/** Drafts what a shard has to have reached before it answers; returns the generation that it names. */
uint64_t ps_draft_read_condition(struct ps_ask *ask, struct ps_draft *draft);

/** Notes that the shard has answered at this position. */
void ps_note_read_answer(struct ps_read_request *request, struct ps_position position);

#endif
