/* Looks up parameters that are not known yet, and asks for the state of the job. */
#include "calls/parameters.h"

#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "errors/details.h"
#include "wire/clock.h"

/** Maximum bytes of a parameter in a message, whether declared or listed. */
#define PARAMETER_BYTES_MAX 2048

/** By value of pserver_state. */
static const char *const state_names[] = {"uninitialized", "initializing", "ready"};

pserver_status ps_read_state(const struct ps_value *fields, pserver_state *state) {
  struct ps_value text;
  if (ps_map_find(fields, "state", &text)) {
    for (int i = 0; i < 3; i++) {
      if (!ps_value_is_text(&text, state_names[i])) continue;
      *state = (pserver_state)i;
      return PSERVER_OK;
    }
  }
  return ps_fail(PSERVER_ERR_BAD_MESSAGE, "state: expected a state of the lifecycle; received none");
}

pserver_status ps_read_parameter_list(const struct ps_message *message, struct ps_parameter **parameters,
                                      size_t capacity, size_t *count) {
  struct ps_value list;
  struct ps_value entry;
  const uint8_t *at = NULL;
  *count = 0;
  if (!ps_map_find(&message->fields, "parameters", &list) || list.type != PS_VALUE_LIST ||
      list.count > capacity) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "parameters: expected at most %zu of them", capacity);
  }
  while (ps_list_next(&list, &at, &entry)) {
    parameters[*count] = NULL;
    if (entry.type != PS_VALUE_NIL) {
      pserver_status status = ps_read_parameter(&entry, &parameters[*count]);
      if (status != PSERVER_OK) return status;
    }
    (*count)++;
  }
  return PSERVER_OK;
}

size_t ps_parameters_per_request(struct ps_client *client) {
  size_t most = ps_last_payload_bytes_max(&client->connection);
  size_t head = PS_MESSAGE_HEAD_BYTES_MAX;
  size_t fitting = most < head ? 0 : (most - head) / PARAMETER_BYTES_MAX;
  if (fitting == 0) return 1;
  return fitting < PS_PARAMETERS_PER_REQUEST_MAX ? fitting : PS_PARAMETERS_PER_REQUEST_MAX;
}

struct status_request {
  struct ps_positions *positions;
  const char *const *names;
  size_t count;
  const char *after;
  struct ps_job_status *status;
};

static void write_status(void *context, struct ps_draft *draft) {
  const struct status_request *request = context;
  if (request->names != NULL && request->count > 0) {
    ps_draft_key(draft, "names");
    ps_pack_list(draft, request->count);
    for (size_t i = 0; i < request->count; i++) {
      ps_pack_name(draft, request->names[i]);
    }
  } else if (request->status->capacity > 0) {
    ps_draft_whole(draft, "limit", request->status->capacity);
    if (request->after != NULL) {
      ps_draft_key(draft, "after");
      ps_pack_name(draft, request->after);
    }
  }
}

/** Notes the ends of the journals when the job or the parameters became ready, which reads must have
 * reached. Those of more shards than a job can have are ignored. */
static void note_positions(struct ps_positions *positions, const struct ps_value *fields,
                           struct ps_job_status *status) {
  struct ps_value list;
  struct ps_value entry;
  const uint8_t *at = NULL;
  status->at_count = 0;
  if (!ps_map_find(fields, "at", &list)) return;
  for (uint64_t shard = 0; ps_list_next(&list, &at, &entry); shard++) {
    struct ps_position position;
    if (ps_map_position(&entry, &position)) {
      if (shard >= PS_SHARDS_MAX) break;
      ps_positions_await(positions, (unsigned)shard, position);
      status->at[shard] = (pserver_position){position.generation, position.seq};
      status->at_count = (size_t)shard + 1;
    }
  }
}

static pserver_status read_status(void *context, const struct ps_message *message) {
  struct status_request *request = context;
  struct ps_job_status *status = request->status;
  struct ps_value more;
  const struct ps_value *fields = &message->fields;
  pserver_status read = ps_read_state(fields, &status->state);
  if (read != PSERVER_OK) return read;
  if (!ps_map_whole(fields, "epoch", &status->epoch) ||
      !ps_map_whole(fields, "shards", &status->shards) ||
      !ps_map_copy_text(fields, "by", status->by, sizeof status->by) ||
      !ps_map_find(fields, "more", &more)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE,
                   "status: expected the state of a job; received another reply");
  }
  status->has_more = more.type == PS_VALUE_BOOLEAN && more.boolean;
  note_positions(request->positions, fields, status);
  return ps_read_parameter_list(message, status->parameters, status->capacity, &status->count);
}

