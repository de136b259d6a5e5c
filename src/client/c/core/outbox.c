#include "core/core.h"

#include <stdio.h>
#include <stdlib.h>

/* Publishes journal records and learns their outcomes. */

/** How long a PubAck may take, once the broker has read the record, before the record is repeated. */
#define ACK_TIMEOUT_MS 2000
/** So many bytes in flight are repeated without growing delays: no link is so slow that they fill it. */
#define LITTLE_BYTES (256 * 1024)
/** The longest delay before a refused record is published again. */
#define RETRY_MAX_MS 1000
/** How often open records are checked. */
#define TICK_MS 100

/** How long an outcome may take after the PubAck before it is asked for. */
#define ASK_AFTER_MS 1000

/** The obstacle of updates while there is no connection. */
static struct ps_failure disconnected = {
    .code = PSERVER_ERR_NO_BROKER,
    .text = "the connection to the broker is lost, or no host has answered since it is back; the client goes on "
            "trying to reconnect",
    .details = "",
};

static struct ps_failure *other_shard(unsigned received, unsigned expected) {
  char text[96];
  char details[64];
  snprintf(text, sizeof text, "stored in the journal of shard %u; expected that of shard %u", received,
           expected);
  snprintf(details, sizeof details, "{\"expected\":%u,\"received\":%u}", expected, received);
  return ps_failure_new(PSERVER_ERR_BAD_MESSAGE, text, details);
}

/*
 * The outbox holds a reference to a call for each of its updates that is open or in flight. References that
 * are no longer needed are dropped at the end of the event, because the rest of the event may still use the
 * update. The TypeScript client needs none of this.
 */

/** Takes a reference for an update that is now open or in flight. */
static void take_reference(struct ps_block_update *update) {
  update->is_held = true;
  update->call->references++;
}

/** Notes that the reference for an update is to be dropped, unless the update is still open or in flight. */
static void note_unneeded(struct ps_outbox *outbox, struct ps_block_update *update) {
  struct ps_update_call *call = update->call;
  if (!update->is_held || update->is_open || update->slot >= 0) return;
  update->is_held = false;
  call->releases++;
  if (call->releases > 1) return;
  call->next_released = outbox->released;
  outbox->released = call;
}

/** Drops the references noted at the end of an event, which frees calls without other references. */
static void release_references(struct ps_outbox *outbox) {
  while (outbox->released != NULL) {
    struct ps_update_call *call = outbox->released;
    size_t releases = call->releases;
    outbox->released = call->next_released;
    call->releases = 0;
    ps_update_call_drop(call, releases);
  }
}

/* The fates of the updates of a call. */

/** Whether no update of the call is pending. */
static bool is_over(const struct ps_update_call *call) { return call->pending == 0; }

/** Ends what is pending of an update; `count`: the call's number of blocks with this fate, or NULL. */
static void settle_as(struct ps_block_update *update, enum ps_fate fate, size_t *count) {
  update->fate = fate;
  if (count != NULL) *count += update->blocks;
  update->call->pending -= update->blocks;
}

/** Notes that the update is applied, or stored if that is enough. */
static void note_applied(struct ps_block_update *update) {
  settle_as(update, PS_FATE_APPLIED, &update->call->applied);
}

/** Notes that the update will never be applied. */
static void note_rejected(struct ps_block_update *update, struct ps_failure *failure) {
  struct ps_update_call *call = update->call;
  settle_as(update, PS_FATE_REJECTED, NULL);
  if (call->rejection != NULL) return;
  call->rejected = update;
  ps_failure_set(&call->rejection, failure);
}

