#include "records/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sends the records of calls, and passes what becomes of them to the outbox. */

/* Carries out the commands of the outbox, on the I/O thread. */

static struct ps_record *record_of(const struct ps_block_update *update) {
  const struct ps_sending *sending = update->call->context;
  return &sending->records[update->index];
}

/** Tells the outbox what has become of handing a record to the connection. */
static void take_publication(struct ps_update_sender *sender, const struct ps_record *record,
                             pserver_status status) {
  if (status == PSERVER_ERR_NO_BROKER) {
    /* The outbox repeats it on the next connection. */
    ps_outbox_withdrawn(record->update);
  } else if (status == PSERVER_ERR_TOO_LARGE || status == PSERVER_ERR_INTERNAL) {
    struct ps_failure *failure = ps_failure_of_last();
    ps_outbox_denied(sender->outbox, record->update, failure, ps_now_ms());
    ps_failure_drop(failure);
  }
}

/** Asks for the PING of the outbox once all records that were published before it are handed over. */
static void send_ping(struct ps_update_sender *sender) {
  if (!sender->is_ping_due || sender->is_writing) return;
  const struct ps_record *next = ps_queue_first(&sender->queue);
  if (next != NULL && next->update->send_number <= sender->ping_number) return;
  sender->is_ping_due = false;
  sender->question = ps_link_ask(sender->deps.connection);
}

static void on_written(struct ps_publication *publication, pserver_status status) {
  struct ps_update_sender *sender = publication->context;
  const struct ps_record *record = sender->written;
  sender->is_writing = false;
  sender->written = NULL;
  if (record != NULL) take_publication(sender, record, status);
  send_ping(sender);
}

/** Publishes a record, now or on the thread of the publisher. */
static void publish_record(struct ps_update_sender *sender, struct ps_record *record) {
  const struct ps_identity *identity = sender->deps.identity;
  struct ps_connection *connection = sender->deps.connection;
  const struct ps_record_buffer *buffer = &sender->buffer;
  ps_record_subject(identity, record, sender->subject);
  snprintf(sender->reply, sizeof sender->reply, "%s.ack.%" PRIi32 ".%" PRIu64, identity->inbox,
           record->update->slot, record->update->serial);
  pserver_status status = ps_encode_gradients(&sender->residuals, record);
  if (status == PSERVER_OK) status = ps_write_record(identity, record, &sender->buffer);
  if (status == PSERVER_OK && !ps_can_write_now(connection, buffer->used)) {
    sender->publication = (struct ps_publication){.subject = sender->subject,
                                                  .reply = sender->reply,
                                                  .bytes = buffer->bytes,
                                                  .count = buffer->used,
                                                  .done = on_written,
                                                  .context = sender};
    status = ps_publish_later(connection, &sender->publication);
    sender->is_writing = status == PSERVER_OK;
    sender->written = sender->is_writing ? record : NULL;
  } else if (status == PSERVER_OK) {
    status = ps_publish(connection, sender->subject, sender->reply, buffer->bytes, buffer->used);
  }
  if (!sender->is_writing) take_publication(sender, record, status);
}

bool ps_sender_publish_next(struct ps_update_sender *sender) {
  const struct ps_connection *connection = sender->deps.connection;
  if (sender->queue.count == 0 || sender->is_writing) return false;
  if (ps_is_publishing(connection) || ps_link_is_due(connection)) return false;
  publish_record(sender, ps_queue_take(&sender->queue));
  send_ping(sender);
  return true;
}

void ps_sender_confirmed(struct ps_update_sender *sender, uint64_t number) {
  if (sender->question == 0 || number < sender->question) return;
  sender->question = 0;
  ps_outbox_read(sender->outbox, sender->ping_number, ps_now_ms());
}

/* Progress of calls. */

static bool has_unstored(const struct ps_update_call *call) {
  for (size_t i = 0; i < call->update_count; i++) {
    const struct ps_block_update *update = &call->updates[i];
    if (update->fate == PS_FATE_PENDING && update->stored.generation == 0) return true;
  }
  return false;
}

/** Tells calls that they have made progress: updates have their fate, or come nearer to the broker. */
static void note_progress(struct ps_update_sender *sender, bool has_moved) {
  for (struct ps_queue_link *link = sender->sendings.first; link != NULL; link = link->next) {
    struct ps_sending *sending = link->item;
    bool has_fates = sending->call->pending != sending->pending;
    sending->pending = sending->call->pending;
    if (has_fates || (has_moved && has_unstored(sending->call))) ps_call_progressed(sending->waiting);
  }
}

void ps_sender_moved(struct ps_update_sender *sender) { note_progress(sender, true); }

/* Commands of the outbox. */

