#include "client/client.h"

#include <stdlib.h>
#include <string.h>

/* Looks up parameters that are not known yet, and asks for the state of the job. */

/** Maximum bytes of a parameter in a message, whether declared or listed. */
#define PARAMETER_BYTES_MAX 2048

size_t ps_parameters_per_request(struct ps_client *client) {
  size_t most = ps_payload_bytes_max(&client->connection);
  size_t header = PS_HEADER_BYTES_MAX;
  size_t fitting = most < header ? 0 : (most - header) / PARAMETER_BYTES_MAX;
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

/**
 * Notes the positions that reads must have reached: the ends of the journals when the job or the parameters
 * became ready. Those of more shards than a job can have are ignored.
 */
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
  if (!ps_map_whole(fields, "epoch", &status->epoch) || !ps_map_whole(fields, "shards", &status->shards) ||
      !ps_map_copy_text(fields, "by", status->by, sizeof status->by) ||
      !ps_map_find(fields, "more", &more)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "status: expected the state of a job; received another reply");
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
  ps_detail_text("state", ps_state_name(status->state));
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

/** Fails with BAD_NAME if one of the names that are not found can be none. */
static pserver_status check_names(const struct ps_call *call, const char *const *names, size_t count,
                                  struct ps_parameter *const *found) {
  char token[PS_TOKEN_SIZE];
  for (size_t i = 0; i < count; i++) {
    if (found[i] != NULL) continue;
    pserver_status status = ps_escape_name(names[i], names[i] == NULL ? 0 : strlen(names[i]), token);
    if (status != PSERVER_OK) return ps_fail_prefixed("%s: ", call->what);
  }
  return PSERVER_OK;
}

pserver_status ps_find_parameters(struct ps_call *call, const char *const *names, size_t count, bool waits,
                                  struct ps_parameter **found) {
  const char *missing[PS_PARAMETERS_PER_REQUEST_MAX];
  int64_t pause_ms = PS_PAUSE_MS;
  bool is_checked = false;
  memset(found, 0, count * sizeof(struct ps_parameter *));
  while (true) {
    size_t lacking = ps_parameters_take(&call->client->parameters, names, count, found, missing,
                                        ps_parameters_per_request(call->client));
    if (lacking == 0) return PSERVER_OK;
    pserver_status status = is_checked ? PSERVER_OK : check_names(call, names, count, found);
    is_checked = true;
    if (status != PSERVER_OK) return status;
    status = look_up(call, missing, lacking);
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

/* Calls that list the job's parameters. */

/** Bytes of JSON that one byte of a configuration takes at most. */
#define JSON_BYTES_PER_BYTE 6

/** The parameters that were listed so far. */
struct listing {
  pserver_parameter_details *list;
  size_t count;
  size_t capacity;
};

static bool reserve(struct listing *listing) {
  if (listing->count < listing->capacity) return true;
  size_t capacity = listing->capacity == 0 ? 64 : 2 * listing->capacity;
  pserver_parameter_details *list = realloc(listing->list, capacity * sizeof *list);
  if (list == NULL) return false;
  listing->list = list;
  listing->capacity = capacity;
  return true;
}

static char *config_text(const struct ps_parameter *parameter) {
  struct ps_value config;
  size_t size = JSON_BYTES_PER_BYTE * parameter->config_bytes + 64;
  struct ps_json json = {.bytes = malloc(size), .size = size};
  if (json.bytes == NULL) return NULL;
  json.bytes[0] = '\0';
  if (ps_read_checked(parameter->config, parameter->config_bytes, &config)) ps_json_value(&json, &config);
  if (!json.is_full) return json.bytes;
  free(json.bytes);
  return NULL;
}

static bool append(struct listing *listing, const struct ps_parameter *parameter) {
  if (!reserve(listing)) return false;
  pserver_parameter_details *details = &listing->list[listing->count];
  *details = (pserver_parameter_details){
      .info = {.name = strdup(parameter->name),
               .dtype = parameter->dtype,
               .rank = parameter->rank,
               .elements = parameter->layout.elements,
               .blocks = parameter->layout.blocks,
               .epoch = parameter->epoch,
               .ready = parameter->is_ready},
      .config = config_text(parameter),
      .block_elements = parameter->layout.block_elements,
      .first_shard = (uint32_t)parameter->layout.first_shard,
      .shards = (uint32_t)parameter->layout.shards,
      .pinned = parameter->layout.is_pinned,
  };
  memcpy(details->info.shape, parameter->shape, sizeof details->info.shape);
  listing->count++;
  return details->info.name != NULL && details->config != NULL;
}

/** Appends the page that follows the last name of the list. */
static pserver_status list_page(struct ps_call *call, struct listing *listing, bool *has_more) {
  struct ps_parameter *page[PS_PARAMETERS_PER_REQUEST_MAX] = {NULL};
  struct ps_job_status status = {.parameters = page, .capacity = PS_PARAMETERS_PER_REQUEST_MAX};
  const char *after = listing->count == 0 ? NULL : listing->list[listing->count - 1].info.name;
  pserver_status asked = ps_ask_status(call, NULL, 0, after, &status);
  for (size_t i = 0; i < status.count && asked == PSERVER_OK; i++) {
    if (page[i] != NULL && !append(listing, page[i])) {
      asked = ps_no_memory("the list");
    }
  }
  *has_more = asked == PSERVER_OK && status.has_more && status.count > 0;
  ps_parameters_unref(page, PS_PARAMETERS_PER_REQUEST_MAX);
  return asked;
}

static pserver_status list_all(const char *what, pserver_client *handle, struct listing *listing,
                               int64_t timeout_ms) {
  struct ps_call call;
  bool has_more = true;
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  while (status == PSERVER_OK && has_more) status = list_page(&call, listing, &has_more);
  if (status != PSERVER_OK) pserver_list_details_release(listing->list, listing->count);
  return ps_call_end(&call, status);
}

static pserver_status no_places(const char *what) {
  return ps_fail(PSERVER_ERR_BAD_VALUE, "%s: list and count: expected pointers; received NULL", what);
}

pserver_status pserver_list_details(pserver_client *client, pserver_parameter_details **list,
                                    size_t *count, int64_t timeout_ms) {
  struct listing listing = {0};
  if (list == NULL || count == NULL) return no_places("pserver_list_details");
  pserver_status status = list_all("pserver_list_details", client, &listing, timeout_ms);
  if (status != PSERVER_OK) return status;
  *list = listing.list;
  *count = listing.count;
  return PSERVER_OK;
}

void pserver_list_details_release(pserver_parameter_details *list, size_t count) {
  for (size_t i = 0; i < count && list != NULL; i++) {
    free(list[i].info.name);
    free(list[i].config);
  }
  free(list);
}

pserver_status pserver_list(pserver_client *client, pserver_parameter_info **list, size_t *count,
                            int64_t timeout_ms) {
  struct listing listing = {0};
  if (list == NULL || count == NULL) return no_places("pserver_list");
  pserver_status status = list_all("pserver_list", client, &listing, timeout_ms);
  if (status != PSERVER_OK) return status;
  pserver_parameter_info *infos = malloc((listing.count + 1) * sizeof *infos);
  for (size_t i = 0; i < listing.count && infos != NULL; i++) {
    infos[i] = listing.list[i].info;
    listing.list[i].info.name = NULL;
  }
  if (infos == NULL) status = ps_no_memory("the list");
  if (infos != NULL) *count = listing.count;
  if (infos != NULL) *list = infos;
  pserver_list_details_release(listing.list, listing.count);
  return status;
}

void pserver_list_release(pserver_parameter_info *list, size_t count) {
  for (size_t i = 0; i < count && list != NULL; i++) free(list[i].name);
  free(list);
}
