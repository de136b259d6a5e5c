#ifndef OUTCOMES_H
#define OUTCOMES_H

#include "client.h"
#include "envelope.h"

/** How long an answer may take before it is asked for. */
#define ASK_AFTER_MS 1000

/** Answers that came by themselves: each is to the first copy of its record, or a repeat. Lock held. */
void on_answers(struct client *client, natsMsg *message);

/** The reply to a question of ask_for_outcomes(). Lock held. */
void on_outcome_reply(struct client *client, unsigned shard, natsMsg *message);

/**
 * Asks a shard for the outcomes that are due, of all calls in one message, if one of this call's is;
 * false if there is nothing to ask. Lock held, and let go of meanwhile.
 */
bool ask_for_outcomes(struct client *client, struct sending *sending, int64_t now);

/**
 * After JOURNAL_REPLACED: positions of the old generation mean nothing any more. The message names
 * where the new journal stands. Lock held.
 */
void note_replaced(struct client *client, unsigned shard, const struct message *message);

#endif
