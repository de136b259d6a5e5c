#ifndef PUSH_UPDATE_SENDER_H
#define PUSH_UPDATE_SENDER_H

#include <nats/nats.h>

#include "core/outbox.h"
#include "core/queue.h"
#include "push/fill-batches.h"
#include "push/record.h"
#include "wire/connection.h"
#include "wire/identity.h"

/** Dependencies of ps_update_sender, which they must outlive. */
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
 * Carries out the commands of the outbox that need a connection, a clock or memory for messages, on the I/O
 * thread. A record is written when nothing else is due, and written again, with the same bytes, for each
 * repeat.
 */
struct ps_update_sender {
  struct ps_sender_deps deps;
  struct ps_outbox *outbox;
  struct ps_outbox_commands commands;
  struct ps_outbox_listener listener;
  struct ps_batch_limits limits;
  /** Memory for the record that is being published. */
  struct ps_record_buffer buffer;
  /** Records that wait to be published, one at a time, so that answers and requests do not wait for all. */
  struct ps_queue queue;
  struct ps_timer tick;
};

/** The message of a record: what is needed to write it, each time it is published. */
struct ps_outgoing {
  struct ps_block_update *update;
  struct ps_record_head head;
  struct ps_queue_link place;
};

/** The sending of one call's block updates. The caller owns it, and keeps it until `over`. */
struct ps_sending {
  struct ps_call_updates *updates;
  /** Called once no update is pending, with OK or the last error. May free the sending. */
  void (*over)(struct ps_sending *sending, pserver_status status);
  void *context;

  /** Set by the sender. */
  struct ps_update_sender *sender;
  struct ps_update_call *call;
  /** One of each for every record. */
  struct ps_update_record *records;
  struct ps_outgoing *outgoing;
};

/** Initializes a sender that waits for the first session. INTERNAL. */
pserver_status ps_sender_init(struct ps_update_sender *sender, const struct ps_sender_deps *deps);
/** Sends in this session from now on; numbers start again at 1. The flags apply to calls that begin later. */
void ps_sender_start(struct ps_update_sender *sender, uint64_t session, bool takes_batches,
                     bool separates_integers, int64_t now_ms);
/** Frees what the sender holds; no call may be under way. */
void ps_sender_free(struct ps_update_sender *sender);

/**
 * Sends block updates, small ones of a shard together, until all are applied, or stored if that is enough.
 * The sources and what they refer to must not change until it is over. Fails with the first rejection; with
 * OUTCOME_UNKNOWN, which names the updates, if it ends before their outcomes are known; with what ended it,
 * or kept updates from being stored, if none can be applied. On the I/O thread, as the functions below.
 */
void ps_sending_begin(struct ps_update_sender *sender, struct ps_sending *sending);

/** Ends a sending that is under way with the last error. */
void ps_sending_end(struct ps_sending *sending);

/** Publishes the record that has waited longest; false if none is waiting. */
bool ps_sender_publish_next(struct ps_update_sender *sender);

/** The broker denied publishing to a subject. */
void ps_sender_denied(struct ps_update_sender *sender, const char *subject);

/** Takes the PubAck of the record with this serial in a slot. */
void ps_on_ack(struct ps_update_sender *sender, uint64_t slot, uint64_t serial, natsMsg *message);

/** Takes outcomes that an owner has sent by itself. */
void ps_on_answers(struct ps_update_sender *sender, natsMsg *message);

/** Takes the reply to a request for outcomes. */
void ps_on_outcome_reply(struct ps_update_sender *sender, unsigned shard, natsMsg *message);

#endif
