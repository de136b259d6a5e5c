#include "core/core.h"
#include "errors/errors.h"
#include "push/push.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Joins the small block updates of a call, those of each shard, into batches. */

/** Maximum bytes of the entries that the headers of all records have. */
#define RECORD_HEAD_BYTES_MAX 1024
/** Maximum bytes of a block in the header: its row, and the version that a gradient was made from. */
#define ROW_BYTES_MAX 34

/** Begins a record with an update, the only one unless others are added. */
static void begin(struct ps_update_record *record, struct ps_update_source *source) {
  source->next = NULL;
  *record = (struct ps_update_record){.first = source, .last = source, .blocks = 1};
}

/** Whether an update can be an entry of a batch. */
static bool is_small(const struct ps_call_updates *updates, const struct ps_update_source *source) {
  return !updates->goes_alone && !ps_is_blockless(source->update->operation) &&
         source->entry_bytes < PS_BATCH_ENTRY_BYTES_MAX;
}

/** Adds an entry if the limits permit it, and if each parameter keeps one group, whose blocks ascend. */
static bool add(struct ps_update_record *batch, struct ps_update_source *source,
                const struct ps_batch_limits *limits) {
  const struct ps_update_source *last = batch->last;
  bool is_same_group = last->update == source->update;
  if (is_same_group ? source->index <= last->index : source->update->is_repeated) return false;
  size_t group_bytes = is_same_group ? 0 : ps_group_bytes_max(source->update);
  size_t head_bytes = batch->head_bytes + ROW_BYTES_MAX + group_bytes;
  size_t batch_bytes = batch->batch_bytes + ps_padded_bytes(source->entry_bytes);
  bool fits = batch->blocks < PS_BATCH_ENTRIES_MAX && batch_bytes <= PS_BATCH_BYTES &&
              head_bytes <= PS_BATCH_HEAD_BYTES_MAX &&
              head_bytes + batch_bytes <= limits->payload_bytes_max;
  if (!fits) return false;
  source->next = NULL;
  batch->last->next = source;
  batch->last = source;
  batch->blocks++;
  batch->batch_bytes = batch_bytes;
  batch->head_bytes = head_bytes;
  return true;
}

/**
 * Makes the records of a call's updates; `records` has memory for one record each. Returns their number.
 * The small updates of a shard go into as few batches as the limits permit; a large update, or a single
 * small one, has a record of its own. Within a shard, small updates keep their order, and so do large ones.
 */
static size_t ps_fill_batches(const struct ps_call_updates *updates, const struct ps_batch_limits *limits,
                              struct ps_update_record *records) {
  /* The batches being filled, by shard and by whether they are of integers only. */
  struct ps_update_record *open[PS_SHARDS_MAX][2] = {{NULL}};
  size_t count = 0;
  for (size_t i = 0; i < updates->count; i++) {
    struct ps_update_source *source = &updates->sources[i];
    struct ps_update_record *record = &records[count];
    if (!is_small(updates, source)) {
      begin(record, source);
      count++;
      continue;
    }
    const struct ps_parameter *parameter = source->update->parameter;
    bool is_apart = limits->separates_integers && !ps_dtype_is_float(parameter->dtype);
    struct ps_update_record **batch = &open[source->shard][is_apart];
    if (*batch != NULL && add(*batch, source, limits)) continue;
    begin(record, source);
    record->batch_bytes = ps_padded_bytes(source->entry_bytes);
    record->head_bytes = RECORD_HEAD_BYTES_MAX + ps_group_bytes_max(source->update) + ROW_BYTES_MAX;
    *batch = record;
    count++;
  }
  return count;
}

/* Carries out the commands of the outbox, on the I/O thread. */

/** The maximum span of open numbers of a session in a shard. */
#define WINDOW_RECORDS 1024

static const struct ps_update_record *record_of(const struct ps_block_update *update) {
  const struct ps_sending *sending = update->call->context;
  return &sending->records[update->index];
}

static struct ps_outgoing *outgoing_of(const struct ps_block_update *update) {
  const struct ps_sending *sending = update->call->context;
  return &sending->outgoing[update->index];
}

