/* Journal records: numbered, published, repeated, and what became of them. */
#include "outbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "client.h"
#include "clock.h"
#include "connection.h"
#include "journal-ack.h"
#include "outcomes.h"
#include "record.h"
#include "sending.h"

/** How long a PubAck may take before the record is sent again. */
#define ACK_TIMEOUT_MS 2000
#define RETRY_FIRST_MS 50
#define RETRY_MAX_MS 1000
/** How often records without an answer are looked through. */
#define TICK_MS 100

static struct lane *lane_of(struct client *client, const struct piece *piece) {
  return &client->outbox.lanes[piece->shard];
}

static void free_message(struct client *client, struct piece *piece) {
  if (piece->is_busy) return;
  pool_give(&client->pool, piece->message, client->in_flight_max);
  piece->message = (struct buffer){0};
}

/** The record is in flight no more: its bytes can go. */
static void land(struct client *client, struct piece *piece) {
  free_message(client, piece);
  if (!piece->is_in_flight) return;
  piece->is_in_flight = false;
  client->outbox.in_flight -= piece->data_bytes;
  wake_for_room(client);
}

static void close_piece(struct client *client, struct piece *piece) {
  land(client, piece);
  lane_close(lane_of(client, piece), piece->n);
  piece->state = PIECE_DONE;
  call_wake(piece->sending->call);
}

/** Has a piece sent again, under another number. */
static void put_back(struct piece *piece) {
  size_t place = (size_t)(piece - piece->sending->pieces);
  piece->state = PIECE_WAITING;
  if (place < piece->sending->next) piece->sending->next = place;
}

/**
 * Sends a gradient again that was rejected, without the version it was made from: a shard that has fallen back
 * does not know the version any more. False if it named none.
 */
static bool send_unseen(struct client *client, struct piece *piece) {
  if (piece->seen == 0) return false;
  close_piece(client, piece);
  piece->forgets_seen = true;
  put_back(piece);
  return true;
}

void settle_piece(struct client *client, struct piece *piece, pserver_status status) {
  if (piece->state != PIECE_OPEN) return;
  bool is_to_be_unseen = ps_reaction_to_rejection(status) == PS_REJECTION_RESEND_UNSEEN;
  if (is_to_be_unseen && send_unseen(client, piece)) return;
  close_piece(client, piece);
  if (status == PSERVER_OK) sending_applied(piece->sending, piece);
  else sending_rejected(piece->sending, piece);
}

void abandon_piece(struct client *client, struct piece *piece) {
  if (piece->state != PIECE_OPEN) return;
  sending_ended(piece->sending);
  close_piece(client, piece);
  if (piece_is_stored_nowhere(piece)) sending_unsent(piece->sending, 1);
  else sending_unknown(piece->sending, piece);
}

static void open_piece(struct client *client, struct piece *piece, uint64_t n) {
  piece->state = PIECE_OPEN;
  piece->n = n;
  piece->sends = 0;
  piece->refusals = 0;
  piece->stored = (struct position){0};
  piece->retry_at_ms = NEVER_MS;
  piece->retry_delay_ms = RETRY_FIRST_MS;
  piece->ask_at_ms = NEVER_MS;
  piece->is_rejoined = false;
  piece->seen = seen_version(piece);
  piece->is_busy = true;
  piece->is_in_flight = true;
  client->outbox.in_flight += piece->data_bytes;
}

/** Publishes a record that is marked as busy. Lock held, and let go of meanwhile. */
static void publish_piece(struct client *client, struct piece *piece) {
  char subject[SUBJECT_ROOM];
  char reply[INBOX_ROOM + 64];
  record_subject(client, piece, subject);
  snprintf(reply, sizeof reply, "%s.ack.%" PRIu64 ".%u.%" PRIu64, client->inbox,
           client->session.number, piece->shard, piece->n);
  piece->sending_number = ++client->outbox.sendings;
  piece->sends++;
  piece->sent_at_ms = now_ms();
  piece->retry_at_ms = NEVER_MS;
  pthread_mutex_unlock(&client->lock);
  pserver_status status =
      publish(client, subject, reply, piece->message.bytes, piece->message_bytes);
  pthread_mutex_lock(&client->lock);
  piece->is_busy = false;
  if (piece->state != PIECE_OPEN || !piece->is_in_flight) {
    free_message(client, piece);
  } else if (status == PSERVER_ERR_NO_BROKER || status == PSERVER_ERR_IO) {
    /* The event of the next connection has it sent again, or this if the event came first. */
    if (status == PSERVER_ERR_NO_BROKER) piece->sends--;
    piece->retry_at_ms = now_ms() + RETRY_MAX_MS;
  } else if (status != PSERVER_OK) {
    piece->refusals++;
    settle_piece(client, piece, status);
  }
}

