/* Initialization of the job by one trainer, and of single parameters by whoever comes first. */
#include "calls/lifecycle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "calls/declaration.h"
#include "calls/first-values.h"
#include "calls/parameters.h"
#include "errors/details.h"
#include "pull/pull.h"
#include "push/parameter-update.h"
#include "wire/clock.h"

#define PAUSE_MS 50
#define PAUSE_MS_MAX 500

/** Answer to `begin` and `create`. */
struct begin_reply {
  bool is_selected;
  pserver_state state;
  uint64_t epoch;
  char by[PS_ID_SIZE];
  struct ps_declaration *declaration;
};

static void write_create(void *context, struct ps_draft *draft) {
  const struct begin_reply *reply = context;
  ps_draft_key(draft, "parameter");
  ps_pack_declaration(draft, reply->declaration);
}

static pserver_status read_begin(void *context, const struct ps_message *message) {
  struct begin_reply *reply = context;
  struct ps_value selected;
  const struct ps_value *fields = &message->fields;
  pserver_status status = ps_read_state(fields, &reply->state);
  if (status != PSERVER_OK) return status;
  if (!ps_map_find(fields, "selected", &selected) || selected.type != PS_VALUE_BOOLEAN ||
      !ps_map_whole(fields, "epoch", &reply->epoch) ||
      !ps_map_copy_text(fields, "by", reply->by, sizeof reply->by)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "begin: expected who is selected; received another reply");
  }
  reply->is_selected = selected.boolean;
  if (reply->declaration == NULL || !reply->is_selected) return PSERVER_OK;
  return ps_read_declared(&reply->declaration, 1, message);
}

struct finish_request {
  uint64_t epoch;
  const struct ps_parameter *parameter;
  struct ps_position at[PS_SHARDS_MAX];
};

