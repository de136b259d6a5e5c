/* Sends block updates for the outbox. */
#include "push/update-sender.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/call.h"
#include "calls/client.h"
#include "push/call-error.h"
#include "push/parameter-update.h"
#include "push/record.h"
#include "wire/clock.h"
#include "wire/connection.h"

/** Open numbers of one session in a shard. */
#define WINDOW_RECORDS 1024

/** A message to be published: a record, kept to be repeated until its PubAck, or a question. */
struct outgoing {
  struct outgoing *next;
  char subject[SUBJECT_SIZE];
  char reply[INBOX_SIZE + 64];
  struct buffer buffer;
  size_t bytes;
  bool is_question;
  /** The record, until it is released; NULL for a question. */
  struct ps_block_update *update;
  bool is_queued;
  /** Whether it is being published, so that its bytes must stay. */
  bool is_busy;
  /** Whether to publish it once more when it is not busy any more. */
  bool is_again;
  /** Whether the outbox needs it no more. */
  bool is_released;
};

/** A call that waits in ps_send_sources(). */
struct sent_call {
  struct call *call;
  const struct update_source *sources;
  bool is_over;
};

static void enqueue(struct update_sender *sender, struct outgoing *message) {
  message->next = NULL;
  message->is_queued = true;
  if (sender->first == NULL) sender->first = message;
  else sender->last->next = message;
  sender->last = message;
}

static void free_message(struct client *client, struct outgoing *message) {
  ps_pool_give(&client->sender.pool, message->buffer, client->in_flight_max);
  free(message);
}

static const struct update_source *source_of(const struct ps_block_update *update) {
  const struct sent_call *sent = update->call->context;
  return &sent->sources[update->index];
}

/** Wakes the call of a record, which then publishes what is queued. */
static void wake_call_of(const struct ps_block_update *update) {
  const struct sent_call *sent = update->call->context;
  ps_call_wake(sent->call);
}

static bool reserve_slot(struct update_sender *sender, size_t slot) {
  if (slot < sender->kept_count) return true;
  size_t count = sender->kept_count == 0 ? 64 : 2 * sender->kept_count;
  if (count <= slot) count = slot + 1;
  struct outgoing **kept = realloc(sender->kept, count * sizeof(struct outgoing *));
  if (kept == NULL) return false;
  for (size_t i = sender->kept_count; i < count; i++) kept[i] = NULL;
  sender->kept = kept;
  sender->kept_count = count;
  return true;
}

/** Writes the message of a record. INTERNAL without memory; TOO_LARGE. */
static pserver_status make_message(struct client *client, struct ps_block_update *update,
                                   const struct record_head *head, struct outgoing **made) {
  const struct update_source *source = source_of(update);
  struct outgoing *message = calloc(1, sizeof *message);
  if (message == NULL || !reserve_slot(&client->sender, (size_t)update->slot)) {
    free(message);
    return ps_fail(PSERVER_ERR_INTERNAL, "no memory for a message");
  }
  message->update = update;
  ps_record_subject(client, source, message->subject);
  snprintf(message->reply, sizeof message->reply, "%s.ack.%" PRIi32 ".%" PRIu64, client->inbox,
           update->slot, update->serial);
  pserver_status status = ps_write_record(client, source, head, &message->buffer, &message->bytes);
  if (status == PSERVER_OK) status = ps_check_payload(client, message->subject, message->bytes);
  if (status == PSERVER_OK) *made = message;
  else free_message(client, message);
  return status;
}

static void publish(void *shell, struct ps_block_update *update, uint64_t session, uint64_t done) {
  struct client *client = shell;
  struct update_sender *sender = &client->sender;
  struct outgoing *message = NULL;
  struct record_head head = {
      .session = session,
      .n = update->n,
      .done = done,
      .seen = update->names_version ? ps_seen_version(source_of(update)) : 0,
  };
  if (make_message(client, update, &head, &message) != PSERVER_OK) {
    struct ps_failure *failure = ps_failure_of_last();
    ps_outbox_publish_failed(sender->outbox, update, failure);
    ps_failure_drop(failure);
    return;
  }
  sender->kept[update->slot] = message;
  enqueue(sender, message);
  wake_call_of(update);
}

