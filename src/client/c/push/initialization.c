#include "push/push.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Calls that initialize the job, or create a parameter. */

/** Who initializes, as a host answers to `begin` and `create`. */
struct ps_selection {
  bool is_selected;
  pserver_state state;
  uint64_t epoch;
  /** The trainer that initializes, or has done so. */
  char by[PS_ID_SIZE];
  /** The parameter to create, which receives what the host says of it; NULL: the job. */
  struct ps_declaration *declaration;
};

/* Failed initializations, one for each parameter whose last attempt failed. */

/** Returns the link to the parameter's entry, or to the end of the list that it would be in. */
static struct ps_open_init **find(struct ps_client *client, const struct ps_parameter *parameter) {
  size_t bucket = ps_name_hash(parameter->name, parameter->name_bytes) & (PS_OPEN_INIT_BUCKETS - 1);
  struct ps_open_init **link = &client->open_inits[bucket];
  while (*link != NULL && !ps_has_name(parameter, (*link)->name, (*link)->name_bytes)) {
    link = &(*link)->next;
  }
  return link;
}

static struct ps_open_init *add(struct ps_open_init **link, const struct ps_parameter *parameter) {
  struct ps_open_init *made = calloc(1, sizeof *made + parameter->name_bytes);
  if (made == NULL) return NULL;
  memcpy(made->name, parameter->name, parameter->name_bytes);
  made->name_bytes = parameter->name_bytes;
  *link = made;
  return made;
}

/** Notes an attempt that failed and may have stored blocks; does nothing if there is no memory. */
static void note_failed_init(struct ps_client *client, const struct ps_parameter *parameter,
                             uint32_t crc) {
  struct ps_open_init **link = find(client, parameter);
  struct ps_open_init *init = *link;
  if (init != NULL && init->epoch == parameter->epoch) {
    if (init->crc != crc) init->has_several = true;
    return;
  }
  if (init == NULL) init = add(link, parameter);
  if (init == NULL) return;
  init->epoch = parameter->epoch;
  init->crc = crc;
  init->has_several = false;
}

/** Forgets a parameter, which is now initialized. */
static void forget_open_init(struct ps_client *client, const struct ps_parameter *parameter) {
  struct ps_open_init **link = find(client, parameter);
  struct ps_open_init *init = *link;
  if (init == NULL) return;
  *link = init->next;
  free(init);
}

/* Messages by which hosts select the trainer that initializes, and by which it says that it has finished. */

static void write_create(void *context, struct ps_draft *draft) {
  const struct ps_selection *selection = context;
  ps_draft_key(draft, "parameter");
  ps_pack_declaration(draft, selection->declaration);
}

static pserver_status read_begin(void *context, const struct ps_message *message) {
  struct ps_selection *selection = context;
  struct ps_value selected;
  const struct ps_value *fields = &message->fields;
  pserver_status status = ps_read_state(fields, &selection->state);
  if (status != PSERVER_OK) return status;
  if (!ps_map_find(fields, "selected", &selected) || selected.type != PS_VALUE_BOOLEAN ||
      !ps_map_whole(fields, "epoch", &selection->epoch) ||
      !ps_map_copy_text(fields, "by", selection->by, sizeof selection->by)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE,
                   "begin: expected the selected trainer; received another reply");
  }
  selection->is_selected = selected.boolean;
  if (selection->declaration == NULL || !selection->is_selected) return PSERVER_OK;
  return ps_read_declared(&selection->declaration, 1, message);
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
    ps_pack_key(draft, "shard");
    ps_pack_whole(draft, shard);
    ps_pack_key(draft, "generation");
    ps_pack_whole(draft, request->at[shard].generation);
    ps_pack_key(draft, "seq");
    ps_pack_whole(draft, request->at[shard].seq);
  }
}

struct abort_request {
  uint64_t epoch;
  /** The parameter's name; NULL: the job. */
  const char *name;
};

static void write_abort(void *context, struct ps_draft *draft) {
  const struct abort_request *request = context;
  ps_draft_whole(draft, "epoch", request->epoch);
  if (request->name == NULL) return;
  ps_draft_key(draft, "parameter");
  ps_pack_name(draft, request->name);
}

/** Gives up the initialization of a parameter, or of the job if it is NULL, under its epoch. */
static pserver_status abort_initialization(struct ps_call *call, uint64_t epoch, const char *name) {
  struct abort_request request = {.epoch = epoch, .name = name};
  return ps_request_lifecycle(call, &call->client->session.lifecycle, "abort", write_abort, NULL, &request);
}

static void take_positions(struct ps_client *client, void *at) {
  memcpy(at, client->positions.awaited, sizeof client->positions.awaited);
}

