#include "push/push.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls that send gradients, and end steps. */

/* Sorts the rows of a gradient, and adds up repeated ones. */

/** The rows of a gradient, each once, ascending. */
struct ps_row_sums {
  uint64_t *rows;
  size_t count;
  /** The elements of the rows: the caller's own, or `sums`. */
  const uint8_t *values;
  uint8_t *sums;
};

#define ADD(type)                                      \
  do {                                                 \
    type sum;                                          \
    type value;                                        \
    memcpy(&sum, target + i * sizeof sum, sizeof sum); \
    memcpy(&value, from + i * sizeof sum, sizeof sum); \
    sum += value;                                      \
    memcpy(target + i * sizeof sum, &sum, sizeof sum); \
  } while (0)

/** Adds a row to another, not of half floats; integers as unsigned ones, so that signed ones wrap around. */
static void add_row(pserver_dtype dtype, uint8_t *target, const uint8_t *from, uint64_t elements) {
  for (uint64_t i = 0; i < elements; i++) {
    if (dtype == PSERVER_FLOAT32) ADD(float);
    else if (dtype == PSERVER_FLOAT64) ADD(double);
    else if (ps_dtype_bytes(dtype) == 4) ADD(uint32_t);
    else if (ps_dtype_bytes(dtype) == 8) ADD(uint64_t);
    else target[i] = (uint8_t)(target[i] + from[i]);
  }
}

static pserver_status normalize(const struct ps_parameter *parameter, const int64_t *rows, size_t count,
                                struct ps_numbered *places, bool *is_ascending) {
  int64_t size = (int64_t)parameter->shape[0];
  *is_ascending = true;
  for (size_t i = 0; i < count; i++) {
    if (rows[i] < -size || rows[i] >= size) {
      char expected[80];
      snprintf(expected, sizeof expected, "whole numbers from %" PRId64 " to %" PRId64, -size, size - 1);
      ps_fail(PSERVER_ERR_BAD_INDEX, "\"%s\": rows: expected %s; received %" PRId64, parameter->name,
              expected, rows[i]);
      ps_detail_text("parameter", parameter->name);
      ps_detail_whole("dimension", 0);
      ps_detail_text("expected", expected);
      return ps_detail_number("received", (double)rows[i]);
    }
    places[i] = (struct ps_numbered){(uint64_t)(rows[i] < 0 ? rows[i] + size : rows[i]), i};
    if (i > 0 && places[i].number <= places[i - 1].number) *is_ascending = false;
  }
  return PSERVER_OK;
}

/** Adds up sorted rows of `width` elements that are no half floats. */
static void add_up(pserver_dtype dtype, uint64_t width, const struct ps_numbered *places, size_t count,
                   const uint8_t *values, struct ps_row_sums *sums) {
  size_t row_bytes = (size_t)width * ps_dtype_bytes(dtype);
  for (size_t i = 0; i < count; i++) {
    const uint8_t *from = values + places[i].place * row_bytes;
    if (i > 0 && places[i].number == places[i - 1].number) {
      add_row(dtype, sums->sums + (sums->count - 1) * row_bytes, from, width);
      continue;
    }
    /* Copy the first one: adding it to 0 would lose the sign of a negative zero. */
    memcpy(sums->sums + sums->count * row_bytes, from, row_bytes);
    sums->rows[sums->count++] = places[i].number;
  }
}

/** Adds up sorted rows of half floats as float32, and rounds each sum once. False if there is no memory. */
static bool add_up_halves(pserver_dtype dtype, uint64_t width, const struct ps_numbered *places,
                          size_t count, const uint8_t *values, struct ps_row_sums *sums) {
  size_t elements = count * (size_t)width;
  pserver_encoding form = ps_half_form(dtype);
  uint8_t *floats = malloc(elements * sizeof(float));
  struct ps_row_sums wide = {.rows = sums->rows, .sums = malloc(elements * sizeof(float))};
  bool has_memory = floats != NULL && wide.sums != NULL;
  if (has_memory) {
    ps_decode_halves(form, values, elements, floats);
    add_up(PSERVER_FLOAT32, width, places, count, floats, &wide);
    ps_encode_halves(form, wide.sums, wide.count * (size_t)width, sums->sums);
    sums->count = wide.count;
  }
  free(floats);
  free(wide.sums);
  return has_memory;
}