static void repeat(void *shell, struct ps_block_update *update) {
  struct client *client = shell;
  struct outgoing *message = client->sender.kept[update->slot];
  if (message->is_busy) message->is_again = true;
  else if (!message->is_queued) enqueue(&client->sender, message);
  wake_call_of(update);
}

static void release(void *shell, struct ps_block_update *update, bool is_reusable) {
  (void)is_reusable; /* cnats copies what is published: memory that is not busy can be used again. */
  struct client *client = shell;
  struct outgoing *message = client->sender.kept[update->slot];
  client->sender.kept[update->slot] = NULL;
  message->is_released = true;
  message->update = NULL;
  if (!message->is_queued && !message->is_busy) free_message(client, message);
}

static pserver_status write_question(struct draft *draft, uint64_t session, const uint64_t *numbers,
                                     size_t count, struct position at) {
  ps_draft_whole(draft, "session", session);
  ps_draft_key(draft, "numbers");
  ps_pack_list(draft, count);
  for (size_t i = 0; i < count; i++) ps_pack_whole(draft, numbers[i]);
  ps_draft_whole(draft, "generation", at.generation);
  ps_draft_whole(draft, "seq", at.seq);
  return ps_draft_end(draft);
}

/** What cannot be asked for want of memory is asked again with the next question. */
static void ask_outcomes(void *shell, unsigned shard, uint64_t session, const uint64_t *numbers,
                         size_t count, struct position at) {
  struct client *client = shell;
  struct outgoing *message = calloc(1, sizeof *message);
  if (message == NULL) return;
  struct draft draft;
  ps_draft_begin(&draft);
  if (write_question(&draft, session, numbers, count, at) == PSERVER_OK) {
    message->buffer = ps_pool_take(&client->sender.pool, draft.buffer.size);
    message->bytes = draft.buffer.size;
  }
  if (message->buffer.bytes != NULL) {
    memcpy(message->buffer.bytes, draft.buffer.data, draft.buffer.size);
    message->is_question = true;
    message->is_released = true;
    snprintf(message->subject, sizeof message->subject, "ps.%s.shard.%u.%s.outcome", client->job, shard,
             client->id);
    snprintf(message->reply, sizeof message->reply, "%s.outcome.%u", client->inbox, shard);
    enqueue(&client->sender, message);
  } else {
    free(message);
  }
  ps_draft_release(&draft);
}

static void set_timer(void *shell, int64_t at_ms) {
  struct client *client = shell;
  client->sender.tick_at_ms = at_ms;
  ps_wake_lease(client);
}

static void call_over(void *owner, struct ps_update_call *call, int64_t now_ms) {
  (void)owner;
  (void)now_ms;
  struct sent_call *sent = call->context;
  sent->is_over = true;
  ps_call_wake(sent->call);
}

static void session_over(void *owner, struct ps_failure *failure, int64_t now_ms) {
  (void)now_ms;
  struct client *client = owner;
  ps_session_core_ended(&client->session.core, failure);
}

pserver_status ps_sender_init(struct client *client) {
  struct update_sender *sender = &client->sender;
  sender->tick_at_ms = NEVER_MS;
  sender->commands = (struct ps_outbox_commands){.shell = client,
                                                 .publish = publish,
                                                 .repeat = repeat,
                                                 .release = release,
                                                 .ask_outcomes = ask_outcomes,
                                                 .set_timer = set_timer};
  sender->listener =
      (struct ps_outbox_listener){.owner = client, .call_over = call_over, .session_over = session_over};
  const struct ps_outbox_deps deps = {.commands = &sender->commands,
                                      .listener = &sender->listener,
                                      .positions = &client->positions,
                                      .in_flight_bytes_max = client->in_flight_max,
                                      .window_records = WINDOW_RECORDS};
  sender->outbox = ps_outbox_new(&deps);
  return sender->outbox == NULL ? ps_fail(PSERVER_ERR_INTERNAL, "no memory for a client") : PSERVER_OK;
}

void ps_sender_free(struct update_sender *sender) {
  ps_outbox_destroy(sender->outbox);
  /* Of records that were given up nothing is kept; only questions can be queued still. */
  while (sender->first != NULL) {
    struct outgoing *message = sender->first;
    sender->first = message->next;
    free(message->buffer.bytes);
    free(message);
  }
  free(sender->kept);
  ps_pool_free(&sender->pool);
}