/** Ends the initialization of a parameter, or of the job if it is NULL, under its epoch. INCOMPLETE. */
static pserver_status finish_initialization(struct ps_call *call, uint64_t epoch,
                                            const struct ps_parameter *parameter) {
  struct finish_request request = {.epoch = epoch, .parameter = parameter};
  ps_run_on_io_thread(call, take_positions, request.at);
  return ps_request_lifecycle(call, &call->client->session.lifecycle, "finish", write_finish, NULL,
                              &request);
}

static pserver_status still_initializing(struct ps_call *call, const struct ps_selection *selection) {
  ps_fail(PSERVER_ERR_TIMEOUT, "%s: trainer \"%s\" is still initializing (epoch %" PRIu64 ")", call->what,
          selection->by, selection->epoch);
  ps_detail_text("by", selection->by);
  return ps_detail_whole("epoch", selection->epoch);
}

/**
 * Asks to initialize the job, or `selection->declaration`. If it `waits`, asks again with growing pauses
 * until this trainer is selected or nothing is left to initialize. TIMEOUT names the selected trainer.
 */
static pserver_status await_selection(struct ps_call *call, bool waits, int64_t *pause_ms,
                                      struct ps_selection *selection) {
  bool is_create = selection->declaration != NULL;
  while (true) {
    pserver_status status =
        ps_request_lifecycle(call, &call->client->session.lifecycle, is_create ? "create" : "begin",
                             is_create ? write_create : NULL, read_begin, selection);
    if (status != PSERVER_OK || selection->is_selected || selection->state == PSERVER_READY || !waits) {
      return status;
    }
    int64_t delay_ms = ps_varied_ms(*pause_ms);
    *pause_ms = ps_doubled_ms(*pause_ms, PS_PAUSE_MS_MAX);
    if (ps_call_remaining_ms(call) <= delay_ms) return still_initializing(call, selection);
    status = ps_call_sleep(call, delay_ms);
    if (status != PSERVER_OK) return status;
  }
}

/* Sends the first values of parameters: many together, or block by block after an attempt has failed. */

/** An attempt to store the first values of a parameter. */
struct attempt {
  struct ps_parameter_update update;
  size_t bytes;
  /** Whether an earlier attempt has failed, and whether it had the same values. */
  bool is_open;
  bool is_repeated;
};

/** The attempts of one call, and their result. */
struct attempts {
  struct attempt *list;
  size_t count;
  pserver_status status;
};

static uint32_t crc_of(const struct attempt *attempt) {
  return ps_crc32_update(0, attempt->update.data, attempt->bytes);
}

static void look_for_earlier(struct ps_client *client, void *context) {
  const struct attempts *attempts = context;
  for (size_t i = 0; i < attempts->count; i++) {
    struct attempt *attempt = &attempts->list[i];
    const struct ps_parameter *parameter = attempt->update.parameter;
    const struct ps_open_init *init = *find(client, parameter);
    attempt->is_open = init != NULL && init->epoch == parameter->epoch;
    attempt->is_repeated = attempt->is_open && !init->has_several && init->crc == crc_of(attempt);
  }
}

static void note_attempts(struct ps_client *client, void *context) {
  const struct attempts *attempts = context;
  for (size_t i = 0; i < attempts->count; i++) {
    const struct attempt *attempt = &attempts->list[i];
    const struct ps_parameter *parameter = attempt->update.parameter;
    if (attempts->status == PSERVER_OK) forget_open_init(client, parameter);
    else note_failed_init(client, parameter, crc_of(attempt));
  }
}

/** Makes attempts whose earlier ones ended alike, and notes their result. */
static pserver_status send_alike(struct ps_call *call, struct attempt *list, size_t count) {
  struct attempts attempts = {.list = list, .count = count};
  struct ps_parameter_update *updates = calloc(count, sizeof *updates);
  if (updates == NULL) return ps_no_memory("%zu parameters", count);
  for (size_t i = 0; i < count; i++) updates[i] = list[i].update;
  struct ps_call_mode mode = {.counts_present = list[0].is_repeated};
  attempts.status = ps_send_updates(call, updates, count, mode, list[0].is_open);
  ps_run_on_io_thread(call, note_attempts, &attempts);
  free(updates);
  return attempts.status;
}

/** Copies the attempts whose earlier ones ended in this way, in order; returns their number. */
static size_t list_alike(const struct attempt *list, size_t count, bool is_open, bool is_repeated,
                         struct attempt *alike) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    if (list[i].is_open == is_open && list[i].is_repeated == is_repeated) alike[found++] = list[i];
  }
  return found;
}

