/* Requests under way: sent, repeated, paused and answered on the thread of the call. */
#include "wire/requests.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "errors/details.h"
#include "wire/clock.h"
#include "wire/connection.h"

#define REPEAT_MS 1000
/** Repeats slow down, or a slow link would be filled with the repeats of large replies. */
#define REPEAT_MS_MAX 4000
#define PAUSE_MS 50
/** Pause before a refused question is asked again with what has been learned. */
#define AGAIN_MS 10
#define PAUSE_MS_MAX 500

struct asking {
  struct call *call;
  struct ask *asks;
  size_t count;
  /** All before it are done; those from `next` on have not begun. */
  size_t low;
  size_t next;
  uint64_t first_token;
  uint64_t connections;
  /** No open question is due earlier. */
  int64_t due_ms;
  /** The last error that was worth retrying. */
  struct failure trouble;
};

bool ps_is_worth_retrying(pserver_status status) { return ps_reaction_to(status) == PS_REACTION_RETRY; }

static bool fits_window(struct client *client, const struct ask *ask) {
  return ask->window_bytes == 0 || client->pull_bytes == 0 ||
         client->pull_bytes + ask->window_bytes <= client->in_flight_max;
}

static void set_due(struct asking *asking, struct ask *ask, int64_t at_ms) {
  ask->due_ms = at_ms;
  if (at_ms < asking->due_ms) asking->due_ms = at_ms;
}

/** The first open question that is due; NULL, and when the next one is due noted, if there is none. */
static struct ask *find_due(struct asking *asking, int64_t now) {
  if (now < asking->due_ms) return NULL;
  asking->due_ms = NEVER_MS;
  for (size_t i = asking->low; i < asking->next; i++) {
    struct ask *ask = &asking->asks[i];
    if (ask->state != ASK_OPEN) continue;
    set_due(asking, ask, ask->due_ms);
    if (ask->due_ms <= now) return ask;
  }
  return NULL;
}

/** The question to be sent now, a repeat or the next one; NULL if there is none. Lock held. */
static struct ask *take_due(struct asking *asking, int64_t now) {
  struct client *client = asking->call->client;
  asking->call->waits_for_window = false;
  struct ask *repeated = find_due(asking, now);
  if (repeated != NULL) return repeated;
  if (asking->next == asking->count) return NULL;
  struct ask *ask = &asking->asks[asking->next];
  if (!fits_window(client, ask)) {
    asking->call->waits_for_window = true;
    return NULL;
  }
  client->pull_bytes += ask->window_bytes;
  asking->next++;
  ask->state = ASK_OPEN;
  ask->started_ms = now;
  ask->repeat_ms = REPEAT_MS;
  ask->pause_ms = PAUSE_MS;
  return ask;
}

static pserver_status send_ask(struct asking *asking, struct ask *ask) {
  char reply[INBOX_SIZE + 48];
  struct call *call = asking->call;
  uint64_t token = asking->first_token + (uint64_t)(ask - asking->asks);
  snprintf(reply, sizeof reply, "%s.reply.%" PRIu64 ".%" PRIu64, call->client->inbox, call->number,
           token);
  struct draft draft;
  ps_draft_begin(&draft);
  ask->reply = reply;
  pserver_status status = ask->write(call, ask, &draft);
  if (status == PSERVER_OK) {
    status = ps_publish(call->client, ask->subject, reply, draft.buffer.data, draft.buffer.size);
  }
  ps_draft_release(&draft);
  /* Without a connection the question is sent when there is one again. */
  if (status == PSERVER_ERR_NO_BROKER || status == PSERVER_ERR_IO) status = PSERVER_OK;
  set_due(asking, ask, ask->is_sent_once ? NEVER_MS : ps_now_ms() + ask->repeat_ms);
  ask->repeat_ms = ps_doubled_ms(ask->repeat_ms, REPEAT_MS_MAX);
  return status;
}

static void finish(struct asking *asking, struct ask *ask) {
  struct client *client = asking->call->client;
  ask->state = ASK_DONE;
  while (asking->low < asking->next && asking->asks[asking->low].state == ASK_DONE) asking->low++;
  if (ask->window_bytes == 0) return;
  pthread_mutex_lock(&client->lock);
  client->pull_bytes -= ask->window_bytes;
  ps_wake_window_waiters(client);
  pthread_mutex_unlock(&client->lock);
}

/** Reads an answer; `is_open` if there is a message. */
static pserver_status answer(struct asking *asking, struct ask *ask, natsMsg *received,
                             struct message *message, bool *is_open) {
  if (natsMsg_IsNoResponders(received)) return ask->nobody(asking->call, ask);
  pserver_status status = ps_open_message((const uint8_t *)natsMsg_GetData(received),
                                          (size_t)natsMsg_GetDataLength(received), message);
  *is_open = status == PSERVER_OK;
  if (status == PSERVER_OK) status = ps_error_in_message(message);
  return status == PSERVER_OK ? ask->read(asking->call, ask, message) : status;
}

