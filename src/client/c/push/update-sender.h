#ifndef PUSH_UPDATE_SENDER_H
#define PUSH_UPDATE_SENDER_H

#include <nats/nats.h>

#include "core/outbox.h"
#include "push/fill-batches.h"
#include "push/outgoing.h"
#include "push/record.h"
#include "wire/connection.h"
#include "wire/identity.h"

/** Dependencies of update_sender; what they refer to lives as long as it. */
struct ps_sender_deps {
  const struct ps_identity *identity;
  struct ps_connection *connection;
  struct ps_positions *positions;
  size_t in_flight_bytes_max;
  void *owner;
  /** A host says that the session is over: SUPERSEDED or REJOIN. */
  void (*session_over)(void *owner, struct ps_failure *failure);
};

/**
 * Does for the outbox what takes a connection, a clock or memory for messages, on the I/O thread. A
 * record is drafted when nothing else is due, and drafted again, to the same bytes, when it is repeated.
 */
struct ps_update_sender {
  struct ps_sender_deps deps;
  struct ps_outbox *outbox;
  struct ps_outbox_commands commands;
  struct ps_outbox_listener listener;
  struct ps_batch_limits limits;
  /** Memory of the record that is being published. */
  struct ps_record_buffer buffer;
  /** Records that wait to be published, so that answers and requests do not wait for all of them. */
  struct ps_outgoing_queue queue;
  struct ps_timer tick;
};

/** The block updates of one call under way; it belongs to whoever begins it, until `over`. */
struct ps_sending {
  struct ps_call_updates *updates;
  /** All have their fate: OK, or the last error. May free the sending. */
  void (*over)(struct ps_sending *sending, pserver_status status);
  void *context;

  /** State of the sender. */
  struct ps_update_sender *sender;
  struct ps_update_call *call;
  /** One of each for a record. */
  struct ps_update_record *records;
  struct ps_outgoing *outgoing;
};

/** INTERNAL if there is no memory. */
pserver_status ps_sender_init(struct ps_update_sender *sender, const struct ps_sender_deps *deps);
/**
 * Sends under this session from now on: numbers start over. Calls that begin later fill batches if the job
 * takes them. On the I/O thread.
 */
void ps_sender_start(struct ps_update_sender *sender, uint64_t session, bool takes_batches,
                     bool separates_integers, int64_t now_ms);
/** Frees it; no call may be under way. */
void ps_sender_free(struct ps_update_sender *sender);

/**
 * Sends block updates, small ones of a shard together, until all of them were applied, or stored if that is
 * enough. The sources and what they refer to must not change until it is over. The first rejection; OUTCOME_UNKNOWN, naming the
 * updates, if it ends before; what ended it or kept them from being stored if none can have been applied.
 * On the I/O thread, as all below.
 */
void ps_sending_begin(struct ps_update_sender *sender, struct ps_sending *sending);

/** Ends it, if it is under way, by the last error. */
void ps_sending_end(struct ps_sending *sending);

/** Publishes the record that has waited longest; false if none waits. */
bool ps_sender_publish_next(struct ps_update_sender *sender);

/** The broker refused what was published to a subject. */
void ps_sender_denied(struct ps_update_sender *sender, const char *subject);

/** A PubAck for the record with this serial in a slot. */
void ps_on_ack(struct ps_update_sender *sender, uint64_t slot, uint64_t serial, natsMsg *message);

/** Answers that came by themselves: each is to the first copy of its record, or a repeat. */
void ps_on_answers(struct ps_update_sender *sender, natsMsg *message);

/** The reply to a question for outcomes. */
void ps_on_outcome_reply(struct ps_update_sender *sender, unsigned shard, natsMsg *message);

#endif