/** Notes the outcome of the update; the first rejection becomes the error of the call. */
static void note_settled(struct ps_block_update *update, const struct ps_outcome *outcome) {
  struct ps_update_call *call = update->call;
  struct ps_failure *failure = outcome->failure;
  enum ps_rejection reaction = PS_REJECTION_FAIL;
  if (outcome->version > call->version) call->version = outcome->version;
  if (failure != NULL) reaction = ps_reaction_to_rejection(failure->code);
  if (failure == NULL || (reaction == PS_REJECTION_COUNT_PRESENT && call->mode.counts_present)) {
    note_applied(update);
  } else if (reaction == PS_REJECTION_COUNT_LATE && call->mode.counts_late) {
    settle_as(update, PS_FATE_LATE, &call->late);
  } else {
    note_rejected(update, failure);
  }
}

/** Notes that the update was given up although it may be stored. */
static void note_unknown(struct ps_block_update *update) {
  settle_as(update, PS_FATE_UNKNOWN, &update->call->unknown);
}

/** Notes that the update was given up and is not stored; the obstacle may be NULL. */
static void note_unsent(struct ps_block_update *update, struct ps_failure *obstacle) {
  settle_as(update, PS_FATE_UNSENT, &update->call->unsent);
  ps_failure_set_first(&update->call->obstacle, obstacle);
}

/* Records, from their first publication to their outcomes. */

static void note_over(struct ps_outbox *outbox, struct ps_update_call *call) {
  if (is_over(call)) ps_queue_append(&outbox->over, &call->over, call);
}

static void release(struct ps_outbox *outbox, struct ps_block_update *update, bool is_reusable) {
  const struct ps_outbox_commands *commands = outbox->deps.commands;
  update->has_message = false;
  commands->release(commands->owner, update, is_reusable);
}

static void leave_flight(struct ps_outbox *outbox, struct ps_block_update *update, bool is_reusable) {
  if (update->has_message) release(outbox, update, is_reusable);
  if (update->slot >= 0) ps_in_flight_remove(&outbox->in_flight, update);
  note_unneeded(outbox, update);
}

static void close_number(struct ps_outbox *outbox, struct ps_block_update *update, bool is_reusable) {
  struct ps_shard_window *window = outbox->windows[update->shard];
  if (update->stored.generation > 0) ps_update_list_remove(&window->stored, update);
  ps_shard_window_close(window, update);
  outbox->open--;
  leave_flight(outbox, update, is_reusable);
}

/** Settles a record that will never be applied, for a reason found before the fold. */
static void reject(struct ps_outbox *outbox, struct ps_block_update *update, struct ps_failure *failure) {
  if (update->is_open) close_number(outbox, update, false);
  else leave_flight(outbox, update, false);
  if (update->fate != PS_FATE_PENDING) return;
  note_rejected(update, failure);
  note_over(outbox, update->call);
}

static void drop_waiting(struct ps_outbox *outbox, struct ps_block_update *update,
                         struct ps_failure *obstacle) {
  ps_update_list_remove(&outbox->windows[update->shard]->waiting, update);
  outbox->waiting--;
  note_unsent(update, obstacle);
  note_over(outbox, update->call);
}

/** Puts an update back to the front of the waiting ones, to be sent again under a new number. */
static void put_back(struct ps_outbox *outbox, struct ps_block_update *update) {
  ps_block_update_reset(update);
  ps_update_list_prepend(&outbox->windows[update->shard]->waiting, update);
  outbox->waiting++;
}

static void note_published(struct ps_outbox *outbox, struct ps_block_update *update, int64_t now_ms) {
  outbox->send_number++;
  update->send_number = outbox->send_number;
  update->sends++;
  update->sent_at_ms = now_ms;
  update->stored_bytes_before = outbox->stored_bytes;
  update->read_at_ms = PS_NEVER_MS;
  update->retry_at_ms = PS_NEVER_MS;
}

static void publish_first(struct ps_outbox *outbox, struct ps_shard_window *window,
                          struct ps_block_update *update, int64_t now_ms) {
  const struct ps_outbox_commands *commands = outbox->deps.commands;
  ps_update_list_remove(&window->waiting, update);
  outbox->waiting--;
  ps_shard_window_open(window, update);
  outbox->open++;
  ps_in_flight_add(&outbox->in_flight, update);
  take_reference(update);
  note_published(outbox, update, now_ms);
  update->has_message = true;
  commands->publish(commands->owner, update, outbox->session, window->done);
}

