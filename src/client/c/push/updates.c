#include "push/push.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Calls that set and push parameters or parts of them, and what all calls share that change parameters. */

/* Sets of parameters, by the number of block 0, in a hash table that is at most half full. */

/** 2^32 divided by the golden ratio: it spreads numbers at equal distances evenly. */
#define SPREADING_FACTOR 2654435769u

bool ps_parameter_set_init(struct ps_parameter_set *set, size_t count) {
  unsigned bits = 1;
  while ((size_t)1 << bits < 2 * count) bits++;
  *set = (struct ps_parameter_set){.slots = calloc((size_t)1 << bits, sizeof *set->slots), .bits = bits};
  return set->slots != NULL;
}

bool ps_parameter_set_add(struct ps_parameter_set *set, const struct ps_parameter *parameter) {
  size_t last = ((size_t)1 << set->bits) - 1;
  size_t at = (uint32_t)(parameter->first_number * SPREADING_FACTOR) >> (32 - set->bits);
  for (; set->slots[at] != 0; at = (at + 1) & last) {
    if (set->slots[at] == parameter->first_number) return false;
  }
  set->slots[at] = parameter->first_number;
  return true;
}

void ps_parameter_set_release(struct ps_parameter_set *set) { free(set->slots); }

/* Sends block updates of a call and waits for their fates. */

struct send_task {
  struct ps_task task;
  struct ps_sending *sending;
};

static void sending_over(struct ps_sending *sending, pserver_status status) {
  ps_task_finish(sending->context, status);
}

static void begin_task(struct ps_task *task) {
  ps_sending_begin(&task->call->client->sender, ((struct send_task *)task)->sending);
}

static void end_task(struct ps_task *task, pserver_status why) {
  (void)why;
  ps_sending_end(((struct send_task *)task)->sending);
}

pserver_status ps_send(struct ps_call *call, struct ps_sending *sending) {
  if (sending->count == 0) return PSERVER_OK;
  struct send_task send = {.task = {.begin = begin_task, .end = end_task}, .sending = sending};
  sending->over = sending_over;
  sending->context = &send.task;
  sending->waiting = call;
  return ps_forget_if_stale(call, sending, ps_task_run(call, &send.task));
}

pserver_status ps_forget_if_stale(struct ps_call *call, const struct ps_sending *sending,
                                  pserver_status status) {
  if (ps_reaction_to(status) != PS_REACTION_LOOK_UP) return status;
  /* The parameter was initialized again since it was looked up: the next call must look it up again. */
  struct ps_error error = *ps_last_error();
  for (size_t i = 0; i < sending->count; i++) {
    struct ps_parameter *parameter = sending->sources[i].update->parameter;
    ps_forget_parameters(&call->client->parameters, &parameter, 1);
  }
  return ps_fail_with(&error);
}

pserver_status ps_send_updates(struct ps_call *call, struct ps_parameter_update *updates, size_t count,
                               struct ps_call_mode mode, bool goes_alone) {
  size_t total = 0;
  for (size_t i = 0; i < count; i++) total += updates[i].parameter->layout.blocks;
  struct ps_sending sent = {.count = total, .mode = mode, .goes_alone = goes_alone};
  sent.sources = malloc(total * sizeof(struct ps_block_source));
  if (sent.sources == NULL) return ps_no_memory("%zu blocks", total);
  struct ps_block_source *sources = sent.sources;
  for (size_t i = 0; i < count; i++) {
    ps_cut_into_blocks(&updates[i], sources);
    sources += updates[i].parameter->layout.blocks;
  }
  pserver_status status = ps_send(call, &sent);
  free(sent.sources);
  return status;
}

/* Calls that change whole parameters, and the checks that all updates share. Checks come before anything is
 * sent. */

pserver_status ps_check_changeable(const struct ps_parameter *parameter) {
  if (!parameter->is_static) return PSERVER_OK;
  ps_fail(PSERVER_ERR_STATIC, "\"%s\" is static: it takes no update", parameter->name);
  return ps_detail_text("parameter", parameter->name);
}

pserver_status ps_check_computable(const struct ps_parameter *parameter) {
  if (parameter->dtype != PSERVER_BOOL) return PSERVER_OK;
  ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": expected numbers to compute with; it is bool, which is only set",
          parameter->name);
  return ps_detail_mismatch(parameter->name, "numbers", "bool");
}

pserver_status ps_finish_update(struct ps_parameter_update *update, uint64_t elements) {
  const struct ps_parameter *parameter = update->parameter;
  pserver_status status = ps_check_finite(parameter, update->encoding, update->data, elements);
  update->has_norm = update->operation == PS_UPDATE_GRADIENT && parameter->clips_norm;
  /* That of int8 and e3m0 is known once the elements are encoded. */
  if (status != PSERVER_OK || !update->has_norm || ps_is_grouped(update->encoding)) return status;
  update->norm = ps_l2_norm(parameter->dtype, update->encoding, update->data, elements);
  return PSERVER_OK;
}

