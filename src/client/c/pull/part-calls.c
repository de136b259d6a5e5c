#include "calls/calls.h"
#include "calls/client.h"
#include "pull/pull.h"
#include "push/push.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

/* Calls that read and change parts of parameters. */

/** The arguments of a call that reads a part. */
struct part_read {
  const char *name;
  const pserver_indices *indices;
  size_t rank;
  pserver_tensor *part;
  const pserver_read_options *options;
  bool is_replaced;
};

static pserver_status read_plan(struct ps_call *call, struct ps_parameter *parameter,
                                const struct ps_part_plan *plan, struct part_read *read) {
  struct ps_block_read *reads = calloc(plan->count + 1, sizeof *reads);
  if (reads == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu blocks", plan->count);
  if (read->options->versions != NULL) *read->options->versions = 0;
  for (size_t i = 0; i < plan->count; i++) {
    reads[i] = (struct ps_block_read){.parameter = parameter,
                                      .index = plan->blocks[i].index,
                                      .encoding = read->options->encoding,
                                      .target = read->part->data,
                                      .version = read->options->versions,
                                      .part = &plan->blocks[i],
                                      .is_replaced = &read->is_replaced};
  }
  pserver_status status = ps_read_blocks(call, reads, plan->count);
  free(reads);
  return status;
}

static pserver_status pull_part(struct ps_call *call, struct part_read *read) {
  struct ps_parameter *found = NULL;
  struct ps_part_plan plan = {0};
  bool was_allocated = false;
  read->is_replaced = false;
  pserver_status status = ps_find_parameters(call, &read->name, 1, true, &found);
  if (status == PSERVER_OK) status = ps_check_read_encoding(found, read->options->encoding);
  if (status == PSERVER_OK) status = ps_plan_part(found, read->indices, read->rank, &plan);
  if (status == PSERVER_OK) {
    status = ps_prepare_target(found, plan.shape, (int32_t)read->rank, plan.elements, read->part,
                               &was_allocated);
  }
  if (status == PSERVER_OK) status = read_plan(call, found, &plan, read);
  bool is_settled = status == PSERVER_OK && !read->is_replaced;
  if (!is_settled && was_allocated) pserver_tensor_release(read->part);
  ps_part_plan_release(&plan);
  ps_parameters_unref(&found, 1);
  return status;
}

static pserver_status pull_part_with(const char *what, pserver_client *handle,
                                     const struct part_read *wanted, int64_t timeout_ms) {
  struct ps_call call;
  struct part_read read = *wanted;
  pserver_read_options options;
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  pserver_read_options_init(&options);
  if (read.options == NULL) read.options = &options;
  if (read.part == NULL)
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "part: expected a tensor; received NULL");
  if (status == PSERVER_OK) status = ps_check_read_options(&call, read.options);
  read.is_replaced = status == PSERVER_OK;
  while (status == PSERVER_OK && read.is_replaced) status = pull_part(&call, &read);
  return ps_call_end(&call, status);
}

pserver_status pserver_pull_part(pserver_client *client, const char *name,
                                 const pserver_indices *indices, size_t rank, pserver_tensor *part,
                                 int64_t timeout_ms) {
  struct part_read read = {name, indices, rank, part, NULL, false};
  return pull_part_with("pserver_pull_part", client, &read, timeout_ms);
}

pserver_status pserver_pull_part_with(pserver_client *client, const char *name,
                                      const pserver_indices *indices, size_t rank, pserver_tensor *part,
                                      const pserver_read_options *options, int64_t timeout_ms) {
  struct part_read read = {name, indices, rank, part, options, false};
  return pull_part_with("pserver_pull_part_with", client, &read, timeout_ms);
}

static pserver_status send_part(struct ps_call *call, struct ps_part_push *push, bool stored_is_enough) {
  struct ps_call_updates updates = {.count = push->count,
                                    .mode = {.is_done_when_stored = stored_is_enough}};
  if (push->count == 0) return PSERVER_OK;
  updates.sources = calloc(push->count, sizeof(struct ps_update_source));
  if (updates.sources == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for a part");
  ps_cut_part_push(push, updates.sources);
  pserver_status status = ps_send_call(call, &updates);
  free(updates.sources);
  return status;
}

/** The arguments of a call that changes a part. */
struct given_part {
  const char *name;
  const pserver_tensor *part;
  const pserver_indices *indices;
  size_t rank;
};

/** Checks the part and cuts it into slices. Release the parameter and `push`, also after an error. */
static pserver_status prepare_push(struct ps_call *call, const struct given_part *given,
                                   struct ps_parameter_update *update, struct ps_part_push *push) {
  pserver_status status = ps_check_tensor(given->name, given->part);
  if (status == PSERVER_OK) {
    status = ps_find_parameters(call, &given->name, 1, false, &update->parameter);
  }
  if (status == PSERVER_OK) status = ps_check_changeable(update->parameter);
  if (status == PSERVER_OK) status = ps_check_encoding(update->parameter, update->encoding);
  if (status == PSERVER_OK) {
    status = ps_plan_part(update->parameter, given->indices, given->rank, &push->plan);
  }
  if (status == PSERVER_OK) {
    status = ps_fit_tensor(update->parameter, given->part, push->plan.shape, (int32_t)given->rank,
                           push->plan.elements);
  }
  if (status != PSERVER_OK) return status;
  update->data = given->part->data;
  status = ps_finish_update(update, push->plan.elements);
  size_t bytes_max = ps_data_bytes_max(&call->client->connection);
  return status == PSERVER_OK ? ps_prepare_part_push(update, bytes_max, push)
                              : status;
}

static pserver_status push_part_with(const char *what, pserver_client *handle,
                                     const struct given_part *given, double alpha, double beta,
                                     const pserver_update_options *options, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_part_push push = {0};
  struct ps_parameter_update update = {.operation = PS_UPDATE_MIX, .alpha = alpha, .beta = beta};
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = ps_check_update_options(&call, options);
  if (status == PSERVER_OK) status = ps_check_factors(alpha, beta);
  if (status == PSERVER_OK && options != NULL) update.encoding = options->encoding;
  if (status == PSERVER_OK) status = prepare_push(&call, given, &update, &push);
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
  struct given_part given = {name, part, indices, rank};
  return push_part_with("pserver_push_part", client, &given, alpha, beta, NULL, timeout_ms);
}

pserver_status pserver_push_part_with(pserver_client *client, const char *name,
                                      const pserver_tensor *part, const pserver_indices *indices,
                                      size_t rank, double alpha, double beta,
                                      const pserver_update_options *options, int64_t timeout_ms) {
  struct given_part given = {name, part, indices, rank};
  return push_part_with("pserver_push_part_with", client, &given, alpha, beta, options, timeout_ms);
}