static void publish(void *owner, struct ps_block_update *update, uint64_t session, uint64_t done) {
  struct ps_update_sender *sender = owner;
  struct ps_record *record = record_of(update);
  record->update = update;
  record->header = (struct ps_record_header){.session = session, .n = update->n, .done = done};
  record->names_versions = update->names_version;
  sender->records++;
  ps_queue_append(&sender->queue, &record->place, record);
}

static void repeat(void *owner, struct ps_block_update *update) {
  struct ps_update_sender *sender = owner;
  struct ps_record *record = record_of(update);
  sender->resent++;
  /* One that still waits to be handed to the connection is handed over once. */
  if (!ps_queue_append(&sender->queue, &record->place, record)) ps_outbox_withdrawn(update);
}

static void release(void *owner, struct ps_block_update *update, bool is_reusable) {
  struct ps_update_sender *sender = owner;
  (void)is_reusable; /* cnats copies what is published. */
  struct ps_record *record = record_of(update);
  if (ps_queue_remove(&sender->queue, &record->place)) ps_outbox_withdrawn(update);
  if (sender->written == record) sender->written = NULL;
}

pserver_status ps_write_outcome_request(struct ps_draft *draft, uint64_t session, const uint64_t *numbers,
                                        size_t count, struct ps_position at) {
  ps_draft_whole(draft, "session", session);
  ps_draft_key(draft, "numbers");
  ps_pack_list(draft, count);
  for (size_t i = 0; i < count; i++) ps_pack_whole(draft, numbers[i]);
  ps_draft_whole(draft, "generation", at.generation);
  ps_draft_whole(draft, "seq", at.seq);
  return ps_draft_end(draft);
}

/**
 * Asks for outcomes. Without memory or a connection nothing is sent; the next request asks for them again.
 */
static void ask_outcomes(void *owner, unsigned shard, uint64_t session, const uint64_t *numbers,
                         size_t count, struct ps_position at) {
  const struct ps_update_sender *sender = owner;
  const struct ps_identity *identity = sender->deps.identity;
  char subject[PS_SUBJECT_SIZE];
  char reply[PS_REPLY_SIZE];
  struct ps_draft draft;
  ps_draft_begin(&draft);
  snprintf(subject, sizeof subject, "ps.%s.shard.%u.%s.outcome", identity->job, shard, identity->id);
  snprintf(reply, sizeof reply, "%s.outcome.%u", identity->inbox, shard);
  if (ps_write_outcome_request(&draft, session, numbers, count, at) == PSERVER_OK) {
    ps_publish(sender->deps.connection, subject, reply, draft.buffer.data, draft.buffer.size);
  }
  ps_draft_release(&draft);
}

static void ping(void *owner, uint64_t send_number) {
  struct ps_update_sender *sender = owner;
  sender->is_ping_due = true;
  sender->ping_number = send_number;
  sender->question = 0;
  send_ping(sender);
}

static void set_timer(void *owner, int64_t at_ms) {
  struct ps_update_sender *sender = owner;
  ps_timer_set(&sender->deps.connection->io->timers, &sender->tick, at_ms);
}

static void on_tick(void *context) {
  struct ps_update_sender *sender = context;
  note_progress(sender, sender->has_stored);
  sender->has_stored = false;
  ps_outbox_tick(sender->outbox, ps_now_ms());
}

/* Notifications of the outbox. */

/** Frees what the sender holds for a sending, and calls `over`. */
static void finish(struct ps_sending *sending, pserver_status status) {
  ps_queue_remove(&sending->sender->sendings, &sending->place);
  if (sending->call != NULL) {
    sending->call->context = NULL;
    ps_update_call_drop(sending->call, 1);
  }
  ps_release_records(sending);
  sending->call = NULL;
  sending->over(sending, status);
}

static void call_over(void *owner, struct ps_update_call *call, int64_t now_ms) {
  (void)now_ms;
  const struct ps_update_sender *sender = owner;
  struct ps_sending *sending = call->context;
  sending->late = call->late;
  sending->taken = call->applied + call->unknown;
  sending->version = call->version;
  finish(sending, ps_call_error(call, sending->records, sender->deps.identity->trainer));
}

static void session_over(void *owner, struct ps_failure *failure, int64_t now_ms) {
  (void)now_ms;
  const struct ps_update_sender *sender = owner;
  sender->deps.session_over(sender->deps.owner, failure);
}

