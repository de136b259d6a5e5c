/* Initialization of the job by one trainer, and of single parameters by whoever comes first. */
#include "calls/lifecycle.h"

#include <inttypes.h>
#include <string.h>

#include "calls/client.h"
#include "calls/parameters.h"
#include "errors/details.h"
#include "pull/pull.h"
#include "push/sent-updates.h"
#include "wire/clock.h"
#include "wire/crc32.h"
#include "wire/dtypes.h"

#define PAUSE_MS 50
#define PAUSE_MS_MAX 500

/** A parameter as a caller declares it, and what a host says to that. */
struct declaration {
  const char *name;
  const pserver_tensor *value;
  const pserver_config *config;
  /** The job's epoch; 0 in `create`. */
  uint64_t epoch;
  /** With one reference, after the reply. */
  struct parameter *parameter;
};

/** Answer to `begin` and `create`. */
struct begin_reply {
  bool is_selected;
  pserver_state state;
  uint64_t epoch;
  char by[ID_SIZE];
  struct declaration *declaration;
};

static bool has_paddle(const pserver_config *config) {
  return config != NULL && (config->optimizer_config != NULL || config->parameter_config != NULL);
}

static void pack_config(struct draft *draft, const pserver_config *config) {
  if (!has_paddle(config)) {
    if (config != NULL && config->text != NULL) ps_pack_text(draft, config->text, strlen(config->text));
    else ps_pack_map(draft, 0);
    return;
  }
  ps_pack_map(draft, (config->optimizer_config != NULL) + (size_t)(config->parameter_config != NULL));
  if (config->optimizer_config != NULL) {
    ps_pack_text(draft, "optimizerConfig", 15);
    ps_pack_bytes(draft, config->optimizer_config, config->optimizer_config_bytes);
  }
  if (config->parameter_config != NULL) {
    ps_pack_text(draft, "parameterConfig", 15);
    ps_pack_bytes(draft, config->parameter_config, config->parameter_config_bytes);
  }
}

static void pack_declaration(struct draft *draft, const struct declaration *declaration) {
  const pserver_tensor *value = declaration->value;
  const char *dtype = ps_dtype_name(value->dtype);
  ps_pack_map(draft, 4);
  ps_pack_text(draft, "name", 4);
  ps_pack_name(draft, declaration->name);
  ps_pack_text(draft, "dtype", 5);
  ps_pack_text(draft, dtype, strlen(dtype));
  ps_pack_text(draft, "shape", 5);
  ps_pack_list(draft, (size_t)value->rank);
  for (int32_t axis = 0; axis < value->rank; axis++) ps_pack_whole(draft, value->shape[axis]);
  ps_pack_text(draft, "config", 6);
  pack_config(draft, declaration->config);
}

static bool has_empty_dimension(const pserver_tensor *value) {
  for (int32_t axis = 0; axis < value->rank; axis++) {
    if (value->shape[axis] == 0) return true;
  }
  return false;
}

/** Whether a configuration can allow what is not finite; escapes can spell a setting's name. */
static bool may_allow_non_finite(const pserver_config *config) {
  if (config == NULL || config->text == NULL) return false;
  return strstr(config->text, "allowNonFinite") != NULL || strchr(config->text, '\\') != NULL;
}

/**
 * NON_FINITE before the parameter is declared, where its configuration cannot allow such values: a
 * declaration that is never filled keeps others waiting. Where it can, the host's reading of it decides.
 */
static pserver_status check_first_values(const struct declaration *declaration, uint64_t elements) {
  if (may_allow_non_finite(declaration->config)) return PSERVER_OK;
  const pserver_tensor *value = declaration->value;
  const struct parameter undeclared = {.name = (char *)declaration->name, .dtype = value->dtype};
  return ps_check_finite(&undeclared, PSERVER_AS_IS, value->data, elements);
}

