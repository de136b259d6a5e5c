#include "wire/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Requests: sent, repeated and answered on the I/O thread. */

/** Delay of the first repeat, once the broker has read the request. */
#define REPEAT_MS 1000
/** How long a request may be without an answer before the broker is asked whether it has read it. */
#define READ_MS 100
/** A host gives up just before the repeat comes, so that it never holds two copies of a request. */
#define WAIT_MS 900
/** The longest delay of a repeat: repeats slow down, so that a slow host is not given more than it can answer. */
#define REPEAT_MS_MAX 4000
/** The pause before a request is sent again after `refused` has reacted to an error. */
#define AGAIN_MS 10

/** Whether the client retries a request after this error. */
static bool is_worth_retrying(pserver_status status) {
  return ps_reaction_to(status) == PS_REACTION_RETRY;
}

int64_t ps_ask_group_remaining_ms(const struct ps_ask_group *group) {
  int64_t left = group->ends_at_ms - ps_now_ms();
  return left > 0 ? left : 0;
}

uint64_t ps_ask_group_wait_ms(const struct ps_ask_group *group) {
  int64_t left = ps_ask_group_remaining_ms(group);
  return (uint64_t)(left < WAIT_MS ? left : WAIT_MS);
}

static void set_due(struct ps_ask *ask, enum ps_ask_due due, int64_t at_ms) {
  struct ps_requests *requests = ask->group->requests;
  ps_queue_remove(&requests->asking, &ask->asking);
  ask->due = due;
  ps_timer_set(&requests->connection->io->timers, &ask->timer, at_ms);
}

static bool fits_window(const struct ps_requests *requests, const struct ps_ask *ask) {
  return ask->window_bytes == 0 || requests->window_bytes == 0 ||
         requests->window_bytes + ask->window_bytes <= ps_link_window_bytes(&requests->window);
}

/** Notes how many bytes of answers have come since a request was sent, which itself is answered now. */
static void measure(struct ps_requests *requests, const struct ps_ask *ask) {
  int64_t now = ps_now_ms();
  requests->received_bytes += ask->window_bytes;
  if (ask->window_bytes == 0 || ask->sends != 1) return;
  ps_link_window_note(&requests->window, requests->received_bytes - ask->received_before,
                      now - ask->sent_at_ms, now);
}

static void note_progress(struct ps_ask_group *group) {
  if (group->progressed != NULL) group->progressed(group);
}

/* The end of a group. */

/** Notes that a request is refused for the time being: until it is answered it has no bytes under way. */
static void leave_window(struct ps_ask *ask) {
  if (ask->window_bytes == 0 || ask->is_refused) return;
  ask->is_refused = true;
  ask->group->requests->window_bytes -= ask->window_bytes;
  ask->group->requests->refused++;
}

static void close_ask(struct ps_ask *ask, enum ps_ask_state state) {
  struct ps_requests *requests = ask->group->requests;
  ask->state = state;
  set_due(ask, PS_ASK_DUE_AGAIN, PS_NEVER_MS);
  if (ask->is_refused) requests->refused--;
  else requests->window_bytes -= ask->window_bytes;
  ask->is_refused = false;
}

/** Ends a group with this status; unless OK, the last error is the reason. */
static void finish(struct ps_ask_group *group, pserver_status status) {
  struct ps_requests *requests = group->requests;
  ps_queue_remove(&requests->waiting, &group->place);
  requests->slots[group->slot] = NULL;
  for (size_t i = 0; i < group->next; i++) {
    if (group->asks[i].state == PS_ASK_OPEN) close_ask(&group->asks[i], PS_ASK_WAITING);
  }
  ps_failure_set(&group->obstacle, NULL);
  group->requests = NULL;
  group->over(group, status);
}

/* Sending. */

