#include "calls/calls.h"
#include "calls/client.h"
#include "errors/errors.h"
#include "push/push.h"
#include "wire/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sets of parameters, in a hash table that is at most half full. */

bool ps_parameter_set_init(struct ps_parameter_set *set, size_t count) {
  size_t slots = 2;
  while (slots < 2 * count) slots *= 2;
  *set = (struct ps_parameter_set){.slots = calloc(slots, sizeof(struct ps_parameter *)),
                                   .slot_count = slots};
  return set->slots != NULL;
}

bool ps_parameter_set_add(struct ps_parameter_set *set, const struct ps_parameter *parameter) {
  size_t last = set->slot_count - 1;
  size_t at = ps_name_hash(parameter->name, parameter->name_bytes) & last;
  for (; set->slots[at] != NULL; at = (at + 1) & last) {
    if (ps_has_name(set->slots[at], parameter->name, parameter->name_bytes)) return false;
  }
  set->slots[at] = parameter;
  return true;
}

void ps_parameter_set_release(struct ps_parameter_set *set) { free(set->slots); }

/* Sends block updates of a call and waits for their fates. */

struct send_task {
  struct ps_task task;
  struct ps_sending sending;
  struct ps_update_sender *sender;
};

static void sending_over(struct ps_sending *sending, pserver_status status) {
  struct send_task *send = sending->context;
  ps_task_finish(&send->task, status);
}

static void begin_task(struct ps_task *task) {
  struct send_task *send = (struct send_task *)task;
  ps_sending_begin(send->sender, &send->sending);
}

static void end_task(struct ps_task *task, pserver_status why) {
  (void)why;
  struct send_task *send = (struct send_task *)task;
  ps_sending_end(&send->sending);
}

/** Sends block updates and waits. */
static pserver_status send_sources(struct ps_call *call, struct ps_call_updates *updates) {
  struct send_task send = {.task = {.begin = begin_task, .end = end_task},
                           .sending = {.updates = updates, .over = sending_over},
                           .sender = &call->client->sender};
  send.sending.context = &send;
  return ps_task_run(call, &send.task);
}

pserver_status ps_send_call(struct ps_call *call, struct ps_call_updates *updates) {
  if (updates->count == 0) return PSERVER_OK;
  return ps_forget_if_stale(call, updates, send_sources(call, updates));
}

pserver_status ps_forget_if_stale(struct ps_call *call, const struct ps_call_updates *updates,
                                  pserver_status status) {
  if (ps_reaction_to(status) != PS_REACTION_LOOK_UP) return status;
  /* The parameter was initialized anew since it was looked up: the next call must look it up again. */
  struct ps_error error = *ps_last_error();
  for (size_t i = 0; i < updates->count; i++) {
    struct ps_parameter *parameter = updates->sources[i].update->parameter;
    ps_forget_parameters(&call->client->parameters, &parameter, 1);
  }
  return ps_fail_with(&error);
}