/**
 * Sorts rows, and adds up repeated ones, in the order given and in the element type; integers wrap around.
 * Copies values only if the rows are not ascending already. Release the sums with release_sums(),
 * also after an error. BAD_INDEX.
 */
static pserver_status sum_rows(const struct ps_parameter *parameter, const int64_t *rows, size_t count,
                               const void *values, struct ps_row_sums *sums) {
  if (count == 0) return PSERVER_OK;
  bool is_ascending = true;
  struct ps_numbered *places = malloc(count * sizeof *places);
  sums->rows = malloc(count * sizeof *sums->rows);
  pserver_status status = places == NULL || sums->rows == NULL
                              ? ps_no_memory("%zu rows", count)
                              : normalize(parameter, rows, count, places, &is_ascending);
  if (status == PSERVER_OK && is_ascending) {
    for (size_t i = 0; i < count; i++) sums->rows[i] = places[i].number;
    sums->count = count;
    sums->values = values;
  } else if (status == PSERVER_OK) {
    pserver_dtype dtype = parameter->dtype;
    uint64_t width = ps_row_elements(parameter);
    sums->sums = malloc(count * (size_t)width * ps_dtype_bytes(dtype));
    bool has_memory = ps_sort_numbered(places, count, parameter->shape[0] - 1) && sums->sums != NULL;
    if (has_memory && ps_half_form(dtype) != PSERVER_AS_IS) {
      has_memory = add_up_halves(dtype, width, places, count, values, sums);
    } else if (has_memory) {
      add_up(dtype, width, places, count, values, sums);
    }
    if (!has_memory) status = ps_no_memory("%zu rows", count);
    sums->values = sums->sums;
  }
  free(places);
  return status;
}

static void release_sums(struct ps_row_sums *sums) {
  free(sums->rows);
  free(sums->sums);
}

/* Sends gradients of whole parameters and of rows. */

/** The distinct rows of a gradient with their sums, cut into block updates. */
struct row_gradient {
  struct ps_row_sums sums;
  struct ps_part_push push;
};

/** One gradient of a call; `rows` NULL: of a whole parameter. */
struct gradient {
  struct ps_parameter_update update;
  struct row_gradient *rows;
  /** Used if it is encoded in groups. */
  struct ps_grouped_gradient grouped;
};

/** Adds the name of the parameter's optimizer to the details of an error. */
static pserver_status tell_optimizer(const struct ps_parameter *parameter) {
  struct ps_value config;
  struct ps_value optimizer;
  struct ps_value name;
  bool is_named = ps_read_checked(parameter->config, parameter->config_bytes, &config) &&
                  ps_map_find(&config, "optimizer", &optimizer) &&
                  ps_map_find(&optimizer, "name", &name) && name.type == PS_VALUE_TEXT;
  if (!is_named) return ps_last_error()->code;
  return ps_detail_bytes("optimizer", name.content, name.content_bytes);
}

static pserver_status check_gradient(const struct ps_parameter_update *update, bool has_rows) {
  const struct ps_parameter *parameter = update->parameter;
  pserver_status status = ps_check_changeable(parameter);
  if (status == PSERVER_OK) status = ps_check_computable(parameter);
  if (status == PSERVER_OK) status = ps_check_encoding(parameter, update->encoding);
  if (status != PSERVER_OK) return status;
  if (!ps_dtype_is_float(parameter->dtype) && parameter->has_optimizer) {
    ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": expected float elements or the optimizer none; it is %s",
            parameter->name, ps_dtype_name(parameter->dtype));
    ps_detail_text("parameter", parameter->name);
    ps_detail_json("expected", "[\"float32\",\"float64\",\"float16\",\"bfloat16\"]");
    ps_detail_text("received", ps_dtype_name(parameter->dtype));
    return tell_optimizer(parameter);
  }
  if (has_rows && !parameter->is_sparse) {
    ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": rows: expected a parameter that is declared sparse",
            parameter->name);
    return ps_detail_mismatch(parameter->name, "sparse: true", "sparse: false");
  }
  if (update->has_rate || parameter->has_rate || !parameter->has_optimizer) return PSERVER_OK;
  ps_fail(PSERVER_ERR_NO_LEARNING_RATE,
          "\"%s\": expected a learning rate in its configuration or in the call; received neither",
          parameter->name);
  return ps_detail_text("parameter", parameter->name);
}