static pserver_status send_ask(struct ps_ask *ask) {
  char reply[PS_REPLY_SIZE];
  struct ps_ask_group *group = ask->group;
  struct ps_connection *connection = group->requests->connection;
  uint64_t token = group->first_token + (uint64_t)(ask - group->asks);
  snprintf(reply, sizeof reply, "%s.reply.%zu.%" PRIu64, connection->inbox_name, group->slot, token);
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ask->reply = reply;
  pserver_status status = ask->write(ask, &draft);
  if (status == PSERVER_OK) {
    status = ps_publish(connection, ask->subject, reply, draft.buffer.data, draft.buffer.size);
  }
  ps_draft_release(&draft);
  /* Without a connection the request is sent once there is one. */
  if (status == PSERVER_ERR_NO_BROKER || status == PSERVER_ERR_IO) status = PSERVER_OK;
  ask->sends++;
  ask->sent_at_ms = ps_now_ms();
  ask->received_before = group->requests->received_bytes;
  set_due(ask, PS_ASK_DUE_READ, ask->is_sent_once ? PS_NEVER_MS : ask->sent_at_ms + READ_MS);
  return status;
}

static pserver_status open_ask(struct ps_ask *ask) {
  struct ps_ask_group *group = ask->group;
  group->requests->window_bytes += ask->window_bytes;
  ask->state = PS_ASK_OPEN;
  ask->started_ms = ps_now_ms();
  ask->repeat_ms = REPEAT_MS;
  ask->pause_ms = PS_PAUSE_MS;
  ask->sends = 0;
  /* Without a connection the request is sent once there is one. */
  return group->requests->connection->is_connected ? send_ask(ask) : PSERVER_OK;
}

/** Returns whether the shard of a request refuses another one, for which this one then waits. */
static bool is_shard_refusing(const struct ps_requests *requests, const struct ps_ask *ask) {
  if (requests->refused == 0 || ask->window_bytes == 0) return false;
  for (size_t slot = 0; slot < requests->slot_count; slot++) {
    const struct ps_ask_group *group = requests->slots[slot];
    for (size_t i = 0; group != NULL && i < group->next; i++) {
      if (group->asks[i].is_refused && group->asks[i].shard == ask->shard) return true;
    }
  }
  return false;
}

/** Opens requests as the window permits, one of each group in turn. */
static void pump(struct ps_requests *requests) {
  struct ps_ask_group *group;
  const struct ps_ask_group *passed = NULL;
  while ((group = ps_queue_first(&requests->waiting)) != NULL && group != passed) {
    struct ps_ask *ask = &group->asks[group->next];
    bool is_done = ask->state == PS_ASK_DONE;
    if (!is_done && is_shard_refusing(requests, ask)) {
      ps_queue_take(&requests->waiting);
      ps_queue_append(&requests->waiting, &group->place, group);
      if (passed == NULL) passed = group;
      continue;
    }
    if (!is_done && !fits_window(requests, ask)) return;
    passed = NULL;
    ps_queue_take(&requests->waiting);
    group->next++;
    if (group->next < group->count) ps_queue_append(&requests->waiting, &group->place, group);
    pserver_status status = is_done ? PSERVER_OK : open_ask(ask);
    if (status != PSERVER_OK) finish(group, status);
  }
}

static void send_again(struct ps_ask *ask) {
  struct ps_requests *requests = ask->group->requests;
  pserver_status status = send_ask(ask);
  if (status == PSERVER_OK) return;
  finish(ask->group, status);
  pump(requests);
}

/** Sends a request again, or first a PING, because its timer is due. */
static void on_due(void *context) {
  struct ps_ask *ask = context;
  struct ps_requests *requests = ask->group->requests;
  if (!requests->connection->is_connected) return;
  if (ask->due == PS_ASK_DUE_AGAIN) {
    send_again(ask);
    return;
  }
  ask->question = ps_link_ask(requests->connection);
  ps_queue_append(&requests->asking, &ask->asking, ask);
}

void ps_requests_confirmed(struct ps_requests *requests, uint64_t number) {
  struct ps_ask *ask;
  while ((ask = ps_queue_first(&requests->asking)) != NULL && ask->question <= number) {
    ps_queue_take(&requests->asking);
    if (ask->due == PS_ASK_DUE_READ) {
      set_due(ask, PS_ASK_DUE_REPEAT, ps_now_ms() + ask->repeat_ms - READ_MS);
      ask->repeat_ms = ps_doubled_ms(ask->repeat_ms, REPEAT_MS_MAX);
    } else {
      send_again(ask);
    }
  }
}

void ps_requests_moved(struct ps_requests *requests) {
  for (size_t slot = 0; slot < requests->slot_count; slot++) {
    struct ps_ask_group *group = requests->slots[slot];
    /* Where hosts have answered with an error, the bytes are of other answers. */
    if (group != NULL && group->obstacle == NULL) note_progress(group);
  }
}