static void repeat(struct ps_outbox *outbox, struct ps_block_update *update, int64_t now_ms) {
  const struct ps_outbox_commands *commands = outbox->deps.commands;
  ps_in_flight_move_to_end(&outbox->in_flight, update);
  note_published(outbox, update, now_ms);
  commands->repeat(commands->owner, update);
}

/** Publishes updates as the windows permit, one of each shard in turn. */
static void pump(struct ps_outbox *outbox, int64_t now_ms) {
  size_t idle = 0;
  size_t bytes_max = ps_link_window_bytes(&outbox->link);
  while (outbox->waiting > 0 && !outbox->is_paused && outbox->is_connected && idle < outbox->turn_count) {
    struct ps_shard_window *window = outbox->turns[outbox->turn % outbox->turn_count];
    struct ps_block_update *first = ps_shard_window_has_room(window) ? window->waiting.first : NULL;
    if (first == NULL) {
      outbox->turn++;
      idle++;
    } else if (first->call->rejection != NULL) {
      drop_waiting(outbox, first, NULL);
    } else {
      /* The shard keeps its turn, so that small updates cannot starve a large one. */
      if (!ps_in_flight_fits(&outbox->in_flight, first->data_bytes, bytes_max)) break;
      outbox->turn++;
      idle = 0;
      publish_first(outbox, window, first, now_ms);
    }
  }
}

/** Ends an event: publishes as the windows permit, sets the timer, and reports calls that are over. */
static void finish(struct ps_outbox *outbox, int64_t now_ms) {
  const struct ps_outbox_commands *commands = outbox->deps.commands;
  const struct ps_outbox_listener *listener = outbox->deps.listener;
  struct ps_failure *session_end = outbox->session_end;
  outbox->session_end = NULL;
  if (session_end != NULL) listener->session_over(listener->owner, session_end, now_ms);
  ps_failure_drop(session_end);
  pump(outbox, now_ms);
  if (!outbox->has_timer && !outbox->is_paused && outbox->in_flight.count + outbox->open > 0) {
    outbox->has_timer = true;
    commands->set_timer(commands->owner, now_ms + TICK_MS);
  }
  struct ps_update_call *call;
  while ((call = ps_queue_take(&outbox->over)) != NULL) {
    listener->call_over(listener->owner, call, now_ms);
  }
  release_references(outbox);
}

static void settle(void *owner, struct ps_block_update *update, const struct ps_outcome *outcome) {
  struct ps_outbox *outbox = owner;
  /* The outcome can arrive before the PubAck. */
  close_number(outbox, update, update->sends == 1);
  outbox->clipped += outcome->is_clipped;
  outbox->set_aside += outcome->is_set_aside;
  outbox->guarded += outcome->is_clipped || outcome->is_set_aside ||
                     (outcome->failure != NULL && outcome->failure->code == PSERVER_ERR_GUARDED);
  if (update->fate != PS_FATE_PENDING) return;
  bool is_unseen = outcome->failure != NULL &&
                   ps_reaction_to_rejection(outcome->failure->code) == PS_REJECTION_RESEND_UNSEEN;
  if (is_unseen && update->names_version) {
    /* The shard has fallen back and no longer knows the version: send the gradient without it. */
    update->names_version = false;
    put_back(outbox, update);
    return;
  }
  note_settled(update, outcome);
  note_over(outbox, update->call);
}

