/* Calls that return the state of the job and of the client. */
#include <string.h>

#include "calls/client.h"
#include "calls/parameters.h"
#include "errors/details.h"

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
  if (info->struct_size == sizeof *info) return PSERVER_OK;
  ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_describe: struct_size: expected %zu; received %zu",
          sizeof *info, info->struct_size);
  return ps_detail_numbers(sizeof *info, info->struct_size);
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
    status = ps_call_enter(&call, &client->calls, "pserver_describe", DESCRIBE_MS,
                           PS_CALL_LOOK);
  }
  if (status == PSERVER_OK) {
    call.client = client;
    ps_run_on_io_thread(&call, describe, info);
    ps_call_leave(&call);
  }
  ps_client_release(client);
  return status;
}
