/* Calls under way: their time, their end, and what comes for them. */
#include "calls/call.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "errors/details.h"
#include "wire/clock.h"

/** One year, so that times do not overflow. */
#define TIMEOUT_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)
/** Messages kept for a call that does not take them, which are repeats of replies. More are dropped. */
#define MAIL_MAX 4096

static void enlist(struct call *call, struct client *client) {
  call->client = client;
  call->ends_at_ms = ps_now_ms() + call->timeout_ms;
  call->number = ++client->calls_made;
  call->next = client->calls;
  client->calls = call;
  if (!call->is_inner) client->running++;
}

static void drop_out(struct call *call) {
  struct client *client = call->client;
  struct call **link = &client->calls;
  while (*link != call) link = &(*link)->next;
  *link = call->next;
  if (!call->is_inner && --client->running == 0) pthread_cond_broadcast(&client->idle);
  while (call->mail != NULL) {
    struct mail *mail = call->mail;
    call->mail = mail->next;
    ps_mail_free(mail);
  }
}

static pserver_status aborted(const struct call *call) {
  return ps_fail(PSERVER_ERR_ABORTED, "%s: aborted by the caller", call->what);
}

pserver_status ps_call_begin(struct call *call, pserver_client *handle, const char *what,
                             int64_t timeout_ms, int64_t default_ms) {
  struct client *client;
  pserver_status status = ps_client_acquire(handle, what, &client);
  if (status != PSERVER_OK) return status;
  if (timeout_ms == PSERVER_TIMEOUT_DEFAULT) {
    timeout_ms = default_ms == 0 ? client->call_timeout_ms : default_ms;
  }
  if (timeout_ms <= 0 || timeout_ms > TIMEOUT_MS_MAX) {
    ps_client_release(client);
    ps_fail(PSERVER_ERR_BAD_VALUE, "%s: timeout_ms: expected more than 0; received %" PRId64, what,
            timeout_ms);
    ps_detail_text("expected", "more than 0");
    return ps_detail_signed("received", timeout_ms);
  }
  *call = (struct call){.what = what, .timeout_ms = timeout_ms};
  if (ps_condition_init(&call->woken) != 0) {
    ps_client_release(client);
    return ps_fail(PSERVER_ERR_INTERNAL, "%s: no room for a condition", what);
  }
  ps_cancellable_enter(&call->cancellable, &client->lock, &call->woken);
  pthread_mutex_lock(&client->lock);
  if (client->failure.code != PSERVER_OK) status = ps_fail_with(&client->failure);
  else if (call->cancellable.is_cancelled) status = aborted(call);
  else if (client->is_closing) status = ps_fail(PSERVER_ERR_CLOSED, "%s: the client is closed", what);
  else enlist(call, client);
  pthread_mutex_unlock(&client->lock);
  if (status != PSERVER_OK) {
    ps_cancellable_leave(&call->cancellable);
    pthread_cond_destroy(&call->woken);
    ps_client_release(client);
  }
  return status;
}

pserver_status ps_call_end(struct call *call, pserver_status status) {
  struct client *client = call->client;
  pthread_mutex_lock(&client->lock);
  drop_out(call);
  pthread_mutex_unlock(&client->lock);
  ps_cancellable_leave(&call->cancellable);
  pthread_cond_destroy(&call->woken);
  ps_client_release(client);
  return status;
}

pserver_status ps_call_begin_inner(struct call *call, struct client *client, const char *what,
                                   int64_t timeout_ms) {
  *call = (struct call){.what = what, .timeout_ms = timeout_ms, .is_inner = true};
  if (ps_condition_init(&call->woken) != 0) {
    return ps_fail(PSERVER_ERR_INTERNAL, "%s: no room for a condition", what);
  }
  ps_cancellable_enter(&call->cancellable, &client->lock, &call->woken);
  pthread_mutex_lock(&client->lock);
  enlist(call, client);
  pthread_mutex_unlock(&client->lock);
  return PSERVER_OK;
}