static void give_up(void *owner, struct ps_block_update *update, struct ps_failure *reason) {
  struct ps_outbox *outbox = owner;
  struct ps_shard_window *window = outbox->windows[update->shard];
  if (update->stored.generation > 0) ps_update_list_remove(&window->stored, update);
  ps_shard_window_close(window, update);
  outbox->open--;
  /* The record stays in flight: its bytes may still be in the connection's buffers. */
  if (update->has_message) release(outbox, update, false);
  note_unneeded(outbox, update);
  if (update->fate != PS_FATE_PENDING) return;
  ps_failure_set_first(&update->call->end, reason);
  if (ps_block_update_is_stored_nowhere(update)) note_unsent(update, update->obstacle);
  else note_unknown(update);
  note_over(outbox, update->call);
}

static void end_session(void *owner, struct ps_failure *failure) {
  struct ps_outbox *outbox = owner;
  ps_failure_set_first(&outbox->session_end, failure);
}

struct ps_outbox *ps_outbox_new(const struct ps_outbox_deps *deps) {
  struct ps_outbox *outbox = calloc(1, sizeof *outbox);
  uint64_t *numbers = calloc(deps->window_records, sizeof numbers[0]);
  if (outbox == NULL || numbers == NULL) {
    free(outbox);
    free(numbers);
    return NULL;
  }
  outbox->deps = *deps;
  outbox->link.bytes_max = deps->in_flight_bytes_max;
  outbox->ping_at_ms = PS_NEVER_MS;
  outbox->heard_until_ms = PS_LONG_AGO_MS;
  outbox->tracker = (struct ps_outcome_tracker){
      .positions = deps->positions,
      .commands = deps->commands,
      .settler = {.owner = outbox, .settle = settle, .give_up = give_up, .end_session = end_session},
      .numbers = numbers,
  };
  outbox->is_paused = true;
  outbox->is_connected = true;
  return outbox;
}

void ps_outbox_destroy(struct ps_outbox *outbox) {
  if (outbox == NULL) return;
  for (size_t i = 0; i < outbox->turn_count; i++) {
    struct ps_shard_window *window = outbox->turns[i];
    for (uint64_t n = window->last; n > window->done; n--) {
      struct ps_block_update *update = ps_shard_window_get(window, n);
      if (update == NULL) continue;
      ps_shard_window_close(window, update);
      note_unneeded(outbox, update);
    }
    free(window);
  }
  while (outbox->in_flight.list.first != NULL) {
    struct ps_block_update *update = outbox->in_flight.list.first;
    ps_in_flight_remove(&outbox->in_flight, update);
    note_unneeded(outbox, update);
  }
  release_references(outbox);
  ps_in_flight_release(&outbox->in_flight);
  free(outbox->tracker.numbers);
  free(outbox);
}

/** Allocates what sending a call needs: windows of its shards, and slots for its records in flight. */
static bool reserve(struct ps_outbox *outbox, const struct ps_update_call *call) {
  size_t under_way = outbox->in_flight.count + outbox->open + outbox->waiting;
  if (!ps_in_flight_reserve(&outbox->in_flight, under_way + call->update_count)) return false;
  for (size_t i = 0; i < call->update_count; i++) {
    unsigned shard = call->updates[i].shard;
    if (outbox->windows[shard] != NULL) continue;
    struct ps_shard_window *window = ps_shard_window_new(shard, outbox->deps.window_records);
    if (window == NULL) return false;
    outbox->windows[shard] = window;
    outbox->turns[outbox->turn_count++] = window;
  }
  return true;
}

bool ps_outbox_send(struct ps_outbox *outbox, struct ps_update_call *call, int64_t now_ms) {
  if (call->end == NULL && !reserve(outbox, call)) return false;
  for (size_t i = 0; i < call->update_count; i++) {
    struct ps_block_update *update = &call->updates[i];
    if (call->end == NULL) ps_update_list_append(&outbox->windows[update->shard]->waiting, update);
    else note_unsent(update, outbox->is_connected ? NULL : &disconnected);
  }
  if (call->end == NULL) outbox->waiting += call->update_count;
  note_over(outbox, call);
  finish(outbox, now_ms);
  return true;
}