void ps_requests_init(struct ps_requests *requests, struct ps_connection *connection, size_t bytes_max) {
  *requests = (struct ps_requests){.connection = connection, .window = {.bytes_max = bytes_max}};
}

static bool take_slot(struct ps_requests *requests, struct ps_ask_group *group) {
  size_t slot = 0;
  while (slot < requests->slot_count && requests->slots[slot] != NULL) slot++;
  if (slot == requests->slot_count) {
    size_t count = slot == 0 ? 16 : 2 * slot;
    struct ps_ask_group **slots = realloc(requests->slots, count * sizeof(struct ps_ask_group *));
    if (slots == NULL) return false;
    for (size_t i = slot; i < count; i++) slots[i] = NULL;
    requests->slots = slots;
    requests->slot_count = count;
  }
  requests->slots[slot] = group;
  group->slot = slot;
  return true;
}

void ps_ask_shard(struct ps_ask *ask, const struct ps_identity *identity, unsigned shard,
                  const char *verb) {
  ask->shard = shard;
  snprintf(ask->subject, sizeof ask->subject, "ps.%s.shard.%u.%s.%s", identity->job, shard, identity->id,
           verb);
}

void ps_ask_group_begin(struct ps_requests *requests, struct ps_ask_group *group) {
  group->missing = 0;
  group->next = 0;
  for (size_t i = 0; i < group->count; i++) {
    struct ps_ask *ask = &group->asks[i];
    ask->group = group;
    ask->timer.due = on_due;
    ask->timer.context = ask;
    group->missing += ask->state != PS_ASK_DONE;
  }
  if (group->missing == 0) {
    group->over(group, PSERVER_OK);
    return;
  }
  if (!take_slot(requests, group)) {
    group->over(group, ps_no_memory("a request"));
    return;
  }
  group->requests = requests;
  group->first_token = requests->tokens;
  requests->tokens += group->count;
  ps_queue_append(&requests->waiting, &group->place, group);
  pump(requests);
}

/** Returns the status at the end of the call: a timeout becomes the obstacle that kept the request
 * unanswered. */
static pserver_status at_end(struct ps_ask_group *group, pserver_status status) {
  if (status != PSERVER_ERR_TIMEOUT) return status;
  char text[PS_ERROR_TEXT_BYTES / 2];
  snprintf(text, sizeof text, "%.500s", ps_last_error()->text);
  if (!group->requests->connection->is_connected) {
    return ps_fail(PSERVER_ERR_NO_BROKER,
                   "%s; last: the connection to the broker is lost; the client goes on trying", text);
  }
  if (group->obstacle == NULL) return status;
  ps_fail_as_core(group->obstacle);
  return ps_fail_reworded(group->obstacle->code, "%s; last: %s", text, group->obstacle->text);
}

void ps_ask_group_end(struct ps_ask_group *group, pserver_status status) {
  struct ps_requests *requests = group->requests;
  if (requests == NULL) return;
  finish(group, at_end(group, status));
  pump(requests);
}

/* Answers. */

static pserver_status no_owner(const struct ps_ask *ask) {
  ps_fail(PSERVER_ERR_NO_OWNER, "no host serves shard %u", ask->shard);
  return ps_detail_whole("shard", ask->shard);
}

/** Reads an answer; sets `*is_open` if it has opened `message`. */
static pserver_status answer(struct ps_ask *ask, natsMsg *received, struct ps_message *message,
                             bool *is_open) {
  if (natsMsg_IsNoResponders(received)) return ask->nobody == NULL ? no_owner(ask) : ask->nobody(ask);
  pserver_status status = ps_open_message((const uint8_t *)natsMsg_GetData(received),
                                          (size_t)natsMsg_GetDataLength(received), message);
  *is_open = status == PSERVER_OK;
  if (status == PSERVER_OK) status = ps_error_in_message(message);
  return status == PSERVER_OK ? ask->read(ask, message) : status;
}