/** Makes a piece a record and sends it. Lock held, and let go of meanwhile. */
static void send_first(struct client *client, struct piece *piece) {
  struct lane *lane = lane_of(client, piece);
  uint64_t n = 0;
  if (!lane_open(lane, piece, &n)) {
    piece->state = PIECE_DONE;
    fail(PSERVER_ERR_INTERNAL, "no memory for the numbers of a shard");
    sending_rejected(piece->sending, piece);
    return;
  }
  struct record_head head = {client->session.number, n, lane->done};
  open_piece(client, piece, n);
  pthread_mutex_unlock(&client->lock);
  pserver_status status = write_record(client, piece, &head);
  pthread_mutex_lock(&client->lock);
  bool is_current = piece->state == PIECE_OPEN && client->session.number == head.session;
  if (status == PSERVER_OK && is_current) {
    publish_piece(client, piece);
    return;
  }
  piece->is_busy = false;
  if (status != PSERVER_OK) settle_piece(client, piece, status);
  free_message(client, piece);
}

/**
 * Whether a PubAck is overdue. The broker answers a shard's records in order, so a record is lost when
 * a later one has its PubAck, or when for 2 s none came at all; a slow link alone, on which PubAcks
 * still arrive, must not be filled with repeats.
 */
static bool is_lost(struct client *client, const struct piece *piece, int64_t now) {
  int64_t waits = piece->sends < 4 ? piece->sends : 4;
  if (now - piece->sent_at_ms < ACK_TIMEOUT_MS * waits) return false;
  return lane_of(client, piece)->acked_sending > piece->sending_number ||
         now - client->outbox.last_ack_ms >= ACK_TIMEOUT_MS;
}

/** Sends one record again if one is due; false if none is. */
static bool repeat_one(struct client *client, struct sending *sending, int64_t now) {
  for (size_t i = sending->first; i < sending->count; i++) {
    struct piece *piece = &sending->pieces[i];
    if (piece->state == PIECE_WAITING && i >= sending->next) break;
    if (piece->state != PIECE_OPEN || !piece->is_in_flight || piece->is_busy) continue;
    bool is_due = piece->retry_at_ms != NEVER_MS ? now >= piece->retry_at_ms
                                                 : is_lost(client, piece, now);
    if (!is_due) continue;
    piece->is_busy = true;
    publish_piece(client, piece);
    return true;
  }
  return false;
}

/** The piece to be sent next, if the windows admit it. */
static struct piece *next_piece(struct client *client, struct sending *sending) {
  sending->call->wants_room = false;
  while (sending->next < sending->count) {
    struct piece *piece = &sending->pieces[sending->next];
    if (piece->state != PIECE_WAITING) {
      sending->next++;
      continue;
    }
    size_t in_flight = client->outbox.in_flight;
    bool fits = in_flight == 0 || in_flight + piece->data_bytes <= client->in_flight_max;
    if (fits && lane_has_room(lane_of(client, piece))) return piece;
    sending->call->wants_room = true;
    return NULL;
  }
  return NULL;
}

/** Gives up what waits or is open; the reason is the last error. */
static void give_up(struct client *client, struct sending *sending) {
  sending_ended(sending);
  if (!client->is_connected) {
    set_failure(&sending->failures[1], PSERVER_ERR_NO_BROKER,
                "the connection to the broker is lost; the client goes on trying to reconnect");
    sending->obstacle = &sending->failures[1];
  }
  for (size_t i = 0; i < sending->count; i++) {
    struct piece *piece = &sending->pieces[i];
    if (piece->state == PIECE_WAITING) {
      piece->state = PIECE_DONE;
      sending_unsent(sending, 1);
    } else {
      abandon_piece(client, piece);
    }
  }
}

/** What was rejected keeps the rest from being sent. */
static void drop_waiting(struct sending *sending) {
  for (size_t i = 0; i < sending->count; i++) {
    if (sending->pieces[i].state != PIECE_WAITING) continue;
    sending->pieces[i].state = PIECE_DONE;
    sending_unsent(sending, 1);
  }
}

static void take_denials(struct client *client, struct sending *sending) {
  struct mail *mail = call_take_mail(sending->call, 0, 0);
  for (; mail != NULL; mail = call_take_mail(sending->call, 0, 0)) {
    for (size_t i = 0; i < sending->count && mail->denied_subject != NULL; i++) {
      struct piece *piece = &sending->pieces[i];
      char subject[SUBJECT_ROOM];
      if (piece->state != PIECE_OPEN) continue;
      record_subject(client, piece, subject);
      if (strcmp(subject, mail->denied_subject) != 0) continue;
      fail(PSERVER_ERR_DENIED, "the broker refuses publishing to %s: check the user's permissions",
           subject);
      settle_piece(client, piece, PSERVER_ERR_DENIED);
    }
    mail_free(mail);
  }
}

