/* The calls that read and change parts of parameters. */
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "connection.h"
#include "dtypes.h"
#include "gradients.h"
#include "part-push.h"
#include "puller.h"

static pserver_status read_plan(struct call *call, struct parameter *parameter,
                                const struct part_plan *plan, uint8_t *target, bool *is_replaced) {
  struct block_read *reads = calloc(plan->count + 1, sizeof *reads);
  if (reads == NULL) return fail(PSERVER_ERR_INTERNAL, "no memory for %zu blocks", plan->count);
  for (size_t i = 0; i < plan->count; i++) {
    reads[i] = (struct block_read){.parameter = parameter,
                                   .index = plan->blocks[i].index,
                                   .target = target,
                                   .part = &plan->blocks[i],
                                   .is_replaced = is_replaced};
  }
  pserver_status status = read_blocks(call, reads, plan->count);
  free(reads);
  return status;
}

static pserver_status pull_part(struct call *call, const char *name, const pserver_indices *indices,
                                size_t rank, pserver_tensor *part, bool *is_replaced) {
  struct parameter *found = NULL;
  struct part_plan plan = {0};
  bool was_allocated = false;
  *is_replaced = false;
  pserver_status status = find_parameters(call, &name, 1, true, &found);
  if (status == PSERVER_OK) status = plan_part(found, indices, rank, &plan);
  if (status == PSERVER_OK) {
    status = prepare_target(found, plan.shape, (int32_t)rank, plan.elements, part, &was_allocated);
  }
  if (status == PSERVER_OK) status = read_plan(call, found, &plan, part->data, is_replaced);
  if (status != PSERVER_OK && was_allocated) pserver_tensor_release(part);
  part_plan_release(&plan);
  give_back_parameters(call->client, &found, 1);
  return status;
}

pserver_status pserver_pull_part(pserver_client *handle, const char *name,
                                 const pserver_indices *indices, size_t rank, pserver_tensor *part,
                                 int64_t timeout_ms) {
  struct call call;
  pserver_status status = call_begin(&call, handle, "pserver_pull_part", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  bool is_replaced = part != NULL;
  if (part == NULL) status = fail(PSERVER_ERR_BAD_VALUE, "part: expected a tensor; received NULL");
  while (is_replaced) status = pull_part(&call, name, indices, rank, part, &is_replaced);
  return call_end(&call, status);
}

static pserver_status send_part(struct call *call, struct part_push *push) {
  struct sending sending = {.count = push->count};
  if (push->count == 0) return PSERVER_OK;
  sending.pieces = calloc(push->count, sizeof(struct piece));
  if (sending.pieces == NULL) return fail(PSERVER_ERR_INTERNAL, "no memory for the pieces");
  cut_part_push(push, sending.pieces);
  pserver_status status = send_pieces(call, &sending);
  free(sending.pieces);
  return status;
}

pserver_status pserver_push_part(pserver_client *handle, const char *name, const pserver_tensor *part,
                                 const pserver_indices *indices, size_t rank, double alpha,
                                 double beta, int64_t timeout_ms) {
  struct call call;
  struct part_push push = {0};
  struct update update = {.operation = UPDATE_MIX, .alpha = alpha, .beta = beta};
  pserver_status status = call_begin(&call, handle, "pserver_push_part", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = check_factors(alpha, beta);
  if (status == PSERVER_OK) status = check_tensor(name, part);
  if (status == PSERVER_OK) status = find_parameters(&call, &name, 1, false, &update.parameter);
  if (status == PSERVER_OK) status = check_changeable(update.parameter);
  if (status == PSERVER_OK) status = plan_part(update.parameter, indices, rank, &push.plan);
  if (status == PSERVER_OK) {
    status = fit_tensor(update.parameter, part, push.plan.shape, (int32_t)rank, push.plan.elements);
  }
  if (status == PSERVER_OK) {
    update.data = part->data;
    status = finish_update(&update, push.plan.elements);
  }
  if (status == PSERVER_OK) status = prepare_part_push(&update, data_bytes_max(call.client), &push);
  if (status == PSERVER_OK) status = send_part(&call, &push);
  part_push_release(&push);
  give_back_parameters(call.client, &update.parameter, 1);
  return call_end(&call, status);
}