static pserver_status check_declaration(const struct declaration *declaration) {
  char token[TOKEN_SIZE];
  const char *name = declaration->name;
  const pserver_tensor *value = declaration->value;
  pserver_status status = ps_escape_name(name, name == NULL ? 0 : strlen(name), token);
  if (status == PSERVER_OK) status = ps_check_tensor(name, value);
  if (status != PSERVER_OK) return status;
  uint64_t elements = ps_element_count(value->shape, value->rank);
  if (elements == 0) {
    return ps_fail_shape(name,
                         has_empty_dimension(value) ? "dimensions that are whole numbers of 1 or more"
                                                    : "fewer than 2^53 elements",
                         value);
  }
  if (value->bytes != elements * ps_dtype_bytes(value->dtype)) {
    uint64_t expected = elements * ps_dtype_bytes(value->dtype);
    ps_fail(PSERVER_ERR_BAD_LENGTH, "\"%s\": expected %" PRIu64 " bytes; received %" PRIu64, name,
            expected, value->bytes);
    ps_detail_text("parameter", name);
    ps_detail_whole("expected", expected);
    return ps_detail_whole("received", value->bytes);
  }
  if (has_paddle(declaration->config) && declaration->config->text != NULL) {
    ps_fail(PSERVER_ERR_BAD_CONFIG, "\"%s\": config: expected text or messages; received both", name);
    return ps_detail_mismatch(name, "text or messages", "both");
  }
  return check_first_values(declaration, elements);
}

static pserver_status read_declared(struct declaration *declaration, const struct message *message) {
  struct parameter *listed[1] = {NULL};
  size_t count = 0;
  pserver_status status = ps_read_parameter_list(message, listed, 1, &count);
  if (status != PSERVER_OK) return status;
  bool is_it = count == 1 && listed[0] != NULL && strlen(declaration->name) == listed[0]->name_bytes &&
               memcmp(listed[0]->name, declaration->name, listed[0]->name_bytes) == 0;
  if (is_it) {
    declaration->parameter = listed[0];
    return PSERVER_OK;
  }
  ps_parameter_unref(listed[0]);
  ps_fail(PSERVER_ERR_BAD_MESSAGE,
          "expected the parameter \"%s\" in the reply; received another or none", declaration->name);
  return ps_detail_text("parameter", declaration->name);
}

static void write_declare(void *context, struct draft *draft) {
  const struct declaration *declaration = context;
  ps_draft_whole(draft, "epoch", declaration->epoch);
  ps_draft_key(draft, "parameters");
  ps_pack_list(draft, 1);
  pack_declaration(draft, declaration);
}

static pserver_status read_declare(void *context, const struct message *message) {
  return read_declared(context, message);
}

static void write_create(void *context, struct draft *draft) {
  const struct begin_reply *reply = context;
  ps_draft_key(draft, "parameter");
  pack_declaration(draft, reply->declaration);
}

static pserver_status read_begin(void *context, const struct message *message) {
  struct begin_reply *reply = context;
  struct value selected;
  const struct value *fields = &message->fields;
  pserver_status status = ps_read_state(fields, &reply->state);
  if (status != PSERVER_OK) return status;
  if (!ps_map_find(fields, "selected", &selected) || selected.type != VALUE_BOOLEAN ||
      !ps_map_whole(fields, "epoch", &reply->epoch) ||
      !ps_map_copy_text(fields, "by", reply->by, sizeof reply->by)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "begin: expected who is selected; received another reply");
  }
  reply->is_selected = selected.boolean;
  if (reply->declaration == NULL || !reply->is_selected) return PSERVER_OK;
  return read_declared(reply->declaration, message);
}

struct finish_request {
  uint64_t epoch;
  const struct parameter *parameter;
  struct position at[PS_SHARDS_MAX];
};

static void write_finish(void *context, struct draft *draft) {
  const struct finish_request *request = context;
  size_t count = 0;
  for (int shard = 0; shard < PS_SHARDS_MAX; shard++) count += request->at[shard].generation != 0;
  ps_draft_whole(draft, "epoch", request->epoch);
  if (request->parameter != NULL) {
    ps_draft_key(draft, "parameter");
    ps_pack_name(draft, request->parameter->name);
  }
  ps_draft_key(draft, "at");
  ps_pack_list(draft, count);
  for (unsigned shard = 0; shard < PS_SHARDS_MAX; shard++) {
    if (request->at[shard].generation == 0) continue;
    ps_pack_map(draft, 3);
    ps_pack_text(draft, "shard", 5);
    ps_pack_whole(draft, shard);
    ps_pack_text(draft, "generation", 10);
    ps_pack_whole(draft, request->at[shard].generation);
    ps_pack_text(draft, "seq", 3);
    ps_pack_whole(draft, request->at[shard].seq);
  }
}

static void take_positions(struct client *client, void *at) {
  memcpy(at, client->positions.awaited, sizeof client->positions.awaited);
}