/** One thing that is to be done now, or waiting. Lock held. */
static void step(struct client *client, struct sending *sending) {
  if (sending->rejection != NULL) drop_waiting(sending);
  take_denials(client, sending);
  if (sending->left == 0) return;
  while (sending->pieces[sending->first].state == PIECE_DONE) sending->first++;
  int64_t now = now_ms();
  if (client->is_connected && !client->outbox.is_paused) {
    if (repeat_one(client, sending, now)) return;
    struct piece *piece = next_piece(client, sending);
    if (piece != NULL) {
      send_first(client, piece);
      return;
    }
    if (ask_for_outcomes(client, sending, now)) return;
  }
  call_wait(sending->call, now_ms() + TICK_MS);
}

pserver_status outbox_send(struct call *call, struct sending *sending) {
  struct client *client = call->client;
  sending->call = call;
  sending->left = sending->count;
  for (size_t i = 0; i < sending->count; i++) {
    sending->pieces[i].sending = sending;
    sending->pieces[i].state = PIECE_WAITING;
  }
  pthread_mutex_lock(&client->lock);
  while (sending->left > 0) {
    if (call_check(call) == PSERVER_OK) step(client, sending);
    else give_up(client, sending);
  }
  call->wants_room = false;
  pthread_mutex_unlock(&client->lock);
  return sending_status(sending);
}

/** What the ended session leaves: known to be stored nowhere, it is sent again; else unknown. */
static void restart_piece(struct client *client, struct piece *piece) {
  land(client, piece);
  if (!piece_is_stored_nowhere(piece) && !piece->is_rejoined) {
    piece->state = PIECE_DONE;
    sending_unknown(piece->sending, piece);
  } else {
    put_back(piece);
  }
  call_wake(piece->sending->call);
}

void outbox_start(struct client *client) {
  for (unsigned shard = 0; shard < LANES_MAX; shard++) {
    struct lane *lane = &client->outbox.lanes[shard];
    for (uint64_t n = lane->done + 1; n <= lane->last; n++) {
      struct piece *piece = lane_find(lane, n);
      if (piece != NULL) restart_piece(client, piece);
    }
    lane_restart(lane);
  }
  client->outbox.is_paused = false;
}

void outbox_on_ack(struct client *client, uint64_t session, unsigned shard, uint64_t n,
                   natsMsg *message) {
  if (session != client->session.number) return;
  struct piece *piece = lane_find(&client->outbox.lanes[shard], n);
  if (piece == NULL || !piece->is_in_flight) return;
  struct lane *lane = lane_of(client, piece);
  int64_t now = now_ms();
  client->outbox.last_ack_ms = now;
  struct journal_ack ack;
  read_journal_ack(client->job, message, &ack);
  if (ack.kind == ACK_STORED && ack.shard != shard) {
    ack.kind = ACK_REFUSED;
    fail(PSERVER_ERR_BAD_MESSAGE, "stored in the journal of shard %u; expected that of shard %u",
         ack.shard, shard);
  }
  if (ack.kind == ACK_STORED) {
    if (piece->sending_number > lane->acked_sending) lane->acked_sending = piece->sending_number;
    note_position(client, shard, ack.position);
    land(client, piece);
    piece->stored = ack.position;
    piece->ask_at_ms = now + ASK_AFTER_MS;
    if (piece->sending->stored_is_enough) settle_piece(client, piece, PSERVER_OK);
    else call_wake(piece->sending->call);
  } else if (ack.kind == ACK_LATER) {
    piece->refusals++;
    piece->retry_at_ms = now + piece->retry_delay_ms;
    piece->retry_delay_ms = doubled_ms(piece->retry_delay_ms, RETRY_MAX_MS);
    piece->sending->failures[1] = *last_failure();
    piece->sending->obstacle = &piece->sending->failures[1];
    call_wake(piece->sending->call);
  } else {
    piece->refusals++;
    settle_piece(client, piece, last_failure()->code);
  }
}

void outbox_on_reconnected(struct client *client) {
  client->outbox.last_ack_ms = now_ms();
  for (unsigned shard = 0; shard < LANES_MAX; shard++) {
    struct lane *lane = &client->outbox.lanes[shard];
    for (uint64_t n = lane->done + 1; n <= lane->last; n++) {
      struct piece *piece = lane_find(lane, n);
      if (piece == NULL) continue;
      piece->retry_at_ms = 0;
      if (piece->stored.generation != 0) piece->ask_at_ms = 0;
    }
    lane->asked_at_ms = 0;
  }
}

void outbox_release(struct outbox *outbox) {
  for (unsigned shard = 0; shard < LANES_MAX; shard++) lane_release(&outbox->lanes[shard]);
}
