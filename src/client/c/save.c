/* The calls that have a host write the model. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "clock.h"
#include "connection.h"
#include "details.h"
#include "requests.h"

#define SAVE_MS 600000
#define TOKEN_TEXT_ROOM 40

struct save_request {
  const char *path;
  /** By which it is told apart from others, and stopped. */
  char token[TOKEN_TEXT_ROOM];
  pserver_on_progress on_progress;
  void *context;
  /** NULL if the caller does not ask for it. */
  pserver_saved_model *saved;
};

static pserver_status write_save(struct call *call, struct ask *ask, struct draft *draft) {
  (void)call;
  const struct save_request *request = ask->context;
  draft_text(draft, "path", request->path);
  draft_text(draft, "token", request->token);
  /* Where accounts are joined, the broker gives the host another reply subject, for one reply. */
  draft_text(draft, "progress", ask->reply);
  return draft_end(draft);
}

/** Whether a message tells how far it is; the caller is told. */
static bool take_progress(const struct save_request *request, const struct value *fields) {
  struct value progress;
  uint64_t done;
  uint64_t total;
  if (!map_find(fields, "progress", &progress)) return false;
  bool is_told = map_whole(&progress, "doneBytes", &done) && map_whole(&progress, "totalBytes", &total);
  if (is_told && request->on_progress != NULL) request->on_progress(request->context, done, total);
  return true;
}

static pserver_status read_save(struct call *call, struct ask *ask, const struct message *message) {
  (void)call;
  const struct save_request *request = ask->context;
  pserver_saved_model read = {.struct_size = sizeof read};
  const struct value *fields = &message->fields;
  ask->goes_on = take_progress(request, fields);
  if (ask->goes_on) return PSERVER_OK;
  if (!map_copy_text(fields, "file", read.file, sizeof read.file) ||
      !map_whole(fields, "bytes", &read.bytes) ||
      !map_copy_text(fields, "format", read.format, sizeof read.format)) {
    return fail(PSERVER_ERR_BAD_MESSAGE, "save: expected a file; received another reply");
  }
  map_copy_text(fields, "host", read.host, sizeof read.host);
  if (request->saved != NULL) *request->saved = read;
  return PSERVER_OK;
}

static pserver_status nobody_saves(struct call *call, struct ask *ask) {
  (void)ask;
  fail(PSERVER_ERR_NO_HOST, "no host of job \"%s\" can save", call->client->job);
  return detail_text("job", call->client->job);
}

/** Has the host stop, if the call ended before the host did; the last error stays. */
static void stop_if_ended(struct call *call, const struct save_request *request) {
  struct failure failure = *last_failure();
  pthread_mutex_lock(&call->client->lock);
  bool has_ended = call_check(call) != PSERVER_OK;
  pthread_mutex_unlock(&call->client->lock);
  if (has_ended) {
    char subject[SUBJECT_ROOM];
    struct draft draft;
    snprintf(subject, sizeof subject, "ps.%s.control.%s.stop", call->client->job, call->client->id);
    draft_begin(&draft);
    draft_text(&draft, "token", request->token);
    /* If it is lost, the host writes on, and nobody hears of it. */
    if (draft_end(&draft) == PSERVER_OK) {
      publish(call->client, subject, NULL, draft.buffer.data, draft.buffer.size);
    }
    draft_release(&draft);
  }
  fail_as(&failure);
}

static pserver_status save(const char *what, pserver_client *handle, struct save_request *request,
                           int64_t timeout_ms) {
  struct call call;
  pserver_status status = call_begin(&call, handle, what, timeout_ms, SAVE_MS);
  if (status != PSERVER_OK) return status;
  if (request->path == NULL) {
    return call_end(&call, fail(PSERVER_ERR_BAD_PATH, "path: expected a path; received NULL"));
  }
  if (request->saved != NULL && request->saved->struct_size != sizeof *request->saved) {
    fail(PSERVER_ERR_BAD_VALUE, "%s: struct_size: expected %zu; received %zu", what,
         sizeof *request->saved, request->saved->struct_size);
    detail_whole("expected", sizeof *request->saved);
    return call_end(&call, detail_whole("received", request->saved->struct_size));
  }
  snprintf(request->token, sizeof request->token, "%016" PRIx64 "%016" PRIx64, random_bits(),
           random_bits());
  /* Saving takes its time: asking again would only begin it again. */
  struct ask ask = {.write = write_save,
                    .read = read_save,
                    .nobody = nobody_saves,
                    .context = request,
                    .is_sent_once = true};
  snprintf(ask.subject, sizeof ask.subject, "ps.%s.control.%s.save", call.client->job,
           call.client->id);
  status = run_asks(&call, &ask, 1);
  if (status != PSERVER_OK) stop_if_ended(&call, request);
  return call_end(&call, status);
}

pserver_status pserver_save(pserver_client *client, const char *path, int64_t timeout_ms) {
  struct save_request request = {.path = path};
  return save("pserver_save", client, &request, timeout_ms);
}

pserver_status pserver_save_model(pserver_client *client, const char *path,
                                  pserver_on_progress on_progress, void *context,
                                  pserver_saved_model *saved, int64_t timeout_ms) {
  struct save_request request = {
      .path = path, .on_progress = on_progress, .context = context, .saved = saved};
  return save("pserver_save_model", client, &request, timeout_ms);
}