static pserver_status finish(struct call *call, uint64_t epoch, const struct parameter *parameter) {
  struct finish_request request = {.epoch = epoch, .parameter = parameter};
  ps_task_visit(call, take_positions, request.at);
  return ps_request_lifecycle(call, &call->client->session.lifecycle, "finish", write_finish, NULL, &request);
}

static pserver_status still_initializing(struct call *call, const struct begin_reply *reply) {
  ps_fail(PSERVER_ERR_TIMEOUT, "%s: trainer \"%s\" is still initializing (epoch %" PRIu64 ")",
          call->what, reply->by, reply->epoch);
  ps_detail_text("by", reply->by);
  return ps_detail_whole("epoch", reply->epoch);
}

/** Asks until this trainer is selected or there is nothing left to initialize. */
static pserver_status ask_until_settled(struct call *call, const char *verb, write_entries write,
                                        bool waits, int64_t *pause_ms, struct begin_reply *reply) {
  while (true) {
    pserver_status status = ps_request_lifecycle(call, &call->client->session.lifecycle, verb, write,
                                                 read_begin, reply);
    if (status != PSERVER_OK || reply->is_selected || reply->state == PSERVER_READY || !waits) {
      return status;
    }
    int64_t delay_ms = ps_varied_ms(*pause_ms);
    *pause_ms = ps_doubled_ms(*pause_ms, PAUSE_MS_MAX);
    if (ps_call_remaining_ms(call) <= delay_ms) return still_initializing(call, reply);
    status = ps_call_sleep(call, delay_ms);
    if (status != PSERVER_OK) return status;
  }
}

/** An attempt to store the values of a parameter. */
struct init_attempt {
  const struct parameter *parameter;
  uint32_t crc;
  /** Whether an earlier one has failed, and whether it was of the same values. */
  bool is_open;
  bool is_repeated;
  pserver_status status;
};

static void look_for_earlier(struct client *client, void *context) {
  struct init_attempt *attempt = context;
  attempt->is_open = ps_is_open_init(client->open_inits, attempt->parameter);
  attempt->is_repeated = ps_is_repeated_init(client->open_inits, attempt->parameter, attempt->crc);
}

static void note_attempt(struct client *client, void *context) {
  const struct init_attempt *attempt = context;
  bool is_done = attempt->status == PSERVER_OK;
  if (is_done) ps_forget_open_init(&client->open_inits, attempt->parameter);
  else ps_note_failed_init(&client->open_inits, attempt->parameter, attempt->crc);
}

/**
 * Sends the blocks of a parameter; in a repeat, what is there already is done. After a failure each goes alone:
 * in a batch, one block that is there would have all others rejected.
 */
static pserver_status send_init(struct call *call, struct parameter_update *update, size_t bytes) {
  struct init_attempt attempt = {.parameter = update->parameter,
                                 .crc = ps_crc32_update(0, update->data, bytes)};
  ps_task_visit(call, look_for_earlier, &attempt);
  struct ps_call_mode mode = {.counts_present = attempt.is_repeated};
  attempt.status = ps_send_updates(call, update, 1, mode, attempt.is_open);
  ps_task_visit(call, note_attempt, &attempt);
  return attempt.status;
}

/** Stores the values of a parameter that this trainer was selected for. */
static pserver_status fill(struct call *call, struct declaration *declaration) {
  struct parameter_update update = {
      .operation = UPDATE_INIT, .parameter = declaration->parameter, .data = declaration->value->data};
  pserver_status status =
      ps_fit_tensor(declaration->parameter, declaration->value, declaration->parameter->shape,
                    declaration->parameter->rank, declaration->parameter->layout.elements);
  if (status != PSERVER_OK) return status;
  status = ps_check_finite(declaration->parameter, PSERVER_AS_IS, update.data,
                           declaration->parameter->layout.elements);
  return status == PSERVER_OK ? send_init(call, &update, declaration->value->bytes) : status;
}

static void give_back(struct declaration *declaration) {
  ps_parameters_unref(&declaration->parameter, 1);
}

