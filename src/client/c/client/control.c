#include "client/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Calls that return the state of the job and of the client. */

/** Time for pserver_describe(), which waits for the I/O thread only. */
#define DESCRIBE_MS 1000

static void take_session(struct ps_client *client, void *session) {
  *(uint64_t *)session = client->session.core.session;
}

static pserver_status ask_job(const char *what, pserver_client *handle, pserver_job_info *info,
                              struct ps_job_status *status, int64_t timeout_ms) {
  struct ps_call call;
  pserver_status asked = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (asked != PSERVER_OK) return asked;
  asked = info == NULL ? ps_fail(PSERVER_ERR_BAD_VALUE, "info: expected a pointer; received NULL")
                       : ps_ask_status(&call, NULL, 0, NULL, status);
  if (asked != PSERVER_OK) return ps_call_end(&call, asked);
  *info = (pserver_job_info){
      .state = status->state, .epoch = status->epoch, .shards = (uint32_t)status->shards};
  memcpy(info->by, status->by, sizeof info->by);
  ps_run_on_io_thread(&call, take_session, &info->session);
  return ps_call_end(&call, asked);
}

pserver_status pserver_job_status(pserver_client *client, pserver_job_info *info, int64_t timeout_ms) {
  struct ps_job_status status = {0};
  return ask_job("pserver_job_status", client, info, &status, timeout_ms);
}

pserver_status pserver_job_positions(pserver_client *client, pserver_job_info *info,
                                     pserver_position *positions, size_t *position_count,
                                     int64_t timeout_ms) {
  struct ps_job_status status = {0};
  if (positions == NULL || position_count == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "pserver_job_positions: positions: expected pointers; received NULL");
  }
  pserver_status asked = ask_job("pserver_job_positions", client, info, &status, timeout_ms);
  if (asked != PSERVER_OK) return asked;
  memcpy(positions, status.at, status.at_count * sizeof status.at[0]);
  *position_count = status.at_count;
  return PSERVER_OK;
}

static pserver_status check_info(const pserver_client_info *info) {
  if (info == NULL) return ps_fail(PSERVER_ERR_BAD_VALUE, "info: expected a pointer; received NULL");
  return ps_check_struct_size("pserver_describe", sizeof *info, info->struct_size, NULL);
}

static void describe(struct ps_client *client, void *context) {
  pserver_client_info *info = context;
  const struct ps_job_terms *terms = &client->session.terms;
  *info = (pserver_client_info){
      .struct_size = sizeof *info,
      .session = client->session.core.session,
      .synchronization = (pserver_synchronization)terms->synchronization.mode,
      .trainers = terms->trainers,
      .backups = terms->synchronization.backups,
      .sums = terms->sums,
      .staleness = terms->synchronization.staleness,
      .quorum = terms->quorum,
      .grace_cap_ms = terms->grace_cap_ms,
      .steps_ended = client->steps.core.ended,
  };
  memcpy(info->job, client->identity.job, sizeof client->identity.job);
  memcpy(info->trainer, client->identity.trainer, sizeof client->identity.trainer);
}

pserver_status pserver_describe(pserver_client *handle, pserver_client_info *info) {
  struct ps_client *client;
  struct ps_call call;
  pserver_status status = ps_client_acquire(handle, "pserver_describe", &client);
  if (status != PSERVER_OK) return status;
  status = check_info(info);
  if (status == PSERVER_OK) {
    status = ps_call_enter(&call, &client->calls, "pserver_describe", DESCRIBE_MS, PS_CALL_LOOK);
  }
  if (status == PSERVER_OK) {
    call.client = client;
    ps_run_on_io_thread(&call, describe, info);
    ps_call_leave(&call);
  }
  ps_client_release(client);
  return status;
}

/* Calls that make a host write the model. */

/** The default timeout of saving. */
#define SAVE_MS 600000
#define TOKEN_TEXT_SIZE 40

struct save_request {
  const struct ps_identity *identity;
  const char *path;
  /** Identifies the save, so that it can be stopped. */
  char token[TOKEN_TEXT_SIZE];
  pserver_on_progress on_progress;
  void *context;
  /** Progress of the host in bytes. Written by the I/O thread, read by the calling one. Atomic. */
  uint64_t done;
  uint64_t total;
  /** NULL if the caller does not ask for it. */
  pserver_saved_model *saved;
};

static pserver_status write_save(struct ps_ask *ask, struct ps_draft *draft) {
  const struct save_request *request = ask->context;
  ps_draft_text(draft, "path", request->path);
  ps_draft_text(draft, "token", request->token);
  /* Also as an entry: between accounts, the broker gives the host another reply subject, for one reply
   * only. */
  ps_draft_text(draft, "progress", ask->reply);
  return ps_draft_end(draft);
}