static pserver_status prepare_rows(struct gradient *gradient, const pserver_gradient *given) {
  struct ps_parameter_update *update = &gradient->update;
  const struct ps_parameter *parameter = update->parameter;
  uint64_t shape[PSERVER_RANK_MAX];
  uint64_t width = ps_row_elements(parameter);
  if (parameter->rank == 0) {
    const char *expected = "a parameter with rows";
    ps_fail(PSERVER_ERR_BAD_INDEX, "\"%s\": rows: expected %s; received a scalar", parameter->name,
            expected);
    return ps_detail_mismatch(parameter->name, expected, "a scalar");
  }
  memcpy(shape, parameter->shape, sizeof shape);
  shape[0] = given->row_count;
  pserver_status status =
      ps_fit_tensor(parameter, &given->values, shape, parameter->rank, given->row_count * width);
  struct ps_row_sums *sums = &gradient->rows->sums;
  if (status == PSERVER_OK) {
    status = sum_rows(parameter, given->rows, given->row_count, given->values.data, sums);
  }
  if (status != PSERVER_OK) return status;
  update->data = sums->values;
  status = ps_finish_update(update, sums->count * width);
  if (status != PSERVER_OK || sums->count == 0) return status;
  return ps_prepare_row_push(update, sums->rows, sums->count, &gradient->rows->push);
}

static pserver_status prepare(struct gradient *gradient, const pserver_gradient *given) {
  struct ps_parameter_update *update = &gradient->update;
  const struct ps_parameter *parameter = update->parameter;
  pserver_status status = check_gradient(update, gradient->rows != NULL);
  if (status != PSERVER_OK) return status;
  if (gradient->rows != NULL) return prepare_rows(gradient, given);
  status = ps_fit_tensor(parameter, &given->values, parameter->shape, parameter->rank,
                         parameter->layout.elements);
  if (status != PSERVER_OK) return status;
  update->data = given->values.data;
  return ps_finish_update(update, parameter->layout.elements);
}

static size_t blocks_of(const struct gradient *gradient) {
  return gradient->rows != NULL ? gradient->rows->push.count : gradient->update.parameter->layout.blocks;
}

/** Makes the sources' encoded elements, which the caller frees; false if there is no memory. */
static bool prepare_all_groups(struct gradient *gradients, size_t count, const struct ps_sending *updates,
                               bool feeds_back, uint8_t **encoded) {
  size_t bytes = 0;
  for (size_t i = 0; i < updates->count; i++) bytes += ps_source_bytes(&updates->sources[i]);
  *encoded = malloc(bytes + 1);
  if (*encoded == NULL) return false;
  uint8_t *next = *encoded;
  struct ps_block_source *sources = updates->sources;
  for (size_t i = 0; i < count; i++) {
    struct gradient *gradient = &gradients[i];
    size_t blocks = blocks_of(gradient);
    gradient->grouped = (struct ps_grouped_gradient){
        .update = &gradient->update, .sources = sources, .count = blocks, .feeds_back = feeds_back};
    ps_group_gradient(&gradient->grouped, &next);
    sources += blocks;
  }
  return true;
}

static pserver_status send_all(struct ps_call *call, struct gradient *gradients, size_t count,
                               const pserver_grad_options *options) {
  struct ps_sending updates = {.mode = {.is_done_when_stored = options->stored_is_enough}};
  uint8_t *encoded = NULL;
  for (size_t i = 0; i < count; i++) updates.count += blocks_of(&gradients[i]);
  updates.sources = malloc((updates.count + 1) * sizeof(struct ps_block_source));
  if (updates.sources == NULL) return ps_no_memory("the gradients");
  struct ps_block_source *sources = updates.sources;
  for (size_t i = 0; i < count; i++) {
    if (gradients[i].rows != NULL) ps_cut_part_push(&gradients[i].rows->push, sources);
    else ps_cut_into_blocks(&gradients[i].update, sources);
    sources += blocks_of(&gradients[i]);
  }
  bool is_ready = !ps_is_grouped(options->encoding) ||
                  prepare_all_groups(gradients, count, &updates, !options->no_error_feedback, &encoded);
  struct ps_steps *steps = &call->client->steps;
  pserver_status status =
      is_ready ? ps_forget_if_stale(call, &updates, ps_send_in_step(call, steps, &updates, options->end_step))
               : ps_no_memory("the encoded gradients");
  if (status == PSERVER_OK && options->late_blocks != NULL) *options->late_blocks = updates.late;
  free(encoded);
  free(updates.sources);
  return status;
}