void ps_outbox_end_call(struct ps_outbox *outbox, struct ps_update_call *call, struct ps_failure *reason,
                        int64_t now_ms) {
  if (is_over(call)) return;
  ps_failure_set_first(&call->end, reason);
  struct ps_failure *obstacle = outbox->is_connected ? NULL : &disconnected;
  for (size_t i = 0; i < call->update_count; i++) {
    struct ps_block_update *update = &call->updates[i];
    if (update->fate != PS_FATE_PENDING) continue;
    if (update->is_open) give_up(outbox, update, reason);
    else drop_waiting(outbox, update, obstacle);
  }
  finish(outbox, now_ms);
}

/** Ends the open records of the old session: those known not to be applied are sent again, others are
 * unknown. */
static void restart_window(struct ps_outbox *outbox, struct ps_shard_window *window) {
  for (uint64_t n = window->last; n > window->done; n--) {
    struct ps_block_update *update = ps_shard_window_get(window, n);
    if (update == NULL) continue;
    bool is_again = ps_block_update_is_stored_nowhere(update) || update->is_rejoined;
    close_number(outbox, update, false);
    if (update->fate != PS_FATE_PENDING) continue;
    if (is_again) {
      put_back(outbox, update);
    } else {
      note_unknown(update);
      note_over(outbox, update->call);
    }
  }
  ps_shard_window_restart(window);
}

void ps_outbox_start(struct ps_outbox *outbox, uint64_t session, int64_t now_ms) {
  outbox->session = session;
  while (outbox->in_flight.list.first != NULL) {
    leave_flight(outbox, outbox->in_flight.list.first, false);
  }
  for (size_t i = 0; i < outbox->turn_count; i++) restart_window(outbox, outbox->turns[i]);
  outbox->is_paused = false;
  finish(outbox, now_ms);
}

void ps_outbox_pause(struct ps_outbox *outbox) { outbox->is_paused = true; }

/** Notes that the broker has answered to a record. */
static void note_ack(struct ps_outbox *outbox, const struct ps_block_update *update, int64_t now_ms) {
  struct ps_shard_window *window = outbox->windows[update->shard];
  uint64_t number = update->send_number;
  window->acked_at_ms = now_ms;
  /* Of a record that was repeated, nobody knows which copy was answered. */
  if (update->sends != 1) return;
  if (number > window->acked_send_number) window->acked_send_number = number;
  if (number > outbox->read_send_number) outbox->read_send_number = number;
}

/** Notes how much was stored since a record was published, which itself is stored now. */
static void measure(struct ps_outbox *outbox, const struct ps_block_update *update, int64_t now_ms) {
  outbox->stored_bytes += update->data_bytes;
  if (update->sends != 1) return;
  ps_link_window_note(&outbox->link, outbox->stored_bytes - update->stored_bytes_before,
                      now_ms - update->sent_at_ms, now_ms);
}

bool ps_outbox_stored(struct ps_outbox *outbox, uint64_t slot, uint64_t serial, unsigned shard,
                      struct ps_position at, int64_t now_ms) {
  struct ps_block_update *update = ps_in_flight_get(&outbox->in_flight, slot, serial);
  if (update == NULL) return true;
  if (shard != update->shard) {
    struct ps_failure *failure = other_shard(shard, update->shard);
    if (failure == NULL) return false;
    note_ack(outbox, update, now_ms);
    measure(outbox, update, now_ms);
    reject(outbox, update, failure);
    ps_failure_drop(failure);
    finish(outbox, now_ms);
    return true;
  }
  note_ack(outbox, update, now_ms);
  measure(outbox, update, now_ms);
  ps_positions_note(outbox->deps.positions, shard, at);
  struct ps_shard_window *window = outbox->windows[update->shard];
  leave_flight(outbox, update, update->sends == 1);
  if (update->is_open) {
    update->stored = at;
    update->ask_at_ms = now_ms + ASK_AFTER_MS;
    ps_update_list_append(&window->stored, update);
    if (update->call->mode.is_done_when_stored) {
      note_applied(update);
      note_over(outbox, update->call);
    }
  }
  finish(outbox, now_ms);
  return true;
}