void ps_call_end_inner(struct call *call) {
  struct client *client = call->client;
  pthread_mutex_lock(&client->lock);
  drop_out(call);
  pthread_mutex_unlock(&client->lock);
  ps_cancellable_leave(&call->cancellable);
  pthread_cond_destroy(&call->woken);
}

pserver_status ps_call_check(struct call *call) {
  if (call->client->failure.code != PSERVER_OK && !call->is_last) {
    ps_fail_with(&call->client->failure);
    return ps_fail_prefixed("%s: ", call->what);
  }
  if (call->cancellable.is_cancelled) return aborted(call);
  if (ps_now_ms() < call->ends_at_ms) return PSERVER_OK;
  ps_fail(PSERVER_ERR_TIMEOUT, "%s: not finished within %" PRId64 " ms", call->what, call->timeout_ms);
  return ps_detail_signed("timeoutMs", call->timeout_ms);
}

void ps_call_wait(struct call *call, int64_t until_ms) {
  int64_t until = until_ms < call->ends_at_ms ? until_ms : call->ends_at_ms;
  if (ps_now_ms() < until) ps_condition_wait(&call->woken, &call->client->lock, until);
}

pserver_status ps_call_sleep(struct call *call, int64_t delay_ms) {
  int64_t until = ps_now_ms() + delay_ms;
  pthread_mutex_lock(&call->client->lock);
  pserver_status status;
  while ((status = ps_call_check(call)) == PSERVER_OK && ps_now_ms() < until) ps_call_wait(call, until);
  pthread_mutex_unlock(&call->client->lock);
  return status;
}

int64_t ps_call_remaining_ms(const struct call *call) {
  int64_t left = call->ends_at_ms - ps_now_ms();
  return left > 0 ? left : 0;
}

void ps_call_wake(struct call *call) { pthread_cond_signal(&call->woken); }

void ps_wake_all(struct client *client) {
  for (struct call *call = client->calls; call != NULL; call = call->next) ps_call_wake(call);
}

void ps_wake_window_waiters(struct client *client) {
  for (struct call *call = client->calls; call != NULL; call = call->next) {
    if (call->waits_for_window) ps_call_wake(call);
  }
}

static bool append(struct call *call, struct mail mail) {
  if (call->mail_count == MAIL_MAX) return false;
  struct mail *kept = malloc(sizeof *kept);
  if (kept == NULL) return false;
  *kept = mail;
  if (call->mail == NULL) call->mail = kept;
  else call->last_mail->next = kept;
  call->last_mail = kept;
  call->mail_count++;
  ps_call_wake(call);
  return true;
}

void ps_call_deliver(struct client *client, uint64_t call_number, uint64_t token, natsMsg *message) {
  struct call *call = client->calls;
  while (call != NULL && call->number != call_number) call = call->next;
  /* A message that no call takes is treated as lost: the request is repeated. */
  if (call == NULL || !append(call, (struct mail){.token = token, .message = message})) {
    natsMsg_Destroy(message);
  }
}

void ps_deliver_denial(struct client *client, const char *subject) {
  for (struct call *call = client->calls; call != NULL; call = call->next) {
    char *copy = strdup(subject);
    if (!append(call, (struct mail){.denied_subject = copy})) free(copy);
  }
}

struct mail *ps_call_take_mail(struct call *call, uint64_t first, uint64_t count) {
  struct mail *previous = NULL;
  for (struct mail *mail = call->mail; mail != NULL; previous = mail, mail = mail->next) {
    bool is_taken = mail->message == NULL || (mail->token >= first && mail->token - first < count);
    if (!is_taken) continue;
    if (previous == NULL) call->mail = mail->next;
    else previous->next = mail->next;
    if (call->last_mail == mail) call->last_mail = previous;
    call->mail_count--;
    return mail;
  }
  return NULL;
}

void ps_mail_free(struct mail *mail) {
  natsMsg_Destroy(mail->message);
  free(mail->denied_subject);
  free(mail);
}