static pserver_status send_grads(struct ps_call *call, const pserver_gradient *grads, size_t count,
                                 const pserver_grad_options *options) {
  size_t row_count = 0;
  for (size_t i = 0; i < count; i++) row_count += grads[i].rows != NULL;
  struct ps_parameter **found = calloc(count, sizeof *found);
  const char **names = calloc(count, sizeof *names);
  struct gradient *gradients = malloc(count * sizeof *gradients);
  struct row_gradient *rows = calloc(row_count + 1, sizeof *rows);
  struct row_gradient *next_rows = rows;
  struct ps_parameter_set set;
  pserver_status status = PSERVER_OK;
  bool has_set = ps_parameter_set_init(&set, count);
  if (!has_set || found == NULL || names == NULL || gradients == NULL || rows == NULL) {
    status = ps_no_memory("%zu gradients", count);
  }
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) names[i] = grads[i].name;
  if (status == PSERVER_OK) status = ps_find_parameters(call, names, count, false, found);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    gradients[i].update =
        (struct ps_parameter_update){.operation = PS_UPDATE_GRADIENT,
                                     .parameter = found[i],
                                     .is_repeated = !ps_parameter_set_add(&set, found[i]),
                                     .encoding = options->encoding,
                                     .has_rate = options->has_learning_rate,
                                     .rate = options->learning_rate,
                                     .seen = found[i]->seen};
    gradients[i].rows = grads[i].rows == NULL ? NULL : next_rows++;
    status = prepare(&gradients[i], &grads[i]);
  }
  if (status == PSERVER_OK) status = send_all(call, gradients, count, options);
  for (size_t i = 0; i < row_count && rows != NULL; i++) {
    ps_part_push_release(&rows[i].push);
    release_sums(&rows[i].sums);
  }
  if (found != NULL) ps_parameters_unref(found, count);
  ps_parameter_set_release(&set);
  free(found);
  free(names);
  free(gradients);
  free(rows);
  return status;
}

void pserver_grad_options_init(pserver_grad_options *options) {
  if (options == NULL) return;
  *options = (pserver_grad_options){.struct_size = sizeof *options, .end_step = true};
}

static pserver_status check_grad_options(const pserver_grad_options *options) {
  pserver_status status = ps_check_struct_size("pserver_send_grads", sizeof *options, options->struct_size,
                                               "pserver_grad_options_init");
  if (status != PSERVER_OK) return status;
  if (!options->has_learning_rate || isfinite(options->learning_rate)) return PSERVER_OK;
  ps_fail(PSERVER_ERR_BAD_VALUE, "learning_rate: expected a finite number; received %g",
          options->learning_rate);
  ps_detail_text("expected", "a finite number");
  return ps_detail_number("received", options->learning_rate);
}

pserver_status pserver_send_grads(pserver_client *handle, const pserver_gradient *grads, size_t count,
                                  const pserver_grad_options *given, int64_t timeout_ms) {
  struct ps_call call;
  pserver_grad_options options;
  pserver_status status = ps_call_begin(&call, handle, "pserver_send_grads", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  pserver_grad_options_init(&options);
  if (given != NULL) options = *given;
  status = check_grad_options(&options);
  if (status == PSERVER_OK && count == 0) {
    status =
        ps_fail(PSERVER_ERR_EMPTY, "pserver_send_grads: expected at least one gradient; received none");
  }
  if (status == PSERVER_OK && grads == NULL) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_send_grads: expected gradients; received NULL");
  }
  if (status == PSERVER_OK) status = send_grads(&call, grads, count, &options);
  return ps_call_end(&call, status);
}

static pserver_status run_step_call(const char *what, pserver_client *handle, int64_t timeout_ms,
                                    enum ps_step_call_kind kind) {
  struct ps_call call;
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  bool leaves_rounds = kind == PS_STEP_CALL_EXIT && ps_has_rounds(&call);
  status = leaves_rounds ? ps_exit_rounds(&call) : ps_run_step_call(&call, &call.client->steps, kind);
  return ps_call_end(&call, status);
}

pserver_status pserver_end_step(pserver_client *handle, int64_t timeout_ms) {
  return run_step_call("pserver_end_step", handle, timeout_ms, PS_STEP_CALL_END);
}

pserver_status pserver_exit_steps(pserver_client *handle, int64_t timeout_ms) {
  return run_step_call("pserver_exit_steps", handle, timeout_ms, PS_STEP_CALL_EXIT);
}