static void write_finish(void *context, struct ps_draft *draft) {
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

static void take_positions(struct ps_client *client, void *at) {
  memcpy(at, client->positions.awaited, sizeof client->positions.awaited);
}

static pserver_status finish(struct ps_call *call, uint64_t epoch, const struct ps_parameter *parameter) {
  struct finish_request request = {.epoch = epoch, .parameter = parameter};
  ps_task_visit(call, take_positions, request.at);
  return ps_request_lifecycle(call, &call->client->session.lifecycle, "finish", write_finish, NULL, &request);
}

static pserver_status still_initializing(struct ps_call *call, const struct begin_reply *reply) {
  ps_fail(PSERVER_ERR_TIMEOUT, "%s: trainer \"%s\" is still initializing (epoch %" PRIu64 ")",
          call->what, reply->by, reply->epoch);
  ps_detail_text("by", reply->by);
  return ps_detail_whole("epoch", reply->epoch);
}

/** Asks until this trainer is selected or there is nothing left to initialize. */
static pserver_status ask_until_settled(struct ps_call *call, const char *verb, ps_write_entries write,
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

pserver_status ps_create_parameter(struct ps_call *call, const char *name, const pserver_tensor *value,
                                   const pserver_config *config) {
  struct ps_declaration declaration = {.name = name, .value = value, .config = config};
  int64_t pause_ms = PAUSE_MS;
  pserver_status status = ps_check_declaration(&declaration);
  if (status != PSERVER_OK) return ps_fail_prefixed("%s: ", call->what);
  while (true) {
    struct begin_reply reply = {.declaration = &declaration};
    status = ask_until_settled(call, "create", write_create, true, &pause_ms, &reply);
    if (status != PSERVER_OK || !reply.is_selected) return status;
    status = ps_store_first_values(call, &declaration, 1);
    if (status == PSERVER_OK) status = finish(call, reply.epoch, declaration.parameter);
    ps_declarations_release(&declaration, 1);
    /* Another trainer took over, because this one's lease was lost: wait for that one. */
    if (!ps_yields_init(status)) return status;
    status = ps_call_sleep(call, ps_varied_ms(pause_ms));
    if (status != PSERVER_OK) return status;
  }
}

static void note_epoch(struct ps_client *client, void *epoch) { client->init_epoch = *(uint64_t *)epoch; }

static void take_epoch(struct ps_client *client, void *epoch) { *(uint64_t *)epoch = client->init_epoch; }

pserver_status pserver_begin_init(pserver_client *handle, bool wait, int64_t timeout_ms,
                                  bool *selected) {
  struct ps_call call;
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
static pserver_status selected_epoch(struct ps_call *call, uint64_t *epoch) {
  ps_task_visit(call, take_epoch, epoch);
  if (*epoch != 0) return PSERVER_OK;
  ps_fail(
      PSERVER_ERR_NOT_SELECTED,
      "%s: this trainer is not selected to initialize; call pserver_begin_init, and initialize only if "
      "it says so",
      call->what);
  return ps_detail_text("trainer", call->client->identity.trainer);
}

static int compare_names(const void *a, const void *b) {
  const char *const *left = a;
  const char *const *right = b;
  return strcmp(*left, *right);
}

/** BAD_VALUE if a name occurs twice. */
static pserver_status check_distinct(struct ps_call *call, const struct ps_declaration *declarations,
                                     size_t count) {
  const char **names = malloc(count * sizeof *names);
  if (names == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu names", count);
  for (size_t i = 0; i < count; i++) names[i] = declarations[i].name;
  qsort(names, count, sizeof *names, compare_names);
  pserver_status status = PSERVER_OK;
  for (size_t i = 1; i < count && status == PSERVER_OK; i++) {
    if (strcmp(names[i - 1], names[i]) != 0) continue;
    ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected each parameter once; received \"%s\" twice",
            call->what, names[i]);
    status = ps_detail_text("parameter", names[i]);
  }
  free(names);
  return status;
}

/** Declares parameters and stores their values. All are checked before anything is sent. */
static pserver_status init_declared(struct ps_call *call, struct ps_declaration *declarations, size_t count) {
  uint64_t epoch = 0;
  pserver_status status = selected_epoch(call, &epoch);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    status = ps_check_declaration(&declarations[i]);
  }
  if (status == PSERVER_OK) status = check_distinct(call, declarations, count);
  if (status == PSERVER_OK) status = ps_declare(call, epoch, declarations, count);
  if (status == PSERVER_OK) status = ps_store_first_values(call, declarations, count);
  return status;
}

pserver_status pserver_init_param(pserver_client *handle, const char *name, const pserver_tensor *value,
                                  const pserver_config *config, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_declaration declaration = {.name = name, .value = value, .config = config};
  pserver_status status = ps_call_begin(&call, handle, "pserver_init_param", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = init_declared(&call, &declaration, 1);
  ps_declarations_release(&declaration, 1);
  return ps_call_end(&call, status);
}

static pserver_status init_params(struct ps_call *call, const pserver_new_parameter *parameters,
                                  size_t count) {
  struct ps_declaration *declarations = calloc(count, sizeof *declarations);
  if (declarations == NULL) {
    return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu declarations", count);
  }
  for (size_t i = 0; i < count; i++) {
    declarations[i] = (struct ps_declaration){.name = parameters[i].name,
                                              .value = &parameters[i].value,
                                              .config = parameters[i].config};
  }
  pserver_status status = init_declared(call, declarations, count);
  ps_declarations_release(declarations, count);
  free(declarations);
  return status;
}

pserver_status pserver_init_params(pserver_client *handle, const pserver_new_parameter *parameters,
                                   size_t count, int64_t timeout_ms) {
  struct ps_call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_init_params", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  if (count == 0) {
    status = ps_fail(PSERVER_ERR_EMPTY, "%s: expected at least one parameter; received none", call.what);
  } else if (parameters == NULL) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected parameters; received NULL", call.what);
  } else {
    status = init_params(&call, parameters, count);
  }
  return ps_call_end(&call, status);
}

pserver_status pserver_finish_init(pserver_client *handle, int64_t timeout_ms) {
  struct ps_call call;
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
  struct ps_call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_create", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = ps_create_parameter(&call, name, value, config);
  if (status == PSERVER_OK) {
    struct ps_parameter *found = NULL;
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