static pserver_status handle_reply(struct asking *asking, struct ask *ask, natsMsg *received) {
  if (ask->state != ASK_OPEN) return PSERVER_OK;
  struct message message;
  bool is_open = false;
  pserver_status status = answer(asking, ask, received, &message, &is_open);
  if (status == PSERVER_OK) {
    if (!ask->goes_on) finish(asking, ask);
    ask->goes_on = false;
    return status;
  }
  if (ps_is_worth_retrying(status)) {
    asking->trouble = *ps_last_failure();
    int64_t now = ps_now_ms();
    bool is_to_retry = ask->retry_ms == 0 || now - ask->started_ms < ask->retry_ms;
    if (is_to_retry) {
      int64_t pause_ms = ps_varied_ms(ask->pause_ms);
      int64_t hint_ms = is_open ? ps_retry_after_ms(&message) : 0;
      set_due(asking, ask, now + (hint_ms > pause_ms ? hint_ms : pause_ms));
      ask->pause_ms = ps_doubled_ms(ask->pause_ms, PAUSE_MS_MAX);
      return PSERVER_OK;
    }
  }
  if (ask->refused != NULL) {
    status = ask->refused(asking->call, ask, status, is_open ? &message : NULL);
  }
  if (status != PSERVER_OK) return status;
  ask->started_ms = ps_now_ms();
  set_due(asking, ask, ask->started_ms + AGAIN_MS);
  return PSERVER_OK;
}

static pserver_status handle_mail(struct asking *asking, struct mail *mail) {
  pserver_status status = PSERVER_OK;
  if (mail->message != NULL) {
    status = handle_reply(asking, &asking->asks[mail->token - asking->first_token], mail->message);
  } else if (mail->denied_subject != NULL) {
    for (size_t i = asking->low; i < asking->next && status == PSERVER_OK; i++) {
      struct ask *ask = &asking->asks[i];
      if (ask->state == ASK_OPEN && strcmp(ask->subject, mail->denied_subject) == 0) {
        status =
            ps_fail(PSERVER_ERR_DENIED,
                    "the broker refuses publishing to %s: check the user's permissions", ask->subject);
      }
    }
  }
  ps_mail_free(mail);
  return status;
}

/** The status at the end of the call: a timeout names what kept the question from being answered. Lock
 * held. */
static pserver_status at_end(struct asking *asking, pserver_status status) {
  if (status != PSERVER_ERR_TIMEOUT) return status;
  char text[MESSAGE_BYTES / 2];
  snprintf(text, sizeof text, "%.500s", ps_last_failure()->text);
  if (!asking->call->client->is_connected) {
    return ps_fail(PSERVER_ERR_NO_BROKER,
                   "%s; last: the connection to the broker is lost; the client goes on trying", text);
  }
  if (asking->trouble.code == PSERVER_OK) return status;
  ps_fail_with(&asking->trouble);
  return ps_fail_reworded(asking->trouble.code, "%s; last: %s", text, asking->trouble.text);
}

static pserver_status step(struct asking *asking) {
  struct client *client = asking->call->client;
  struct mail *mail = ps_call_take_mail(asking->call, asking->first_token, asking->count);
  if (mail != NULL) {
    pthread_mutex_unlock(&client->lock);
    pserver_status status = handle_mail(asking, mail);
    pthread_mutex_lock(&client->lock);
    return status;
  }
  if (asking->connections != client->connections) {
    asking->connections = client->connections;
    for (size_t i = asking->low; i < asking->next; i++) {
      struct ask *ask = &asking->asks[i];
      if (ask->state == ASK_OPEN) set_due(asking, ask, 0);
    }
  }
  struct ask *due = client->is_connected ? take_due(asking, ps_now_ms()) : NULL;
  if (due == NULL) {
    ps_call_wait(asking->call, client->is_connected ? asking->due_ms : NEVER_MS);
    return PSERVER_OK;
  }
  pthread_mutex_unlock(&client->lock);
  pserver_status status = send_ask(asking, due);
  pthread_mutex_lock(&client->lock);
  return status;
}

pserver_status ps_run_requests(struct call *call, struct ask *asks, size_t count) {
  struct client *client = call->client;
  struct asking asking = {.call = call, .asks = asks, .count = count, .due_ms = NEVER_MS};
  pserver_status status = PSERVER_OK;
  pthread_mutex_lock(&client->lock);
  asking.first_token = client->tokens;
  client->tokens += count;
  asking.connections = client->connections;
  while (asking.low < count && status == PSERVER_OK) {
    status = ps_call_check(call);
    if (status == PSERVER_OK) status = step(&asking);
    else status = at_end(&asking, status);
  }
  for (size_t i = asking.low; i < asking.next; i++) {
    if (asks[i].state == ASK_OPEN) client->pull_bytes -= asks[i].window_bytes;
  }
  call->waits_for_window = false;
  ps_wake_window_waiters(client);
  pthread_mutex_unlock(&client->lock);
  return status;
}