pserver_status ps_send_updates(struct ps_call *call, struct ps_parameter_update *updates, size_t count,
                               struct ps_call_mode mode, bool goes_alone) {
  size_t total = 0;
  for (size_t i = 0; i < count; i++) total += updates[i].parameter->layout.blocks;
  struct ps_call_updates sent = {.count = total, .mode = mode, .goes_alone = goes_alone};
  sent.sources = calloc(total, sizeof(struct ps_update_source));
  if (sent.sources == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu blocks", total);
  struct ps_update_source *sources = sent.sources;
  for (size_t i = 0; i < count; i++) {
    ps_cut_into_blocks(&updates[i], sources);
    sources += updates[i].parameter->layout.blocks;
  }
  pserver_status status = ps_send_call(call, &sent);
  free(sent.sources);
  return status;
}

/* Cuts updates of parts into block updates, as large as messages can be. */

static bool append(struct ps_part_push *push, const struct ps_part_slice *slice, uint32_t block) {
  if (push->count == push->capacity) {
    size_t capacity = push->capacity == 0 ? 16 : push->capacity * 2;
    struct ps_part_slice *slices = realloc(push->slices, capacity * sizeof *slices);
    if (slices != NULL) push->slices = slices;
    uint32_t *blocks = realloc(push->blocks, capacity * sizeof *blocks);
    if (blocks != NULL) push->blocks = blocks;
    if (slices == NULL || blocks == NULL) return false;
    push->capacity = capacity;
  }
  push->slices[push->count] = *slice;
  push->blocks[push->count++] = block;
  return true;
}

/** Makes a slice of whole rows list the offsets of all elements, so that it can be cut between them. */
static bool number_columns(struct ps_part_push *push, struct ps_part_slice *slice) {
  size_t width = (size_t)slice->width;
  if (push->columns == NULL) {
    push->columns = malloc(width * sizeof *push->columns);
    push->column_from = malloc(width * sizeof *push->column_from);
    if (push->columns == NULL || push->column_from == NULL) return false;
    for (size_t i = 0; i < width; i++) {
      push->columns[i] = (uint32_t)i;
      push->column_from[i] = i;
    }
  }
  slice->inner = push->columns;
  slice->inner_count = width;
  if (slice->inner_from == NULL) slice->inner_from = push->column_from;
  return true;
}

/** Cuts the elements of one block, which are not all of it, into rectangles of rows and offsets. */
static bool cut_block(struct ps_part_push *push, const struct ps_part_block *block,
                      const struct ps_part_slice *all, size_t element, size_t bytes_max) {
  size_t width = (size_t)all->width;
  /* A row may take half of a message at most, so that there is enough left for its index. */
  size_t width_max = bytes_max / 2 / (element + PS_INDEX_NUMBER_BYTES);
  if (width > width_max) width = width_max == 0 ? 1 : width_max;
  struct ps_part_slice columns_of = *all;
  if (width < all->width && all->inner == NULL && !number_columns(push, &columns_of)) return false;
  all = &columns_of;
  size_t inner_bytes = all->inner == NULL ? 0 : width * PS_INDEX_NUMBER_BYTES;
  size_t row_bytes = width * element + PS_INDEX_NUMBER_BYTES;
  size_t taken_bytes = inner_bytes + PS_INDEX_NUMBER_BYTES;
  size_t height = bytes_max < taken_bytes + row_bytes ? 1 : (bytes_max - taken_bytes) / row_bytes;
  for (size_t row = 0; row < all->row_count; row += height) {
    size_t rows = all->row_count - row < height ? all->row_count - row : height;
    for (size_t column = 0; column < all->width; column += width) {
      size_t left = (size_t)all->width - column;
      size_t columns = left < width ? left : width;
      struct ps_part_slice slice = {.rows = all->rows + row,
                                    .row_count = rows,
                                    .inner = all->inner == NULL ? NULL : all->inner + column,
                                    .inner_count = all->inner == NULL ? 0 : columns,
                                    .row_from = all->row_from + row,
                                    .inner_from = all->inner_from == NULL ? NULL : all->inner_from + column,
                                    .width = columns};
      if (!append(push, &slice, block->index)) return false;
    }
  }
  return true;
}

/** Makes the slices of a block: one, unless index and elements are more than `bytes_max` bytes. */
static bool slice_block(struct ps_part_push *push, const struct ps_part_block *block,
                        const uint64_t *row_from, const uint64_t *inner_from, size_t bytes_max) {
  size_t element = ps_encoded_bytes(push->update->parameter->dtype, push->update->encoding);
  struct ps_part_slice all = {.rows = block->row_numbers,
                              .row_count = block->row_count,
                              .inner = block->inner_numbers,
                              .inner_count = block->inner_count,
                              .row_from = row_from,
                              .inner_from = inner_from,
                              .width = block->message_row_elements,
                              .is_whole_block = block->is_whole_block};
  size_t index_bytes = ps_slice_index_bytes(&all, PS_INDEX_NUMBER_BYTES);
  size_t bytes = index_bytes + (size_t)ps_part_elements(block) * element;
  if (all.is_whole_block || bytes <= bytes_max) return append(push, &all, block->index);
  return cut_block(push, block, &all, element, bytes_max);
}

/** Sets, for each index in the message, the last matching index in the tensor, times `stride`. */
static void last_places(const struct ps_matching *matching, uint64_t stride, uint64_t *from) {
  for (size_t i = 0; i < matching->count; i++) {
    /* Equal numbers are in the order of the list, so the last one is kept. */
    from[matching->message[i]] = matching->tensor[i] * stride;
  }
}

pserver_status ps_prepare_part_push(const struct ps_parameter_update *update, size_t bytes_max,
                                    struct ps_part_push *push) {
  const struct ps_part_plan *plan = &push->plan;
  size_t rows = 0;
  size_t inner = 0;
  push->update = update;
  for (size_t i = 0; i < plan->count; i++) {
    rows += plan->blocks[i].row_count;
    inner += plan->blocks[i].inner == NULL ? 0 : plan->blocks[i].inner->count;
  }
  push->row_from = malloc((rows + 1) * sizeof(uint64_t));
  push->inner_from = malloc((inner + 1) * sizeof(uint64_t));
  uint64_t *row_from = push->row_from;
  uint64_t *inner_from = push->inner_from;
  bool has_memory = row_from != NULL && inner_from != NULL;
  for (size_t i = 0; i < plan->count && has_memory; i++) {
    const struct ps_part_block *block = &plan->blocks[i];
    last_places(&block->rows, block->tensor_row_elements, row_from);
    if (block->inner != NULL) last_places(block->inner, 1, inner_from);
    has_memory = slice_block(push, block, row_from, block->inner == NULL ? NULL : inner_from, bytes_max);
    row_from += block->row_count;
    inner_from += block->inner == NULL ? 0 : block->inner->count;
  }
  return has_memory ? PSERVER_OK : ps_fail(PSERVER_ERR_INTERNAL, "no memory for a part");
}

pserver_status ps_prepare_row_push(const struct ps_parameter_update *update, const uint64_t *rows,
                                   size_t count, struct ps_part_push *push) {
  pserver_status status = ps_plan_rows(update->parameter, rows, count, &push->plan);
  /* Blocks of a sparse parameter are small enough that a message can also have the numbers of all their
   * rows. */
  return status == PSERVER_OK ? ps_prepare_part_push(update, SIZE_MAX, push) : status;
}

void ps_cut_part_push(const struct ps_part_push *push, struct ps_update_source *sources) {
  if (push->count == 0) return;
  const struct ps_parameter *parameter = push->update->parameter;
  const struct ps_layout *layout = &parameter->layout;
  size_t element = ps_encoded_bytes(parameter->dtype, push->update->encoding);
  for (size_t i = 0; i < push->count; i++) {
    const struct ps_part_slice *slice = &push->slices[i];
    uint64_t elements = slice->row_count * slice->width;
    size_t packed = ps_packed_number_bytes(parameter, push->blocks[i], slice->inner != NULL);
    sources[i] = (struct ps_update_source){
        .update = push->update,
        .index = push->blocks[i],
        .shard = (unsigned)((layout->first_shard + push->blocks[i]) % layout->shards),
        .slice = slice,
        .elements = elements,
        .data_bytes = ps_slice_index_bytes(slice, PS_INDEX_NUMBER_BYTES) + elements * element,
        .entry_bytes = ps_slice_index_bytes(slice, packed) + elements * element,
    };
  }
}

void ps_part_push_release(struct ps_part_push *push) {
  ps_part_plan_release(&push->plan);
  free(push->slices);
  free(push->blocks);
  free(push->row_from);
  free(push->inner_from);
  free(push->columns);
  free(push->column_from);
}

void ps_write_part(const struct ps_part_slice *slice, const struct ps_parameter_update *update,
                   size_t number_bytes, uint8_t *target) {
  size_t from_bytes = ps_dtype_bytes(update->parameter->dtype);
  size_t to_bytes = ps_encoded_bytes(update->parameter->dtype, update->encoding);
  if (!slice->is_whole_block) target += ps_write_part_index(slice, number_bytes, target);
  for (size_t i = 0; i < slice->row_count; i++) {
    const uint8_t *row = update->data + slice->row_from[i] * from_bytes;
    if (slice->inner_from == NULL) {
      ps_write_elements(update, row, slice->width, target);
      target += slice->width * to_bytes;
      continue;
    }
    for (uint64_t j = 0; j < slice->width; j++, target += to_bytes) {
      ps_write_elements(update, row + slice->inner_from[j] * from_bytes, 1, target);
    }
  }
}

/* Calls that change whole parameters, and the checks that all updates share. Checks come before anything is
 * sent. */

void pserver_grad_options_init(pserver_grad_options *options) {
  if (options == NULL) return;
  *options = (pserver_grad_options){.struct_size = sizeof *options, .end_step = true};
}

pserver_status ps_bad_encoding(const char *what, pserver_encoding encoding) {
  ps_fail(PSERVER_ERR_BAD_VALUE, "%s: encoding: expected bfloat16 or float16, or none; received %d",
          what, (int)encoding);
  ps_detail_json("expected", "[\"bfloat16\",\"float16\"]");
  return ps_detail_signed("received", (int)encoding);
}

pserver_status ps_check_encoding(const struct ps_parameter *parameter, pserver_encoding encoding) {
  if (encoding == PSERVER_AS_IS) return PSERVER_OK;
  if (ps_encoding_name(encoding) == NULL) {
    return ps_bad_encoding(parameter->name, encoding);
  }
  if (parameter->dtype == PSERVER_FLOAT32) return PSERVER_OK;
  ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": encoding: %s is for float32 elements; it is %s",
          parameter->name, ps_encoding_name(encoding), ps_dtype_name(parameter->dtype));
  return ps_detail_mismatch(parameter->name, "float32", ps_dtype_name(parameter->dtype));
}