void ps_outbox_refused(struct ps_outbox *outbox, uint64_t slot, uint64_t serial,
                       struct ps_failure *failure, bool is_retryable, int64_t now_ms) {
  struct ps_block_update *update = ps_in_flight_get(&outbox->in_flight, slot, serial);
  if (update == NULL) return;
  note_ack(outbox, update, now_ms);
  update->refusals++;
  if (!update->is_open) {
    leave_flight(outbox, update, false);
  } else if (is_retryable) {
    int64_t delay_ms = update->retry_delay_ms;
    update->retry_at_ms = now_ms + delay_ms;
    update->retry_delay_ms = delay_ms * 2 < RETRY_MAX_MS ? delay_ms * 2 : RETRY_MAX_MS;
    ps_failure_set(&update->obstacle, failure);
  } else {
    reject(outbox, update, failure);
  }
  finish(outbox, now_ms);
}

void ps_outbox_read(struct ps_outbox *outbox, uint64_t send_number, int64_t now_ms) {
  if (outbox->ping_at_ms == PS_NEVER_MS || send_number != outbox->ping_send_number) return;
  if (send_number + 1 > outbox->read_send_number) outbox->read_send_number = send_number + 1;
  outbox->heard_until_ms = outbox->ping_at_ms;
  outbox->ping_at_ms = PS_NEVER_MS;
  finish(outbox, now_ms);
}

void ps_outbox_publish_failed(struct ps_outbox *outbox, struct ps_block_update *update,
                              struct ps_failure *failure) {
  update->sends--;
  if (update->sends > 0) {
    give_up(outbox, update, failure);
    return;
  }
  /* Nothing was handed to the connection, so the number is used again. */
  ps_shard_window_take_back(outbox->windows[update->shard], update);
  outbox->open--;
  ps_in_flight_remove(&outbox->in_flight, update);
  update->has_message = false;
  note_unneeded(outbox, update);
  note_rejected(update, failure);
  note_over(outbox, update->call);
}

void ps_outbox_withdrawn(struct ps_block_update *update) { update->sends--; }

void ps_outbox_answered(struct ps_outbox *outbox, const struct ps_answers *answers, bool is_reply,
                        int64_t now_ms) {
  if (answers->session != outbox->session) return;
  ps_outcome_tracker_take(&outbox->tracker, outbox->windows[answers->shard], answers, is_reply);
  finish(outbox, now_ms);
}

void ps_outbox_ask_failed(struct ps_outbox *outbox, unsigned shard, struct ps_failure *failure,
                          int64_t retry_after_ms, int64_t now_ms) {
  struct ps_shard_window *window = outbox->windows[shard];
  if (window == NULL) return;
  ps_outcome_tracker_ask_failed(&outbox->tracker, window, failure, retry_after_ms);
  finish(outbox, now_ms);
}

void ps_outbox_denied(struct ps_outbox *outbox, struct ps_block_update *update, struct ps_failure *failure,
                      int64_t now_ms) {
  if (update->slot < 0) return;
  reject(outbox, update, failure);
  finish(outbox, now_ms);
}

void ps_outbox_disconnected(struct ps_outbox *outbox) {
  outbox->is_connected = false;
  outbox->ping_at_ms = PS_NEVER_MS;
  ps_link_window_reset(&outbox->link);
  /* Records that were given up will get no PubAck any more. */
  struct ps_block_update *next = outbox->in_flight.list.first;
  while (next != NULL) {
    struct ps_block_update *update = next;
    next = update->next;
    if (!update->is_open) leave_flight(outbox, update, false);
  }
  release_references(outbox);
}