/** Prepares an update of a whole parameter. */
static pserver_status whole_update(struct ps_parameter_update *update, const pserver_tensor *tensor) {
  const struct ps_parameter *parameter = update->parameter;
  pserver_status status = ps_check_changeable(parameter);
  if (status == PSERVER_OK && update->operation == PS_UPDATE_MIX) status = ps_check_computable(parameter);
  if (status == PSERVER_OK) status = ps_check_encoding(parameter, update->encoding);
  if (status == PSERVER_OK) {
    status =
        ps_fit_tensor(parameter, tensor, parameter->shape, parameter->rank, parameter->layout.elements);
  }
  if (status != PSERVER_OK) return status;
  update->data = tensor->data;
  return ps_finish_update(update, parameter->layout.elements);
}

static pserver_status send_whole(struct ps_call *call, const char *const *names,
                                 const pserver_tensor *values, size_t count,
                                 const struct ps_parameter_update *kind, bool stored_is_enough) {
  struct ps_parameter **found = calloc(count, sizeof *found);
  struct ps_parameter_update *updates = malloc(count * sizeof *updates);
  struct ps_parameter_set set;
  bool has_memory = ps_parameter_set_init(&set, count) && found != NULL && updates != NULL;
  pserver_status status = has_memory ? ps_find_parameters(call, names, count, false, found)
                                     : ps_no_memory("%zu updates", count);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    updates[i] = *kind;
    updates[i].parameter = found[i];
    updates[i].is_repeated = !ps_parameter_set_add(&set, found[i]);
    status = whole_update(&updates[i], &values[i]);
  }
  struct ps_call_mode mode = {.is_done_when_stored = stored_is_enough};
  if (status == PSERVER_OK) status = ps_send_updates(call, updates, count, mode, false);
  if (found != NULL) ps_parameters_unref(found, count);
  ps_parameter_set_release(&set);
  free(found);
  free(updates);
  return status;
}

void pserver_update_options_init(pserver_update_options *options) {
  if (options == NULL) return;
  *options = (pserver_update_options){.struct_size = sizeof *options};
}

static pserver_status check_options(const struct ps_call *call, const pserver_update_options *options) {
  if (options == NULL) return PSERVER_OK;
  return ps_check_options(call->what, sizeof *options, options->struct_size, "pserver_update_options_init",
                          options->encoding);
}

static pserver_status set_with(const char *what, pserver_client *handle, const char *const *names,
                               const pserver_tensor *values, size_t count,
                               const pserver_update_options *options, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_parameter_update kind = {.operation = PS_UPDATE_SET};
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = check_options(&call, options);
  if (status != PSERVER_OK) return ps_call_end(&call, status);
  if (count == 0) {
    status = ps_fail(PSERVER_ERR_EMPTY, "%s: expected at least one tensor; received none", what);
  } else if (names == NULL || values == NULL) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected names and values; received NULL", what);
  } else if (options != NULL && options->encoding != PSERVER_AS_IS) {
    status = ps_fail(PSERVER_ERR_UNSUPPORTED, "%s: encoding: values that are set cannot be encoded", what);
  } else {
    status = send_whole(&call, names, values, count, &kind, options != NULL && options->stored_is_enough);
  }
  return ps_call_end(&call, status);
}

pserver_status pserver_set(pserver_client *client, const char *const *names, const pserver_tensor *values,
                           size_t count, int64_t timeout_ms) {
  return set_with("pserver_set", client, names, values, count, NULL, timeout_ms);
}

pserver_status pserver_set_with(pserver_client *client, const char *const *names,
                                const pserver_tensor *values, size_t count,
                                const pserver_update_options *options, int64_t timeout_ms) {
  return set_with("pserver_set_with", client, names, values, count, options, timeout_ms);
}

static pserver_status check_factors(double alpha, double beta) {
  if (isfinite(alpha) && isfinite(beta)) return PSERVER_OK;
  ps_fail(PSERVER_ERR_BAD_VALUE, "alpha and beta: expected finite numbers; received %g and %g", alpha,
          beta);
  ps_detail_text("expected", "a finite number");
  return ps_detail_number("received", isfinite(alpha) ? beta : alpha);
}