pserver_status ps_create_parameter(struct call *call, const char *name, const pserver_tensor *value,
                                   const pserver_config *config) {
  struct declaration declaration = {.name = name, .value = value, .config = config};
  int64_t pause_ms = PAUSE_MS;
  pserver_status status = check_declaration(&declaration);
  if (status != PSERVER_OK) return ps_fail_prefixed("%s: ", call->what);
  while (true) {
    struct begin_reply reply = {.declaration = &declaration};
    status = ask_until_settled(call, "create", write_create, true, &pause_ms, &reply);
    if (status != PSERVER_OK || !reply.is_selected) return status;
    status = fill(call, &declaration);
    if (status == PSERVER_OK) status = finish(call, reply.epoch, declaration.parameter);
    give_back(&declaration);
    /* Another trainer took over, because this one's lease was lost: wait for that one. */
    if (!ps_yields_init(status)) return status;
    status = ps_call_sleep(call, ps_varied_ms(pause_ms));
    if (status != PSERVER_OK) return status;
  }
}

static void note_epoch(struct client *client, void *epoch) { client->init_epoch = *(uint64_t *)epoch; }

static void take_epoch(struct client *client, void *epoch) { *(uint64_t *)epoch = client->init_epoch; }

pserver_status pserver_begin_init(pserver_client *handle, bool wait, int64_t timeout_ms,
                                  bool *selected) {
  struct call call;
  if (selected == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "pserver_begin_init: selected: expected a place; received NULL");
  }
  pserver_status status = ps_call_begin(&call, handle, "pserver_begin_init", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  struct begin_reply reply = {0};
  int64_t pause_ms = PAUSE_MS;
  status = ask_until_settled(&call, "begin", NULL, wait, &pause_ms, &reply);
  if (status == PSERVER_OK) {
    uint64_t epoch = reply.is_selected ? reply.epoch : 0;
    ps_task_visit(&call, note_epoch, &epoch);
    *selected = reply.is_selected;
  }
  return ps_call_end(&call, status);
}

/** Epoch of the initialization this trainer was selected for. NOT_SELECTED if it is not. */
static pserver_status selected_epoch(struct call *call, uint64_t *epoch) {
  ps_task_visit(call, take_epoch, epoch);
  if (*epoch != 0) return PSERVER_OK;
  ps_fail(
      PSERVER_ERR_NOT_SELECTED,
      "%s: this trainer is not selected to initialize; call pserver_begin_init, and initialize only if "
      "it says so",
      call->what);
  return ps_detail_text("trainer", call->client->identity.trainer);
}

pserver_status pserver_init_param(pserver_client *handle, const char *name, const pserver_tensor *value,
                                  const pserver_config *config, int64_t timeout_ms) {
  struct call call;
  struct declaration declaration = {.name = name, .value = value, .config = config};
  pserver_status status = ps_call_begin(&call, handle, "pserver_init_param", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = selected_epoch(&call, &declaration.epoch);
  if (status == PSERVER_OK) status = check_declaration(&declaration);
  if (status == PSERVER_OK) {
    status = ps_request_lifecycle(&call, &call.client->session.lifecycle, "declare", write_declare,
                                  read_declare, &declaration);
  }
  if (status == PSERVER_OK) status = fill(&call, &declaration);
  give_back(&declaration);
  return ps_call_end(&call, status);
}

pserver_status pserver_finish_init(pserver_client *handle, int64_t timeout_ms) {
  struct call call;
  uint64_t epoch = 0;
  pserver_status status = ps_call_begin(&call, handle, "pserver_finish_init", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = selected_epoch(&call, &epoch);
  if (status == PSERVER_OK) status = finish(&call, epoch, NULL);
  if (status == PSERVER_OK) {
    uint64_t none = 0;
    ps_task_visit(&call, note_epoch, &none);
  }
  return ps_call_end(&call, status);
}

pserver_status pserver_create(pserver_client *handle, const char *name, const pserver_tensor *value,
                              const pserver_config *config, int64_t timeout_ms,
                              pserver_tensor *settled) {
  struct call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_create", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = ps_create_parameter(&call, name, value, config);
  if (status == PSERVER_OK) {
    struct parameter *found = NULL;
    status = ps_find_parameters(&call, &name, 1, true, &found);
    if (status == PSERVER_OK) {
      status = ps_fit_tensor(found, value, found->shape, found->rank, found->layout.elements);
    }
    ps_parameters_unref(&found, 1);
  }
  if (status == PSERVER_OK && settled != NULL) {
    settled->data = NULL;
    pserver_read_options options;
    pserver_read_options_init(&options);
    status = ps_pull_parameters(&call, &name, settled, 1, &options);
  }
  return ps_call_end(&call, status);
}