/**
 * Makes all attempts: first ones together, in batches. In repeated ones each block is sent in a record of
 * its own, because in a batch one block that is initialized already would get all others rejected.
 */
static pserver_status send_all(struct ps_call *call, struct attempt *list, size_t count) {
  static const struct {
    bool is_open;
    bool is_repeated;
  } kinds[] = {{true, true}, {true, false}, {false, false}};
  struct attempts attempts = {.list = list, .count = count};
  struct attempt *alike = calloc(count, sizeof *alike);
  if (alike == NULL) return ps_no_memory("%zu parameters", count);
  ps_run_on_io_thread(call, look_for_earlier, &attempts);
  pserver_status status = PSERVER_OK;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && status == PSERVER_OK; i++) {
    size_t found = list_alike(list, count, kinds[i].is_open, kinds[i].is_repeated, alike);
    if (found > 0) status = send_alike(call, alike, found);
  }
  free(alike);
  return status;
}

static pserver_status make_attempt(const struct ps_declaration *declaration, struct attempt *attempt) {
  struct ps_parameter *parameter = declaration->parameter;
  const pserver_tensor *value = declaration->value;
  uint64_t elements = parameter->layout.elements;
  attempt->update = (struct ps_parameter_update){
      .operation = PS_UPDATE_INIT, .parameter = parameter, .data = value->data};
  attempt->bytes = value->bytes;
  pserver_status status = ps_fit_tensor(parameter, value, parameter->shape, parameter->rank, elements);
  if (status != PSERVER_OK || declaration->is_finite) return status;
  return ps_check_finite(parameter, PSERVER_AS_IS, value->data, elements);
}

/**
 * Stores the values of declared parameters, which this trainer is selected to initialize. In a repeat with
 * the same values, blocks that are stored already count as done. Errors as of pserver_init_param().
 */
static pserver_status store_first_values(struct ps_call *call, struct ps_declaration *declarations,
                                         size_t count) {
  struct attempt *list = calloc(count, sizeof *list);
  if (list == NULL) return ps_no_memory("%zu parameters", count);
  pserver_status status = PSERVER_OK;
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    status = make_attempt(&declarations[i], &list[i]);
  }
  if (status == PSERVER_OK) status = send_all(call, list, count);
  free(list);
  return status;
}

/* Creates single parameters: the trainer that comes first initializes, others wait. */

/** How long a call that fails to create a parameter may take longer to give that up. */
#define GIVE_UP_MS 2000

/**
 * Gives up the parameter that a call was selected to create and has failed to, so that another trainer can. The last
 * error stays. If no host answers, others wait until this trainer's lease ends or it tries again. A cancelled call says
 * so once and does not wait for an answer.
 */
static void give_up(const struct ps_call *call, uint64_t epoch, const char *name) {
  struct ps_error error = *ps_last_error();
  struct ps_call inner;
  if (ps_call_enter(&inner, call->calls, call->what, GIVE_UP_MS, PS_CALL_INNER) == PSERVER_OK) {
    inner.client = call->client;
    abort_initialization(&inner, epoch, name);
    ps_call_leave(&inner);
  }
  ps_fail_with(&error);
}

/** Creates a parameter unless it exists; waits while another trainer is creating it. */
static pserver_status create_or_wait(struct ps_call *call, const char *name, const pserver_tensor *value,
                                     const pserver_config *config) {
  struct ps_declaration declaration = {.name = name, .value = value, .config = config};
  int64_t pause_ms = PS_PAUSE_MS;
  pserver_status status = ps_check_declaration(&declaration);
  if (status != PSERVER_OK) return ps_fail_prefixed("%s: ", call->what);
  while (true) {
    struct ps_selection selection = {.declaration = &declaration};
    status = await_selection(call, true, &pause_ms, &selection);
    if (status != PSERVER_OK || !selection.is_selected) return status;
    status = store_first_values(call, &declaration, 1);
    if (status == PSERVER_OK) status = finish_initialization(call, selection.epoch, declaration.parameter);
    ps_declarations_release(&declaration, 1);
    /* Another trainer has taken over, because this one has lost its lease: wait for the other. */
    if (!ps_yields_init(status)) {
      if (status != PSERVER_OK) give_up(call, selection.epoch, name);
      return status;
    }
    status = ps_call_sleep(call, ps_varied_ms(pause_ms));
    if (status != PSERVER_OK) return status;
  }
}