pserver_status ps_sender_init(struct ps_update_sender *sender, const struct ps_sender_deps *deps) {
  *sender = (struct ps_update_sender){
      .deps = *deps,
      .commands = {.owner = sender,
                   .publish = publish,
                   .repeat = repeat,
                   .release = release,
                   .ask_outcomes = ask_outcomes,
                   .ping = ping,
                   .set_timer = set_timer},
      .listener = {.owner = sender, .call_over = call_over, .session_over = session_over},
      .tick = {.due = on_tick, .context = sender},
  };
  const struct ps_outbox_deps outbox_deps = {.commands = &sender->commands,
                                             .listener = &sender->listener,
                                             .positions = deps->positions,
                                             .in_flight_bytes_max = deps->in_flight_bytes_max,
                                             .window_records = PS_WINDOW_RECORDS};
  sender->outbox = ps_outbox_new(&outbox_deps);
  return sender->outbox == NULL ? ps_no_memory("a client") : PSERVER_OK;
}

void ps_sender_start(struct ps_update_sender *sender, uint64_t session, bool separates_integers,
                     int64_t now_ms) {
  sender->limits.separates_integers = separates_integers;
  ps_outbox_start(sender->outbox, session, now_ms);
}

void ps_sender_free(struct ps_update_sender *sender) {
  ps_outbox_destroy(sender->outbox);
  ps_residuals_forget(&sender->residuals);
  free(sender->buffer.bytes);
}

void ps_sender_denied(struct ps_update_sender *sender, const char *subject) {
  struct ps_block_update *update = sender->outbox->in_flight.list.first;
  while (update != NULL) {
    char published[PS_SUBJECT_SIZE] = "";
    if (update->call->context != NULL && update->fate == PS_FATE_PENDING) {
      ps_record_subject(sender->deps.identity, record_of(update), published);
    }
    if (strcmp(published, subject) != 0) {
      update = update->next;
      continue;
    }
    ps_fail(PSERVER_ERR_DENIED, "the broker refuses publishing to %s: check the user's permissions",
            subject);
    struct ps_failure *failure = ps_failure_of_last();
    ps_outbox_denied(sender->outbox, update, failure, ps_now_ms());
    ps_failure_drop(failure);
    /* Other records may have left the list with it. */
    update = sender->outbox->in_flight.list.first;
  }
}

/* Calls. */

/** Makes the records of a sending and allocates its state; false if there is no memory. */
static bool prepare(struct ps_update_sender *sender, struct ps_sending *sending) {
  sender->limits.payload_bytes_max = ps_payload_bytes_max(sender->deps.connection);
  if (!ps_make_records(sending, &sender->limits)) return false;
  sending->call = ps_update_call_new(0, sending->mode, sending->record_count);
  for (size_t i = 0; i < sending->record_count && sending->call != NULL; i++) {
    const struct ps_record *record = &sending->records[i];
    ps_update_call_add(sending->call, ps_first_source(record)->shard, record->blocks,
                       ps_record_data_bytes(record), ps_record_has_versions(record));
  }
  return sending->call != NULL;
}

void ps_sending_begin(struct ps_update_sender *sender, struct ps_sending *sending) {
  sending->sender = sender;
  if (prepare(sender, sending)) {
    sending->call->context = sending;
    sending->pending = sending->call->pending;
    ps_queue_append(&sender->sendings, &sending->place, sending);
    if (ps_outbox_send(sender->outbox, sending->call, ps_now_ms())) return;
  }
  finish(sending, ps_no_memory("%zu updates", sending->count));
}

void ps_sending_end(struct ps_sending *sending) {
  if (sending->call == NULL) return;
  struct ps_failure *failure = ps_failure_of_last();
  ps_outbox_end_call(sending->sender->outbox, sending->call, failure, ps_now_ms());
  ps_failure_drop(failure);
}

/* Passes the answers of broker and hosts about records to the outbox. */

void ps_on_ack(struct ps_update_sender *sender, uint64_t slot, uint64_t serial, natsMsg *message) {
  struct ps_outbox *outbox = sender->outbox;
  struct ps_journal_ack ack;
  int64_t now = ps_now_ms();
  ps_read_journal_ack(sender->deps.identity->job, message, &ack);
  if (ack.kind == PS_ACK_STORED) {
    sender->has_stored = true;
    ps_outbox_stored(outbox, slot, serial, ack.shard, ack.position, now);
    return;
  }
  struct ps_failure *failure = ps_failure_of_last();
  ps_outbox_refused(outbox, slot, serial, failure, ack.kind == PS_ACK_LATER, now);
  ps_failure_drop(failure);
}

/**
 * Returns the rejection in the row of an outcome, with one reference; NULL if the record was applied. Its text
 * is the code if the row has none.
 */