/** Whether a message reports progress, which is then noted. */
static bool take_progress(struct save_request *request, const struct ps_value *fields) {
  struct ps_value progress;
  uint64_t done;
  uint64_t total;
  if (!ps_map_find(fields, "progress", &progress)) return false;
  bool is_told =
      ps_map_whole(&progress, "doneBytes", &done) && ps_map_whole(&progress, "totalBytes", &total);
  if (!is_told) return true;
  __atomic_store_n(&request->done, done, __ATOMIC_RELAXED);
  __atomic_store_n(&request->total, total, __ATOMIC_RELAXED);
  return true;
}

/** Reports the last progress to the caller. */
static void tell_progress(struct ps_ask *ask) {
  const struct save_request *request = ask->context;
  if (request->on_progress == NULL) return;
  request->on_progress(request->context, __atomic_load_n(&request->done, __ATOMIC_RELAXED),
                       __atomic_load_n(&request->total, __ATOMIC_RELAXED));
}

static pserver_status read_save(struct ps_ask *ask, const struct ps_message *message) {
  struct save_request *request = ask->context;
  pserver_saved_model read = {.struct_size = sizeof read};
  const struct ps_value *fields = &message->fields;
  ask->goes_on = take_progress(request, fields);
  if (ask->goes_on) return PSERVER_OK;
  if (!ps_map_copy_text(fields, "file", read.file, sizeof read.file) ||
      !ps_map_whole(fields, "bytes", &read.bytes) ||
      !ps_map_copy_text(fields, "format", read.format, sizeof read.format) ||
      !ps_map_copy_text(fields, "host", read.host, sizeof read.host)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "save: expected a file; received another reply");
  }
  if (request->saved != NULL) *request->saved = read;
  return PSERVER_OK;
}

static pserver_status nobody_saves(struct ps_ask *ask) {
  const struct save_request *request = ask->context;
  ps_fail(PSERVER_ERR_NO_HOST, "no host of job \"%s\" can save", request->identity->job);
  return ps_detail_text("job", request->identity->job);
}

/** Tells the host to stop. If the message is lost, the host finishes writing, without any effect on the
 * client. */
static void stop_saving(struct ps_client *client, void *context) {
  const struct save_request *request = context;
  char subject[PS_SUBJECT_SIZE];
  struct ps_draft draft;
  snprintf(subject, sizeof subject, "ps.%s.control.%s.stop", client->identity.job, client->identity.id);
  ps_draft_begin(&draft);
  ps_draft_text(&draft, "token", request->token);
  if (ps_draft_end(&draft) == PSERVER_OK) {
    ps_publish(&client->control, subject, NULL, draft.buffer.data, draft.buffer.size);
  }
  ps_draft_release(&draft);
}

/** Tells the host to stop if the call ended before the host answered; keeps the last error. */
static void stop_if_ended(struct ps_call *call, struct save_request *request) {
  struct ps_error error = *ps_last_error();
  if (ps_call_check(call) != PSERVER_OK) ps_run_on_io_thread(call, stop_saving, request);
  ps_fail_with(&error);
}

static pserver_status save(const char *what, pserver_client *handle, struct save_request *request,
                           int64_t timeout_ms) {
  struct ps_call call;
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, SAVE_MS);
  if (status != PSERVER_OK) return status;
  if (request->path == NULL)
    status = ps_fail(PSERVER_ERR_BAD_PATH, "path: expected a path; received NULL");
  if (status == PSERVER_OK && request->saved != NULL) {
    status = ps_check_struct_size(what, sizeof *request->saved, request->saved->struct_size, NULL);
  }
  if (status != PSERVER_OK) return ps_call_end(&call, status);
  snprintf(request->token, sizeof request->token, "%016" PRIx64 "%016" PRIx64, ps_random_bits(),
           ps_random_bits());
  request->identity = &call.client->identity;
  /* Not repeated, because a repeat would begin saving again. */
  struct ps_ask ask = {.write = write_save,
                       .read = read_save,
                       .nobody = nobody_saves,
                       .on_progress = tell_progress,
                       .context = request,
                       .is_sent_once = true};
  snprintf(ask.subject, sizeof ask.subject, "ps.%s.control.%s.save", call.client->identity.job,
           call.client->identity.id);
  status = ps_run_requests(&call, &call.client->control_requests, &ask, 1);
  if (status != PSERVER_OK) stop_if_ended(&call, request);
  return ps_call_end(&call, status);
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
