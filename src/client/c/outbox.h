#ifndef OUTBOX_H
#define OUTBOX_H

#include <nats/nats.h>
#include <pserver.h>

#include "buffer-pool.h"
#include "errors.h"
#include "lane.h"
#include "position.h"

struct call;
struct client;
struct update;
struct part_slice;

/** Shards of a job at most, each with a lane. */
#define LANES_MAX 256

/** The records of a client that are under way. */
struct outbox {
  struct lane lanes[LANES_MAX];
  /** Bytes without a PubAck. */
  size_t in_flight;
  /** Sendings of records, ever: the place of each among all. */
  uint64_t sendings;
  int64_t last_ack_ms;
  /** Between two sessions nothing is sent. */
  bool is_paused;
};

enum piece_state { PIECE_WAITING, PIECE_OPEN, PIECE_DONE };

/** What became of a piece, for errors. */
enum piece_fate { FATE_NONE, FATE_APPLIED, FATE_UNKNOWN };

/** One journal record to be: a tensor, or the part of it that is one block. */
struct piece {
  /** What it does, to which parameter. */
  const struct update *update;
  uint32_t index;
  unsigned shard;
  /** Its elements: `elements` of them at `values`, or as the slice says. */
  const uint8_t *values;
  uint64_t start;
  uint64_t elements;
  const struct part_slice *slice;
  size_t data_bytes;
  struct sending *sending;

  enum piece_state state;
  enum piece_fate fate;
  /** The version that its record names; 0 for none. */
  uint64_t seen;
  /** Whether it names none any more, which a shard has refused. */
  bool forgets_seen;
  uint64_t n;
  /** The message, kept to be repeated until its PubAck. */
  struct buffer message;
  size_t message_bytes;
  /** Whether it is being published, so that its bytes must stay. */
  bool is_busy;
  bool is_in_flight;
  /** How often it was sent, and how often the broker said that it did not store it. */
  unsigned sends;
  unsigned refusals;
  uint64_t sending_number;
  int64_t sent_at_ms;
  /** When to send it again after a refusal, or at once; NEVER_MS if that is not due. */
  int64_t retry_at_ms;
  int64_t retry_delay_ms;
  struct position stored;
  int64_t ask_at_ms;
  /** Whether a host refused it because its session had ended: it was never applied. */
  bool is_rejoined;
};

/** The pieces of one call, which fails or succeeds as one. */
struct sending {
  struct call *call;
  struct piece *pieces;
  size_t count;
  bool stored_is_enough;
  /** Pieces before it are done. */
  size_t first;
  /** Pieces before it do not wait. */
  size_t next;
  size_t left;
  size_t applied;
  size_t unknown;
  size_t unsent;
  /** Gradients whose step had closed, where that is no error. */
  bool counts_late;
  size_t late;
  /** The first piece that is unknown. */
  const struct piece *first_unknown;
  /** The first rejection; the last thing that kept a piece from being stored; what ended the call. */
  struct failure *rejection;
  struct failure *obstacle;
  struct failure *end;
  struct failure failures[3];
};

/**
 * Sends pieces and waits until all of them were applied, or stored if that is enough. At most
 * `in_flight_bytes` are on their way without a PubAck, and 1,024 numbers a shard without an outcome. A
 * record is repeated until its PubAck and no longer. The first rejection; OUTCOME_UNKNOWN if the call
 * ends before; what ended it or kept the pieces from being stored if none of them was sent.
 */
pserver_status outbox_send(struct call *call, struct sending *sending);

/** Sends under a new session; numbers start over. Lock held, as below. */
void outbox_start(struct client *client);

void outbox_on_ack(struct client *client, uint64_t session, unsigned shard, uint64_t n,
                   natsMsg *message);
void outbox_on_reconnected(struct client *client);

/** A piece has its outcome: OK, or the rejection that is the last error. */
void settle_piece(struct client *client, struct piece *piece, pserver_status status);

/** A piece will not be sent again, and whether it was applied will not be known; the reason is the
 * last error. */
void abandon_piece(struct client *client, struct piece *piece);

void outbox_release(struct outbox *outbox);

#endif
