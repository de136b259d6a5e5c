#include "calls/calls.h"
#include "calls/client.h"
#include "errors/errors.h"
#include "formats/formats.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

/* Reads parameters from replies. */

static bool read_shape(const struct ps_value *fields, struct ps_parameter *parameter) {
  struct ps_value list;
  struct ps_value size;
  const uint8_t *at = NULL;
  if (!ps_map_find(fields, "shape", &list) || list.type != PS_VALUE_LIST) return false;
  if (list.count > PSERVER_RANK_MAX) return false;
  parameter->rank = (int32_t)list.count;
  for (int32_t axis = 0; ps_list_next(&list, &at, &size); axis++) {
    if (!ps_value_whole(&size, &parameter->shape[axis])) return false;
  }
  return ps_element_count(parameter->shape, parameter->rank) > 0;
}

static bool read_layout(const struct ps_value *fields, struct ps_parameter *parameter) {
  struct ps_value map;
  struct ps_layout *layout = &parameter->layout;
  if (!ps_map_find(fields, "layout", &map) || !ps_map_whole(&map, "elements", &layout->elements) ||
      !ps_map_whole(&map, "blockElements", &layout->block_elements) ||
      !ps_map_whole(&map, "blocks", &layout->blocks) ||
      !ps_map_whole(&map, "firstShard", &layout->first_shard) ||
      !ps_map_whole(&map, "shards", &layout->shards)) {
    return false;
  }
  uint64_t elements = ps_element_count(parameter->shape, parameter->rank);
  return layout->elements == elements && layout->block_elements > 0 &&
         layout->block_elements <= elements && layout->shards > 0 && layout->shards <= 256 &&
         layout->first_shard < layout->shards && layout->blocks <= UINT32_MAX &&
         layout->blocks == (elements + layout->block_elements - 1) / layout->block_elements;
}

static bool read_flag(const struct ps_value *map, const char *key) {
  struct ps_value flag;
  return ps_map_find(map, key, &flag) && flag.type == PS_VALUE_BOOLEAN && flag.boolean;
}

static bool read_config(const struct ps_value *fields, struct ps_parameter *parameter) {
  struct ps_value config;
  struct ps_value entry;
  struct ps_value name;
  if (!ps_map_find(fields, "config", &config) || config.type != PS_VALUE_MAP) return false;
  parameter->config = malloc(config.raw_bytes);
  if (parameter->config == NULL) return false;
  memcpy(parameter->config, config.raw, config.raw_bytes);
  parameter->config_bytes = config.raw_bytes;
  parameter->has_rate = ps_map_find(&config, "learningRate", &entry);
  parameter->has_optimizer = !ps_map_find(&config, "optimizer", &entry) ||
                             !ps_map_find(&entry, "name", &name) || !ps_value_is_text(&name, "none");
  parameter->is_sparse = read_flag(&config, "sparse");
  parameter->is_static = read_flag(&config, "static");
  parameter->clips_norm = ps_map_find(&config, "clipNorm", &entry);
  parameter->allows_non_finite = read_flag(&config, "allowNonFinite");
  return true;
}

static bool read_name(const struct ps_value *fields, struct ps_parameter *parameter) {
  struct ps_value name;
  if (!ps_map_find(fields, "name", &name) || name.type != PS_VALUE_TEXT) return false;
  parameter->name = ps_name_of_text(name.content, name.content_bytes);
  if (parameter->name == NULL) return false;
  parameter->name_bytes = strlen(parameter->name);
  return ps_escape_name(parameter->name, parameter->name_bytes, parameter->token) == PSERVER_OK;
}