pserver_status pserver_create(pserver_client *handle, const char *name, const pserver_tensor *value,
                              const pserver_config *config, int64_t timeout_ms, pserver_tensor *settled) {
  struct ps_call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_create", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = create_or_wait(&call, name, value, config);
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

/* Initialization of the job by the trainer that is selected. */

static void note_epoch(struct ps_client *client, void *epoch) { client->init_epoch = *(uint64_t *)epoch; }

static void take_epoch(struct ps_client *client, void *epoch) { *(uint64_t *)epoch = client->init_epoch; }

pserver_status pserver_begin_init(pserver_client *handle, bool wait, int64_t timeout_ms, bool *selected) {
  struct ps_call call;
  if (selected == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "pserver_begin_init: selected: expected a pointer; received NULL");
  }
  pserver_status status = ps_call_begin(&call, handle, "pserver_begin_init", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  struct ps_selection selection = {0};
  int64_t pause_ms = PS_PAUSE_MS;
  status = await_selection(&call, wait, &pause_ms, &selection);
  if (status == PSERVER_OK) {
    uint64_t epoch = selection.is_selected ? selection.epoch : 0;
    ps_run_on_io_thread(&call, note_epoch, &epoch);
    *selected = selection.is_selected;
  }
  return ps_call_end(&call, status);
}

/**
 * Returns in `*epoch` the epoch of the initialization that this trainer is selected for. NOT_SELECTED if it
 * is not.
 */
static pserver_status selected_epoch(struct ps_call *call, uint64_t *epoch) {
  ps_run_on_io_thread(call, take_epoch, epoch);
  if (*epoch != 0) return PSERVER_OK;
  ps_fail(
      PSERVER_ERR_NOT_SELECTED,
      "%s: this trainer is not selected to initialize; call pserver_begin_init, and initialize only if "
      "it says so",
      call->what);
  return ps_detail_text("trainer", call->client->identity.trainer);
}

/** A set of names, in a hash table that is at most half full. */
struct name_set {
  const char **slots;
  size_t slot_count;
};

/** Adds a name, which must outlive the set; false if the set has it already. */
static bool add_name(struct name_set *set, const char *name) {
  size_t last = set->slot_count - 1;
  size_t at = ps_name_hash(name, strlen(name)) & last;
  for (; set->slots[at] != NULL; at = (at + 1) & last) {
    if (strcmp(set->slots[at], name) == 0) return false;
  }
  set->slots[at] = name;
  return true;
}

/** Fails with BAD_VALUE if a name occurs twice. */
static pserver_status check_distinct(struct ps_call *call, const struct ps_declaration *declarations,
                                     size_t count) {
  struct name_set set = {.slot_count = 2};
  while (set.slot_count < 2 * count) set.slot_count *= 2;
  set.slots = calloc(set.slot_count, sizeof(char *));
  pserver_status status = set.slots == NULL ? ps_no_memory("%zu names", count) : PSERVER_OK;
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    const char *name = declarations[i].name;
    if (add_name(&set, name)) continue;
    ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected each parameter once; received \"%s\" twice", call->what,
            name);
    status = ps_detail_text("parameter", name);
  }
  free(set.slots);
  return status;
}

/** Declares parameters and stores their values. All are checked before anything is sent. */
static pserver_status init_declared(struct ps_call *call, struct ps_declaration *declarations,
                                    size_t count) {
  uint64_t epoch = 0;
  pserver_status status = selected_epoch(call, &epoch);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    status = ps_check_declaration(&declarations[i]);
  }
  if (status == PSERVER_OK) status = check_distinct(call, declarations, count);
  if (status == PSERVER_OK) status = ps_declare(call, epoch, declarations, count);
  if (status == PSERVER_OK) status = store_first_values(call, declarations, count);
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
    return ps_no_memory("%zu declarations", count);
  }
  for (size_t i = 0; i < count; i++) {
    declarations[i] = (struct ps_declaration){
        .name = parameters[i].name, .value = &parameters[i].value, .config = parameters[i].config};
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
  if (status == PSERVER_OK) status = finish_initialization(&call, epoch, NULL);
  if (status == PSERVER_OK) {
    uint64_t none = 0;
    ps_run_on_io_thread(&call, note_epoch, &none);
  }
  return ps_call_end(&call, status);
}

pserver_status pserver_abort_init(pserver_client *handle, int64_t timeout_ms) {
  struct ps_call call;
  uint64_t epoch = 0;
  pserver_status status = ps_call_begin(&call, handle, "pserver_abort_init", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = selected_epoch(&call, &epoch);
  if (status == PSERVER_OK) {
    status = abort_initialization(&call, epoch, NULL);
  }
  if (status == PSERVER_OK) {
    uint64_t none = 0;
    ps_run_on_io_thread(&call, note_epoch, &none);
  }
  return ps_call_end(&call, status);
}
