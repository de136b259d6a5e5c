#ifndef PUSH_UPDATE_SENDER_H
#define PUSH_UPDATE_SENDER_H

#include <nats/nats.h>
#include <pserver.h>

#include "core/outbox.h"
#include "push/buffer-pool.h"
#include "push/update-source.h"

struct call;
struct client;
struct outgoing;

/**
 * Does for the outbox what takes a connection, a clock or memory for messages. The client's lock guards
 * it; messages that the outbox publishes are queued, and published by ps_flush() without the lock.
 */
struct update_sender {
  struct ps_outbox *outbox;
  struct ps_outbox_commands commands;
  struct ps_outbox_listener listener;
  struct buffer_pool pool;
  /** By slot: the message of the record in flight there; NULL if it is not kept any more. */
  struct outgoing **kept;
  size_t kept_count;
  /** Messages that wait to be published. */
  struct outgoing *first;
  struct outgoing *last;
  /** When the outbox wants its tick; NEVER_MS if it does not. */
  int64_t tick_at_ms;
};

/** Makes the outbox of a client, whose positions are set up. INTERNAL if there is no memory. */
pserver_status ps_sender_init(struct client *client);
/** Frees it; no call may be under way. */
void ps_sender_free(struct update_sender *sender);

/**
 * Sends block updates and waits until all of them were applied, or stored if that is enough. The sources
 * and what they refer to must not change until then. The first rejection; OUTCOME_UNKNOWN, naming the
 * updates, if the call ends before; what ended it or kept them from being stored if none can have been
 * applied.
 */
pserver_status ps_send_sources(struct call *call, struct call_updates *updates);

/** Publishes the queued messages; false if there is none. Lock held, and let go of meanwhile. */
bool ps_flush(struct client *client);

/** Raises the tick of the outbox if it is due; false if it is not. Lock held, as below. */
bool ps_tick_if_due(struct client *client);

/** A PubAck for the record with this serial in a slot. */
void ps_on_ack(struct client *client, uint64_t slot, uint64_t serial, natsMsg *message);

/** Answers that came by themselves: each is to the first copy of its record, or a repeat. */
void ps_on_answers(struct client *client, natsMsg *message);

/** The reply to a question for outcomes. */
void ps_on_outcome_reply(struct client *client, unsigned shard, natsMsg *message);

#endif