pserver_status ps_read_parameter(const struct ps_value *value, struct ps_parameter **parameter) {
  struct ps_value dtype;
  struct ps_value ready;
  struct ps_parameter *read = calloc(1, sizeof *read);
  if (read == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for a parameter");
  read->references = 1;
  bool is_valid = read_name(value, read) && ps_map_find(value, "dtype", &dtype) &&
                  dtype.type == PS_VALUE_TEXT &&
                  ps_dtype_from_name((const char *)dtype.content, dtype.content_bytes, &read->dtype) &&
                  read_shape(value, read) && read_layout(value, read) && read_config(value, read) &&
                  ps_map_whole(value, "epoch", &read->epoch) && ps_map_find(value, "ready", &ready) &&
                  ready.type == PS_VALUE_BOOLEAN;
  if (is_valid) {
    read->seen = calloc(read->layout.blocks, sizeof(uint64_t));
    is_valid = read->seen != NULL;
  }
  if (is_valid) {
    read->is_ready = ready.boolean;
    *parameter = read;
    return PSERVER_OK;
  }
  ps_fail(PSERVER_ERR_BAD_MESSAGE, "a reply describes the parameter %s in an unknown way",
          read->name == NULL ? "without a name" : read->name);
  ps_parameter_unref(read);
  return PSERVER_ERR_BAD_MESSAGE;
}

void ps_parameter_ref(struct ps_parameter *parameter) {
  __atomic_add_fetch(&parameter->references, 1, __ATOMIC_RELAXED);
}

void ps_parameter_unref(struct ps_parameter *parameter) {
  if (parameter == NULL) return;
  if (__atomic_sub_fetch(&parameter->references, 1, __ATOMIC_ACQ_REL) > 0) return;
  free(parameter->name);
  free(parameter->config);
  free(parameter->seen);
  free(parameter);
}

bool ps_has_name(const struct ps_parameter *parameter, const char *name, size_t bytes) {
  return parameter->name_bytes == bytes && memcmp(parameter->name, name, bytes) == 0;
}

uint64_t ps_block_elements(const struct ps_parameter *parameter, uint64_t index) {
  const struct ps_layout *layout = &parameter->layout;
  uint64_t left = layout->elements - index * layout->block_elements;
  return left < layout->block_elements ? left : layout->block_elements;
}

uint64_t ps_row_elements(const struct ps_parameter *parameter) {
  return parameter->rank == 0 ? 1 : parameter->layout.elements / parameter->shape[0];
}

bool ps_is_cut_between_rows(const struct ps_parameter *parameter) {
  return parameter->layout.block_elements % ps_row_elements(parameter) == 0;
}

/* The known parameters, in a hash table by name. */

static struct ps_parameter **find_known(struct ps_parameters *known, const char *name, size_t bytes) {
  struct ps_parameter **link = &known->buckets[ps_name_hash(name, bytes) % PS_PARAMETER_BUCKETS];
  while (*link != NULL && !ps_has_name(*link, name, bytes)) link = &(*link)->next;
  return link;
}

static void forget(struct ps_parameters *known, const char *name, size_t bytes) {
  struct ps_parameter **link = find_known(known, name, bytes);
  struct ps_parameter *parameter = *link;
  if (parameter == NULL) return;
  *link = parameter->next;
  ps_parameter_unref(parameter);
}

/** Stores a parameter and takes over a reference. */
static void remember(struct ps_parameters *known, struct ps_parameter *parameter) {
  forget(known, parameter->name, parameter->name_bytes);
  struct ps_parameter **link = find_known(known, parameter->name, parameter->name_bytes);
  parameter->next = NULL;
  *link = parameter;
}

pserver_status ps_parameters_init(struct ps_parameters *parameters) {
  if (pthread_mutex_init(&parameters->lock, NULL) == 0) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_INTERNAL, "no memory for a lock");
}

size_t ps_parameters_take(struct ps_parameters *parameters, const char *const *names, size_t count,
                          struct ps_parameter **found, const char **missing, size_t capacity) {
  size_t lacking = 0;
  pthread_mutex_lock(&parameters->lock);
  for (size_t i = 0; i < count; i++) {
    if (found[i] != NULL) continue;
    found[i] = *find_known(parameters, names[i], strlen(names[i]));
    if (found[i] != NULL) ps_parameter_ref(found[i]);
    else if (lacking < capacity) missing[lacking++] = names[i];
  }
  pthread_mutex_unlock(&parameters->lock);
  return lacking;
}

void ps_parameters_remember(struct ps_parameters *parameters, struct ps_parameter *parameter) {
  pthread_mutex_lock(&parameters->lock);
  remember(parameters, parameter);
  pthread_mutex_unlock(&parameters->lock);
}

void ps_forget_parameters(struct ps_parameters *parameters, struct ps_parameter *const *forgotten,
                          size_t count) {
  pthread_mutex_lock(&parameters->lock);
  for (size_t i = 0; i < count; i++) {
    if (forgotten[i] != NULL) forget(parameters, forgotten[i]->name, forgotten[i]->name_bytes);
  }
  pthread_mutex_unlock(&parameters->lock);
}

void ps_parameters_unref(struct ps_parameter **parameters, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ps_parameter_unref(parameters[i]);
    parameters[i] = NULL;
  }
}

void ps_parameters_release(struct ps_parameters *parameters) {
  for (size_t i = 0; i < PS_PARAMETER_BUCKETS; i++) {
    while (parameters->buckets[i] != NULL) {
      struct ps_parameter *parameter = parameters->buckets[i];
      parameters->buckets[i] = parameter->next;
      ps_parameter_unref(parameter);
    }
  }
  pthread_mutex_destroy(&parameters->lock);
}

void ps_forget_seen_versions(struct ps_parameters *parameters) {
  pthread_mutex_lock(&parameters->lock);
  for (size_t i = 0; i < PS_PARAMETER_BUCKETS; i++) {
    for (struct ps_parameter *each = parameters->buckets[i]; each != NULL; each = each->next) {
      for (uint64_t block = 0; block < each->layout.blocks; block++) {
        __atomic_store_n(&each->seen[block], 0, __ATOMIC_RELAXED);
      }
    }
  }
  pthread_mutex_unlock(&parameters->lock);
}

/* Looks up parameters that are not known yet, and asks for the state of the job. */

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

/* Calls that list the job's parameters. */

/** Bytes of JSON that one byte of a configuration takes at most. */
#define JSON_BYTES_PER_BYTE 6

/** The list so far. */
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
  if (ps_read_checked(parameter->config, parameter->config_bytes, &config))
    ps_json_value(&json, &config);
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
      asked = ps_fail(PSERVER_ERR_INTERNAL, "no memory for the list");
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
  if (infos == NULL) status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for the list");
  if (infos != NULL) *count = listing.count;
  if (infos != NULL) *list = infos;
  pserver_list_details_release(listing.list, listing.count);
  return status;
}

void pserver_list_release(pserver_parameter_info *list, size_t count) {
  for (size_t i = 0; i < count && list != NULL; i++) free(list[i].name);
  free(list);
}