static struct ps_failure *read_rejection(const struct ps_value *code, const struct ps_value *text) {
  if (code->type != PS_VALUE_TEXT) return NULL;
  pserver_status status = ps_status_from_name((const char *)code->content, code->content_bytes);
  const struct ps_value *said = text->type == PS_VALUE_TEXT && text->content_bytes > 0 ? text : code;
  ps_fail(status, "%.*s", (int)said->content_bytes, (const char *)said->content);
  return ps_failure_of_last();
}

/** Reads what a guard has decided about a record that was not rejected: a list that begins with the action. */
static void read_decision(const struct ps_value *decision, struct ps_outcome *outcome) {
  struct ps_value action;
  const uint8_t *at = NULL;
  if (decision->type != PS_VALUE_LIST || !ps_list_next(decision, &at, &action)) return;
  outcome->is_clipped = ps_value_is_text(&action, "clip");
  outcome->is_set_aside = ps_value_is_text(&action, "set-aside");
}

/** Reads a row: n, seq, version, and for a rejection code and message, or what a guard has decided. */
static bool read_row(const struct ps_value *row, struct ps_outcome *outcome) {
  struct ps_value entries[5] = {0};
  const uint8_t *at = NULL;
  for (int i = 0; i < 5 && ps_list_next(row, &at, &entries[i]); i++) continue;
  *outcome = (struct ps_outcome){0};
  if (!ps_value_whole(&entries[0], &outcome->n) || !ps_value_whole(&entries[1], &outcome->seq))
    return false;
  ps_value_whole(&entries[2], &outcome->version);
  outcome->failure = read_rejection(&entries[3], &entries[4]);
  read_decision(&entries[3], outcome);
  return true;
}

/** Passes outcomes to the outbox. A malformed message or row is ignored: its outcomes will be asked for. */
static void take_answers(struct ps_update_sender *sender, const struct ps_message *message,
                         bool is_reply) {
  struct ps_answers answers = {0};
  uint64_t shard;
  struct ps_value rows;
  struct ps_value row;
  const uint8_t *at = NULL;
  bool is_valid = ps_map_whole(&message->fields, "shard", &shard) && shard < PS_SHARDS_MAX &&
                  ps_map_whole(&message->fields, "generation", &answers.generation) &&
                  ps_map_whole(&message->fields, "session", &answers.session) &&
                  ps_map_find(&message->fields, "outcomes", &rows) && rows.type == PS_VALUE_LIST;
  if (!is_valid || rows.count > message->fields.raw_bytes) return;
  struct ps_outcome *outcomes = calloc((size_t)rows.count + 1, sizeof *outcomes);
  if (outcomes == NULL) return;
  while (ps_list_next(&rows, &at, &row)) answers.count += read_row(&row, &outcomes[answers.count]);
  answers.shard = (unsigned)shard;
  answers.outcomes = outcomes;
  uint64_t guarded = sender->outbox->guarded;
  ps_outbox_answered(sender->outbox, &answers, is_reply, ps_now_ms());
  /* What rounding has left out of an update that was not applied as it was must not be made good. */
  if (sender->outbox->guarded > guarded) ps_residuals_forget(&sender->residuals);
  for (size_t i = 0; i < answers.count; i++) ps_failure_drop(outcomes[i].failure);
  free(outcomes);
}

static pserver_status open_received(natsMsg *received, struct ps_message *message) {
  return ps_open_message((const uint8_t *)natsMsg_GetData(received),
                         (size_t)natsMsg_GetDataLength(received), message);
}

void ps_on_answers(struct ps_update_sender *sender, natsMsg *received) {
  struct ps_message message;
  if (open_received(received, &message) != PSERVER_OK) return;
  if (ps_error_in_message(&message) == PSERVER_OK) take_answers(sender, &message, false);
}

static void ask_failed(struct ps_update_sender *sender, unsigned shard, const struct ps_message *message) {
  struct ps_failure *failure = ps_failure_of_last();
  if (message != NULL && failure->references > 0) {
    failure->expected = ps_expected_position(message);
    failure->received = ps_received_session(message);
  }
  ps_outbox_ask_failed(sender->outbox, shard, failure, message == NULL ? 0 : ps_retry_after_ms(message),
                       ps_now_ms());
  ps_failure_drop(failure);
}

void ps_on_outcome_reply(struct ps_update_sender *sender, unsigned shard, natsMsg *received) {
  struct ps_message message;
  if (natsMsg_IsNoResponders(received)) {
    ps_fail(PSERVER_ERR_NO_OWNER, "no host serves shard %u", shard);
    ask_failed(sender, shard, NULL);
  } else if (open_received(received, &message) == PSERVER_OK) {
    if (ps_error_in_message(&message) == PSERVER_OK) take_answers(sender, &message, true);
    else ask_failed(sender, shard, &message);
  }
}