/** Publishes one message. What fails without a connection is repeated on the next one. */
static void publish_message(struct client *client, struct outgoing *message) {
  message->is_busy = true;
  pthread_mutex_unlock(&client->lock);
  ps_publish(client, message->subject, message->reply, message->buffer.bytes, message->bytes);
  pthread_mutex_lock(&client->lock);
  bool is_again = message->is_again;
  message->is_busy = false;
  message->is_again = false;
  if (message->is_released) free_message(client, message);
  else if (is_again) enqueue(&client->sender, message);
}

bool ps_flush(struct client *client) {
  struct update_sender *sender = &client->sender;
  bool was_any = sender->first != NULL;
  while (sender->first != NULL) {
    struct outgoing *message = sender->first;
    sender->first = message->next;
    message->is_queued = false;
    if (message->is_released && !message->is_question) free_message(client, message);
    else publish_message(client, message);
  }
  return was_any;
}

bool ps_tick_if_due(struct client *client) {
  int64_t now = ps_now_ms();
  if (now < client->sender.tick_at_ms) return false;
  client->sender.tick_at_ms = NEVER_MS;
  ps_outbox_tick(client->sender.outbox, now);
  return true;
}

/** Rejects the records that the broker refused to take. */
static void take_denials(struct client *client, struct call *call) {
  struct mail *mail = ps_call_take_mail(call, 0, 0);
  for (; mail != NULL; mail = ps_call_take_mail(call, 0, 0)) {
    for (size_t slot = 0; slot < client->sender.kept_count && mail->denied_subject != NULL; slot++) {
      const struct outgoing *message = client->sender.kept[slot];
      if (message == NULL || strcmp(message->subject, mail->denied_subject) != 0) continue;
      ps_fail(PSERVER_ERR_DENIED, "the broker refuses publishing to %s: check the user's permissions",
              message->subject);
      struct ps_failure *failure = ps_failure_of_last();
      ps_outbox_denied(client->sender.outbox, message->update, failure, ps_now_ms());
      ps_failure_drop(failure);
    }
    ps_mail_free(mail);
  }
}

static void end_call(struct client *client, struct ps_update_call *call) {
  struct ps_failure *failure = ps_failure_of_last();
  ps_outbox_end_call(client->sender.outbox, call, failure, ps_now_ms());
  ps_failure_drop(failure);
}

static void await_end(struct call *call, struct ps_update_call *update_call,
                      const struct sent_call *sent) {
  struct client *client = call->client;
  while (!sent->is_over) {
    if (ps_call_check(call) != PSERVER_OK) {
      end_call(client, update_call);
      continue;
    }
    take_denials(client, call);
    if (sent->is_over || ps_flush(client) || ps_tick_if_due(client)) continue;
    ps_call_wait(call, client->sender.tick_at_ms);
  }
}

static struct ps_update_call *new_update_call(const struct call_updates *updates) {
  struct ps_update_size *sizes = calloc(updates->count + 1, sizeof *sizes);
  if (sizes == NULL) return NULL;
  for (size_t i = 0; i < updates->count; i++) {
    const struct update_source *source = &updates->sources[i];
    sizes[i] = (struct ps_update_size){.shard = source->shard,
                                       .data_bytes = source->data_bytes,
                                       .names_version = ps_seen_version(source) > 0};
  }
  struct ps_update_call *made = ps_update_call_new(0, updates->mode, sizes, updates->count);
  free(sizes);
  return made;
}

pserver_status ps_send_sources(struct call *call, struct call_updates *updates) {
  struct client *client = call->client;
  struct sent_call sent = {.call = call, .sources = updates->sources};
  struct ps_update_call *update_call = new_update_call(updates);
  if (update_call == NULL)
    return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu updates", updates->count);
  update_call->context = &sent;
  pthread_mutex_lock(&client->lock);
  pserver_status status = PSERVER_OK;
  if (ps_outbox_send(client->sender.outbox, update_call, ps_now_ms())) {
    await_end(call, update_call, &sent);
    status = ps_call_error(update_call, updates->sources, client->trainer);
    updates->late = update_call->late;
    update_call->context = NULL;
  } else {
    status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu updates", updates->count);
  }
  ps_update_call_drop(update_call, 1);
  pthread_mutex_unlock(&client->lock);
  return status;
}