/** Writes and publishes a message. INTERNAL, TOO_LARGE, NO_BROKER: not sent. After OK it may be sent. */
static pserver_status publish_message(struct ps_update_sender *sender, const struct ps_outgoing *message) {
  const struct ps_block_update *update = message->update;
  const struct ps_identity *identity = sender->deps.identity;
  char subject[PS_SUBJECT_SIZE];
  char reply[PS_REPLY_SIZE];
  ps_record_subject(identity, record_of(update), subject);
  snprintf(reply, sizeof reply, "%s.ack.%" PRIi32 ".%" PRIu64, identity->inbox, update->slot,
           update->serial);
  pserver_status status =
      ps_write_record(identity, record_of(update), &message->head, &sender->buffer);
  if (status != PSERVER_OK) return status;
  status = ps_publish(sender->deps.connection, subject, reply, sender->buffer.bytes,
                      sender->buffer.used);
  return status == PSERVER_ERR_TOO_LARGE || status == PSERVER_ERR_NO_BROKER ? status : PSERVER_OK;
}

bool ps_sender_publish_next(struct ps_update_sender *sender) {
  struct ps_outgoing *message = ps_queue_take(&sender->queue);
  if (message == NULL) return false;
  pserver_status status = publish_message(sender, message);
  if (status == PSERVER_OK) return true;
  if (status == PSERVER_ERR_NO_BROKER) {
    /* The outbox repeats it on the next connection. */
    ps_outbox_withdrawn(message->update);
    return true;
  }
  struct ps_failure *failure = ps_failure_of_last();
  ps_outbox_denied(sender->outbox, message->update, failure, ps_now_ms());
  ps_failure_drop(failure);
  return true;
}

/* Commands of the outbox. */

static void publish(void *shell, struct ps_block_update *update, uint64_t session, uint64_t done) {
  struct ps_update_sender *sender = shell;
  struct ps_outgoing *message = outgoing_of(update);
  *message = (struct ps_outgoing){.update = update,
                               .head = {.session = session, .n = update->n, .done = done}};
  /* Noted only once, so that a repeat has the same bytes, whatever is read in between. */
  for (struct ps_update_source *each = record_of(update)->first; each != NULL; each = each->next) {
    each->seen = update->names_version ? ps_seen_version(each) : 0;
  }
  ps_queue_append(&sender->queue, &message->place, message);
}

static void repeat(void *shell, struct ps_block_update *update) {
  struct ps_update_sender *sender = shell;
  struct ps_outgoing *message = outgoing_of(update);
  /* One that still waits to be handed to the connection is handed over once. */
  if (!ps_queue_append(&sender->queue, &message->place, message)) ps_outbox_withdrawn(update);
}

static void release(void *shell, struct ps_block_update *update, bool is_reusable) {
  struct ps_update_sender *sender = shell;
  (void)is_reusable; /* cnats copies what is published. */
  if (ps_queue_remove(&sender->queue, &outgoing_of(update)->place)) ps_outbox_withdrawn(update);
}