pserver_status ps_check_changeable(const struct ps_parameter *parameter) {
  if (!parameter->is_static) return PSERVER_OK;
  ps_fail(PSERVER_ERR_STATIC, "\"%s\" is static: it takes no update", parameter->name);
  return ps_detail_text("parameter", parameter->name);
}

pserver_status ps_finish_update(struct ps_parameter_update *update, uint64_t elements) {
  const struct ps_parameter *parameter = update->parameter;
  pserver_status status = ps_check_finite(parameter, update->encoding, update->data, elements);
  update->has_norm = update->operation == PS_UPDATE_GRADIENT && parameter->clips_norm;
  if (status != PSERVER_OK || !update->has_norm) return status;
  update->norm = ps_l2_norm(parameter->dtype, update->encoding, update->data, elements);
  return PSERVER_OK;
}

/** Prepares an update of a whole parameter. */
static pserver_status whole_update(struct ps_parameter_update *update, const pserver_tensor *tensor) {
  const struct ps_parameter *parameter = update->parameter;
  pserver_status status = ps_check_changeable(parameter);
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
  struct ps_parameter_update *updates = calloc(count, sizeof *updates);
  struct ps_parameter_set set;
  bool has_memory = ps_parameter_set_init(&set, count) && found != NULL && updates != NULL;
  pserver_status status = has_memory
                              ? ps_find_parameters(call, names, count, false, found)
                              : ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu updates", count);
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

pserver_status ps_check_update_options(const struct ps_call *call, const pserver_update_options *options) {
  if (options == NULL) return PSERVER_OK;
  if (options->struct_size == sizeof *options) {
    bool is_known = options->encoding == PSERVER_AS_IS || ps_encoding_name(options->encoding) != NULL;
    return is_known ? PSERVER_OK : ps_bad_encoding(call->what, options->encoding);
  }
  ps_fail(
      PSERVER_ERR_BAD_VALUE,
      "%s: struct_size: expected %zu; received %zu: fill the options with pserver_update_options_init",
      call->what, sizeof *options, options->struct_size);
  return ps_detail_numbers(sizeof *options, options->struct_size);
}

static pserver_status set_with(const char *what, pserver_client *handle, const char *const *names,
                               const pserver_tensor *values, size_t count,
                               const pserver_update_options *options, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_parameter_update kind = {.operation = PS_UPDATE_SET};
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = ps_check_update_options(&call, options);
  if (status != PSERVER_OK) return ps_call_end(&call, status);
  if (count == 0) {
    status = ps_fail(PSERVER_ERR_EMPTY, "%s: expected at least one tensor; received none", what);
  } else if (names == NULL || values == NULL) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected names and values; received NULL", what);
  } else if (options != NULL && options->encoding != PSERVER_AS_IS) {
    status =
        ps_fail(PSERVER_ERR_UNSUPPORTED, "%s: encoding: values that are set cannot be encoded", what);
  } else {
    status =
        send_whole(&call, names, values, count, &kind, options != NULL && options->stored_is_enough);
  }
  return ps_call_end(&call, status);
}

pserver_status pserver_set(pserver_client *client, const char *const *names,
                           const pserver_tensor *values, size_t count, int64_t timeout_ms) {
  return set_with("pserver_set", client, names, values, count, NULL, timeout_ms);
}

pserver_status pserver_set_with(pserver_client *client, const char *const *names,
                                const pserver_tensor *values, size_t count,
                                const pserver_update_options *options, int64_t timeout_ms) {
  return set_with("pserver_set_with", client, names, values, count, options, timeout_ms);
}

pserver_status ps_check_factors(double alpha, double beta) {
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
  status = ps_check_update_options(&call, options);
  if (status == PSERVER_OK) status = ps_check_factors(alpha, beta);
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