pserver_status ps_ask_status(struct ps_call *call, const char *const *names, size_t count,
                             const char *after, struct ps_job_status *status) {
  struct ps_client *client = call->client;
  struct status_request request = {&client->positions, names, count, after, status};
  return ps_request_lifecycle(call, &client->session.lifecycle, "status", write_status, read_status,
                              &request);
}

static pserver_status not_ready(const char *name, const struct ps_parameter *parameter,
                                const struct ps_job_status *status) {
  bool is_initializing = status->state == PSERVER_INITIALIZING;
  if (parameter != NULL) {
    ps_fail(PSERVER_ERR_NOT_INITIALIZED,
            "\"%s\" is declared, but its initialization has not been finished", name);
  } else if (status->state == PSERVER_READY) {
    ps_fail(PSERVER_ERR_UNKNOWN_PARAMETER, "no parameter is called \"%s\"", name);
  } else {
    ps_fail(PSERVER_ERR_NOT_INITIALIZED,
            "\"%s\": the job is %s%s; one trainer initializes it, with begin, init and finish", name,
            is_initializing ? "being initialized by " : "uninitialized",
            is_initializing ? status->by : "");
  }
  ps_detail_text("parameter", name);
  ps_detail_text("state", state_names[status->state]);
  return ps_detail_text("by", status->by);
}

/**
 * Asks for up to 256 parameters and stores those that are ready. The error is about the first that is not.
 */
static pserver_status look_up(struct ps_call *call, const char *const *names, size_t count) {
  struct ps_parameter *listed[PS_PARAMETERS_PER_REQUEST_MAX] = {NULL};
  struct ps_job_status status = {.parameters = listed, .capacity = PS_PARAMETERS_PER_REQUEST_MAX};
  pserver_status asked = ps_ask_status(call, names, count, NULL, &status);
  if (asked == PSERVER_OK && status.count != count) {
    asked = ps_fail(PSERVER_ERR_BAD_MESSAGE, "status: expected %zu parameters; received %zu", count,
                    status.count);
  }
  for (size_t i = 0; i < status.count; i++) {
    bool is_ready = asked != PSERVER_ERR_BAD_MESSAGE && listed[i] != NULL && listed[i]->is_ready;
    if (!is_ready && asked == PSERVER_OK) asked = not_ready(names[i], listed[i], &status);
    if (is_ready) ps_parameters_remember(&call->client->parameters, listed[i]);
    else ps_parameter_unref(listed[i]);
  }
  return asked;
}

pserver_status ps_find_parameters(struct ps_call *call, const char *const *names, size_t count, bool waits,
                                  struct ps_parameter **found) {
  const char *missing[PS_PARAMETERS_PER_REQUEST_MAX];
  char token[PS_TOKEN_SIZE];
  int64_t pause_ms = PS_PAUSE_MS;
  memset(found, 0, count * sizeof(struct ps_parameter *));
  for (size_t i = 0; i < count; i++) {
    pserver_status status = ps_escape_name(names[i], names[i] == NULL ? 0 : strlen(names[i]), token);
    if (status != PSERVER_OK) return ps_fail_prefixed("%s: ", call->what);
  }
  while (true) {
    size_t lacking = ps_parameters_take(&call->client->parameters, names, count, found, missing,
                                        ps_parameters_per_request(call->client));
    if (lacking == 0) return PSERVER_OK;
    pserver_status status = look_up(call, missing, lacking);
    if (status == PSERVER_OK) continue;
    int64_t delay_ms = ps_varied_ms(pause_ms);
    bool can_wait = waits && ps_reaction_to(status) == PS_REACTION_AWAIT_INIT;
    if (!can_wait || ps_call_remaining_ms(call) <= delay_ms) return status;
    pause_ms = ps_doubled_ms(pause_ms, PS_PAUSE_MS_MAX);
    struct ps_error error = *ps_last_error();
    status = ps_call_sleep(call, delay_ms);
    if (status == PSERVER_ERR_TIMEOUT) return ps_fail_with(&error);
    if (status != PSERVER_OK) return status;
  }
}