/**
 * Whether a record counts as lost: the broker has read it, and has not sent its PubAck within 2 s after that, as its
 * journal may have no leader. A journal answers in order, so the time begins anew with each answer of the journal to
 * an earlier record; and unless little is in flight it grows with each copy, so that a slow broker is not given more
 * than it can store.
 */
static bool is_lost(const struct ps_outbox *outbox, struct ps_block_update *update, int64_t now_ms) {
  const struct ps_shard_window *window = outbox->windows[update->shard];
  if (update->send_number < outbox->read_send_number && now_ms < update->read_at_ms) {
    update->read_at_ms = now_ms;
  }
  if (update->read_at_ms == PS_NEVER_MS) return false;
  bool is_overtaken = update->send_number < window->acked_send_number;
  bool is_short = is_overtaken || outbox->in_flight.bytes <= LITTLE_BYTES;
  bool is_answered_since = !is_overtaken && window->acked_at_ms > update->read_at_ms;
  int64_t since_ms = is_answered_since ? window->acked_at_ms : update->read_at_ms;
  int64_t waits = is_short ? 1 : update->sends < 4 ? update->sends : 4;
  return outbox->heard_until_ms - since_ms >= ACK_TIMEOUT_MS * waits;
}

/** Repeats a record in flight, or removes one that was given up, if that is due. */
static void check(struct ps_outbox *outbox, struct ps_block_update *update, int64_t now_ms) {
  bool is_due = is_lost(outbox, update, now_ms);
  if (!update->is_open) {
    if (is_due) leave_flight(outbox, update, false);
  } else if (update->retry_at_ms != PS_NEVER_MS) {
    if (now_ms >= update->retry_at_ms) repeat(outbox, update, now_ms);
  } else if (is_due) {
    repeat(outbox, update, now_ms);
  }
}

void ps_outbox_reconnected(struct ps_outbox *outbox, int64_t now_ms) {
  outbox->is_connected = true;
  uint64_t last = outbox->send_number;
  struct ps_block_update *next = outbox->in_flight.list.first;
  while (next != NULL && next->send_number <= last) {
    struct ps_block_update *update = next;
    next = update->next;
    if (update->is_open) repeat(outbox, update, now_ms);
  }
  for (size_t i = 0; i < outbox->turn_count; i++) {
    struct ps_shard_window *window = outbox->turns[i];
    struct ps_block_update *one = window->stored.first;
    for (; one != NULL; one = one->next) one->ask_at_ms = 0;
    window->asked_at_ms = PS_LONG_AGO_MS;
  }
  finish(outbox, now_ms);
}

void ps_outbox_tick(struct ps_outbox *outbox, int64_t now_ms) {
  const struct ps_outbox_commands *commands = outbox->deps.commands;
  outbox->has_timer = false;
  if (outbox->is_connected && !outbox->is_paused) {
    uint64_t last = outbox->send_number;
    struct ps_block_update *next = outbox->in_flight.list.first;
    while (next != NULL && next->send_number <= last) {
      struct ps_block_update *update = next;
      next = update->next;
      check(outbox, update, now_ms);
    }
    for (size_t i = 0; i < outbox->turn_count; i++) {
      ps_outcome_tracker_ask(&outbox->tracker, outbox->turns[i], outbox->session, now_ms);
    }
    if (outbox->in_flight.count > 0 && outbox->ping_at_ms == PS_NEVER_MS) {
      outbox->ping_at_ms = now_ms;
      outbox->ping_send_number = outbox->send_number;
      commands->ping(commands->owner, outbox->send_number);
    }
  }
  finish(outbox, now_ms);
}

void ps_outbox_ask_not_published(struct ps_outbox *outbox, unsigned shard, const uint64_t *numbers,
                                 size_t count, struct ps_failure *failure) {
  for (size_t i = 0; i < count; i++) {
    struct ps_block_update *update = ps_shard_window_get(outbox->windows[shard], numbers[i]);
    if (update != NULL) give_up(outbox, update, failure);
  }
}