static pserver_status push_with(const char *what, pserver_client *handle, const char *name,
                                const pserver_tensor *value, double alpha, double beta,
                                const pserver_update_options *options, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_parameter_update kind = {.operation = PS_UPDATE_MIX, .alpha = alpha, .beta = beta};
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = check_options(&call, options);
  if (status == PSERVER_OK) status = check_factors(alpha, beta);
  if (status == PSERVER_OK) status = ps_check_tensor(name, value);
  if (status == PSERVER_OK && options != NULL) kind.encoding = options->encoding;
  if (status == PSERVER_OK) {
    status = send_whole(&call, &name, value, 1, &kind, options != NULL && options->stored_is_enough);
  }
  return ps_call_end(&call, status);
}

pserver_status pserver_push(pserver_client *client, const char *name, const pserver_tensor *value,
                            double alpha, double beta, pserver_encoding encoding, int64_t timeout_ms) {
  pserver_update_options options = {.struct_size = sizeof options, .encoding = encoding};
  return push_with("pserver_push", client, name, value, alpha, beta, &options, timeout_ms);
}

pserver_status pserver_push_with(pserver_client *client, const char *name, const pserver_tensor *value,
                                 double alpha, double beta, const pserver_update_options *options,
                                 int64_t timeout_ms) {
  return push_with("pserver_push_with", client, name, value, alpha, beta, options, timeout_ms);
}

static pserver_status send_part(struct ps_call *call, struct ps_part_push *push, bool stored_is_enough) {
  struct ps_sending updates = {.count = push->count, .mode = {.is_done_when_stored = stored_is_enough}};
  if (push->count == 0) return PSERVER_OK;
  updates.sources = malloc(push->count * sizeof(struct ps_block_source));
  if (updates.sources == NULL) return ps_no_memory("a part");
  ps_cut_part_push(push, updates.sources);
  pserver_status status = ps_send(call, &updates);
  free(updates.sources);
  return status;
}

/** The arguments of a call that changes a part. */
struct part_arguments {
  const char *name;
  const pserver_tensor *part;
  const pserver_indices *indices;
  size_t rank;
};

/** Checks the part and cuts it into slices. Release the parameter and `push`, also after an error. */
static pserver_status prepare_push(struct ps_call *call, const struct part_arguments *arguments,
                                   struct ps_parameter_update *update, struct ps_part_push *push) {
  pserver_status status = ps_check_tensor(arguments->name, arguments->part);
  if (status == PSERVER_OK) {
    status = ps_find_parameters(call, &arguments->name, 1, false, &update->parameter);
  }
  if (status == PSERVER_OK) status = ps_check_changeable(update->parameter);
  if (status == PSERVER_OK) status = ps_check_computable(update->parameter);
  if (status == PSERVER_OK) status = ps_check_encoding(update->parameter, update->encoding);
  if (status == PSERVER_OK) {
    status = ps_plan_part(update->parameter, arguments->indices, arguments->rank, &push->plan);
  }
  if (status == PSERVER_OK) {
    status = ps_fit_tensor(update->parameter, arguments->part, push->plan.shape, (int32_t)arguments->rank,
                           push->plan.elements);
  }
  if (status != PSERVER_OK) return status;
  update->data = arguments->part->data;
  status = ps_finish_update(update, push->plan.elements);
  size_t bytes_max = ps_data_bytes_max(&call->client->connection);
  return status == PSERVER_OK ? ps_prepare_part_push(update, bytes_max, push) : status;
}

static pserver_status push_part_with(const char *what, pserver_client *handle,
                                     const struct part_arguments *arguments, double alpha, double beta,
                                     const pserver_update_options *options, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_part_push push = {0};
  struct ps_parameter_update update = {.operation = PS_UPDATE_MIX, .alpha = alpha, .beta = beta};
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = check_options(&call, options);
  if (status == PSERVER_OK) status = check_factors(alpha, beta);
  if (status == PSERVER_OK && options != NULL) update.encoding = options->encoding;
  if (status == PSERVER_OK) status = prepare_push(&call, arguments, &update, &push);
  if (status == PSERVER_OK) {
    status = send_part(&call, &push, options != NULL && options->stored_is_enough);
  }
  ps_part_push_release(&push);
  ps_parameters_unref(&update.parameter, 1);
  return ps_call_end(&call, status);
}

pserver_status pserver_push_part(pserver_client *client, const char *name, const pserver_tensor *part,
                                 const pserver_indices *indices, size_t rank, double alpha, double beta,
                                 int64_t timeout_ms) {
  struct part_arguments arguments = {name, part, indices, rank};
  return push_part_with("pserver_push_part", client, &arguments, alpha, beta, NULL, timeout_ms);
}

pserver_status pserver_push_part_with(pserver_client *client, const char *name, const pserver_tensor *part,
                                      const pserver_indices *indices, size_t rank, double alpha,
                                      double beta, const pserver_update_options *options,
                                      int64_t timeout_ms) {
  struct part_arguments arguments = {name, part, indices, rank};
  return push_part_with("pserver_push_part_with", client, &arguments, alpha, beta, options, timeout_ms);
}