/** Schedules a retry after a pause, if the error can pass and there is time left for it. */
static bool is_tried_again(struct ps_ask *ask, pserver_status status, const struct ps_message *message) {
  if (!is_worth_retrying(status)) return false;
  ps_failure_drop(ask->group->obstacle);
  ask->group->obstacle = ps_failure_of_last();
  int64_t now = ps_now_ms();
  if (ask->retry_ms != 0 && now - ask->started_ms >= ask->retry_ms) return false;
  leave_window(ask);
  int64_t pause_ms = ps_varied_ms(ask->pause_ms);
  int64_t hint_ms = message == NULL ? 0 : ps_retry_after_ms(message);
  set_due(ask, PS_ASK_DUE_AGAIN, now + (hint_ms > pause_ms ? hint_ms : pause_ms));
  ask->pause_ms = ps_doubled_ms(ask->pause_ms, PS_PAUSE_MS_MAX);
  return true;
}

static void take_error(struct ps_ask *ask, pserver_status status, const struct ps_message *message) {
  if (is_tried_again(ask, status, message)) return;
  if (ask->refused != NULL) status = ask->refused(ask, status, message);
  if (status != PSERVER_OK) {
    finish(ask->group, status);
    return;
  }
  ask->started_ms = ps_now_ms();
  set_due(ask, PS_ASK_DUE_AGAIN, ask->started_ms + AGAIN_MS);
}

/** Continues after a message that is not the whole answer. */
static void go_on(struct ps_ask *ask) {
  struct ps_ask_group *group = ask->group;
  bool is_incomplete = ask->is_incomplete;
  ask->goes_on = false;
  ask->is_incomplete = false;
  if (ask->on_progress != NULL && group->on_progress != NULL) group->on_progress(group);
  if (is_incomplete) set_due(ask, PS_ASK_DUE_AGAIN, ps_now_ms());
  else if (!ask->is_sent_once) set_due(ask, PS_ASK_DUE_REPEAT, ps_now_ms() + ask->repeat_ms);
}

void ps_on_reply(struct ps_requests *requests, uint64_t slot, uint64_t token, natsMsg *received) {
  struct ps_ask_group *group = slot < requests->slot_count ? requests->slots[slot] : NULL;
  if (group == NULL || token < group->first_token || token - group->first_token >= group->count) {
    return;
  }
  struct ps_ask *ask = &group->asks[token - group->first_token];
  if (ask->state != PS_ASK_OPEN) return;
  struct ps_message message;
  bool is_open = false;
  pserver_status status = answer(ask, received, &message, &is_open);
  if (status == PSERVER_OK) note_progress(group);
  if (status != PSERVER_OK) {
    take_error(ask, status, is_open ? &message : NULL);
  } else if (ask->goes_on || ask->is_incomplete) {
    go_on(ask);
  } else {
    measure(requests, ask);
    close_ask(ask, PS_ASK_DONE);
    if (--group->missing == 0) finish(group, PSERVER_OK);
  }
  pump(requests);
}

/** Returns the open request to a subject; NULL if there is none. */
static struct ps_ask *find_open(struct ps_ask_group *group, const char *subject) {
  for (size_t i = 0; i < group->next; i++) {
    struct ps_ask *ask = &group->asks[i];
    if (ask->state == PS_ASK_OPEN && strcmp(ask->subject, subject) == 0) return ask;
  }
  return NULL;
}

void ps_requests_denied(struct ps_requests *requests, const char *subject) {
  for (size_t slot = 0; slot < requests->slot_count; slot++) {
    struct ps_ask_group *group = requests->slots[slot];
    struct ps_ask *denied = group == NULL ? NULL : find_open(group, subject);
    if (denied == NULL) continue;
    pserver_status status = ps_fail(
        PSERVER_ERR_DENIED, "the broker refuses publishing to %s: check the user's permissions", subject);
    if (denied->refused != NULL) denied->refused(denied, status, NULL);
    finish(group, status);
  }
  pump(requests);
}

void ps_requests_reconnected(struct ps_requests *requests) {
  ps_link_window_reset(&requests->window);
  for (size_t slot = 0; slot < requests->slot_count; slot++) {
    const struct ps_ask_group *group = requests->slots[slot];
    for (size_t i = 0; group != NULL && i < group->next; i++) {
      if (group->asks[i].state == PS_ASK_OPEN) set_due(&group->asks[i], PS_ASK_DUE_AGAIN, ps_now_ms());
    }
  }
}

void ps_requests_release(struct ps_requests *requests) { free(requests->slots); }