static pserver_status write_outcome_request(struct ps_draft *draft, uint64_t session, const uint64_t *numbers,
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
static void ask_outcomes(void *shell, unsigned shard, uint64_t session, const uint64_t *numbers,
                         size_t count, struct ps_position at) {
  const struct ps_update_sender *sender = shell;
  const struct ps_identity *identity = sender->deps.identity;
  char subject[PS_SUBJECT_SIZE];
  char reply[PS_REPLY_SIZE];
  struct ps_draft draft;
  ps_draft_begin(&draft);
  snprintf(subject, sizeof subject, "ps.%s.shard.%u.%s.outcome", identity->job, shard, identity->id);
  snprintf(reply, sizeof reply, "%s.outcome.%u", identity->inbox, shard);
  if (write_outcome_request(&draft, session, numbers, count, at) == PSERVER_OK) {
    ps_publish(sender->deps.connection, subject, reply, draft.buffer.data, draft.buffer.size);
  }
  ps_draft_release(&draft);
}

static void set_timer(void *shell, int64_t at_ms) {
  struct ps_update_sender *sender = shell;
  ps_timer_set(&sender->deps.connection->io->timers, &sender->tick, at_ms);
}

static void on_tick(void *context) {
  const struct ps_update_sender *sender = context;
  ps_outbox_tick(sender->outbox, ps_now_ms());
}

/* Notifications of the outbox. */

/** Frees what the sender holds for a sending, and calls `over`. */
static void finish(struct ps_sending *sending, pserver_status status) {
  if (sending->call != NULL) {
    sending->call->context = NULL;
    ps_update_call_drop(sending->call, 1);
  }
  free(sending->outgoing);
  free(sending->records);
  sending->call = NULL;
  sending->outgoing = NULL;
  sending->records = NULL;
  sending->over(sending, status);
}

static void call_over(void *owner, struct ps_update_call *call, int64_t now_ms) {
  (void)now_ms;
  const struct ps_update_sender *sender = owner;
  struct ps_sending *sending = call->context;
  sending->updates->late = call->late;
  finish(sending,
         ps_call_error(call, sending->records, sender->deps.identity->trainer));
}

static void session_over(void *owner, struct ps_failure *failure, int64_t now_ms) {
  (void)now_ms;
  const struct ps_update_sender *sender = owner;
  sender->deps.session_over(sender->deps.owner, failure);
}

pserver_status ps_sender_init(struct ps_update_sender *sender, const struct ps_sender_deps *deps) {
  *sender = (struct ps_update_sender){
      .deps = *deps,
      .commands = {.shell = sender,
                   .publish = publish,
                   .repeat = repeat,
                   .release = release,
                   .ask_outcomes = ask_outcomes,
                   .set_timer = set_timer},
      .listener = {.owner = sender, .call_over = call_over, .session_over = session_over},
      .tick = {.due = on_tick, .context = sender},
  };
  const struct ps_outbox_deps outbox_deps = {.commands = &sender->commands,
                                             .listener = &sender->listener,
                                             .positions = deps->positions,
                                             .in_flight_bytes_max = deps->in_flight_bytes_max,
                                             .window_records = WINDOW_RECORDS};
  sender->outbox = ps_outbox_new(&outbox_deps);
  return sender->outbox == NULL ? ps_fail(PSERVER_ERR_INTERNAL, "no memory for a client") : PSERVER_OK;
}

void ps_sender_start(struct ps_update_sender *sender, uint64_t session, bool separates_integers,
                     int64_t now_ms) {
  sender->limits.separates_integers = separates_integers;
  ps_outbox_start(sender->outbox, session, now_ms);
}

void ps_sender_free(struct ps_update_sender *sender) {
  ps_outbox_destroy(sender->outbox);
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

static bool names_version(const struct ps_update_record *record) {
  for (const struct ps_update_source *each = record->first; each != NULL; each = each->next) {
    if (ps_seen_version(each) > 0) return true;
  }
  return false;
}

static struct ps_update_call *new_update_call(const struct ps_update_record *records, size_t count,
                                              struct ps_call_mode mode) {
  struct ps_update_size *sizes = calloc(count + 1, sizeof *sizes);
  if (sizes == NULL) return NULL;
  for (size_t i = 0; i < count; i++) {
    sizes[i] = (struct ps_update_size){.shard = records[i].first->shard,
                                       .blocks = records[i].blocks,
                                       .data_bytes = ps_record_data_bytes(&records[i]),
                                       .names_version = names_version(&records[i])};
  }
  struct ps_update_call *made = ps_update_call_new(0, mode, sizes, count);
  free(sizes);
  return made;
}

/** Makes the records of a sending and allocates its state; false if there is no memory. */
static bool prepare(struct ps_update_sender *sender, struct ps_sending *sending) {
  const struct ps_call_updates *updates = sending->updates;
  sending->records = calloc(updates->count + 1, sizeof(struct ps_update_record));
  if (sending->records == NULL) return false;
  sender->limits.payload_bytes_max = ps_payload_bytes_max(sender->deps.connection);
  size_t count = ps_fill_batches(updates, &sender->limits, sending->records);
  sending->call = new_update_call(sending->records, count, updates->mode);
  sending->outgoing = calloc(count + 1, sizeof(struct ps_outgoing));
  return sending->call != NULL && sending->outgoing != NULL;
}

void ps_sending_begin(struct ps_update_sender *sender, struct ps_sending *sending) {
  sending->sender = sender;
  if (prepare(sender, sending)) {
    sending->call->context = sending;
    if (ps_outbox_send(sender->outbox, sending->call, ps_now_ms())) return;
  }
  finish(sending,
         ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu updates", sending->updates->count));
}

void ps_sending_end(struct ps_sending *sending) {
  if (sending->call == NULL) return;
  struct ps_failure *failure = ps_failure_of_last();
  ps_outbox_end_call(sending->sender->outbox, sending->call, failure, ps_now_ms());
  ps_failure_drop(failure);
}
