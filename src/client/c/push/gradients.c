#include "calls/calls.h"
#include "calls/client.h"
#include "errors/errors.h"
#include "formats/formats.h"
#include "parts/parts.h"
#include "push/push.h"
#include "wire/wire.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether elements are finite. */

/** Elements that are checked in parallel. */
#define LANES 32
/** Elements after which the result so far is checked. */
#define RUN_ELEMENTS 4096

/** Returns the least float32 without sign, as bits, that is infinite or NaN once encoded. */
static int32_t bound_of(pserver_encoding encoding) {
  if (encoding == PSERVER_BFLOAT16) return 0x7f7f8000; /* 2^128 - 2^119 */
  if (encoding == PSERVER_FLOAT16) return 0x477ff000;  /* 65520 */
  return 0x7f800000;
}

static int32_t size_f32(const uint8_t *data) {
  int32_t bits;
  memcpy(&bits, data, sizeof bits);
  return bits & 0x7fffffff;
}

static bool is_finite_f64(const uint8_t *data) {
  double value;
  memcpy(&value, data, sizeof value);
  return isfinite(value);
}

/**
 * Whether all elements are below the bound. Without signs, floats have the same order as their bits, and
 * NaNs are above infinity. So `bound - 1 - bits` is negative exactly if an element is not below the bound.
 */
static bool all_below(const uint8_t *data, uint64_t elements, int32_t bound) {
  int32_t words[LANES];
  int32_t left[LANES] = {0};
  uint64_t i = 0;
  for (; i + LANES <= elements; i += LANES) {
    memcpy(words, data + i * sizeof *words, sizeof words);
    for (int k = 0; k < LANES; k++) left[k] |= bound - 1 - (words[k] & 0x7fffffff);
  }
  int32_t any = 0;
  for (int k = 0; k < LANES; k++) any |= left[k];
  for (; i < elements; i++) any |= bound - 1 - size_f32(data + i * sizeof *words);
  return any >= 0;
}

static bool all_finite_f64(const uint8_t *data, uint64_t elements) {
  bool all = true;
  for (uint64_t i = 0; i < elements; i++) all &= is_finite_f64(data + i * sizeof(double));
  return all;
}

bool ps_stays_finite(pserver_dtype dtype, pserver_encoding encoding, const void *data,
                     uint64_t elements) {
  const uint8_t *bytes = data;
  if (dtype != PSERVER_FLOAT32 && dtype != PSERVER_FLOAT64) return true;
  size_t element_bytes = dtype == PSERVER_FLOAT32 ? sizeof(float) : sizeof(double);
  for (uint64_t start = 0; start < elements; start += RUN_ELEMENTS) {
    uint64_t n = elements - start < RUN_ELEMENTS ? elements - start : RUN_ELEMENTS;
    const uint8_t *run = bytes + start * element_bytes;
    bool all = dtype == PSERVER_FLOAT32 ? all_below(run, n, bound_of(encoding)) : all_finite_f64(run, n);
    if (!all) return false;
  }
  return true;
}

double ps_first_non_finite(pserver_dtype dtype, pserver_encoding encoding, const void *data,
                           uint64_t *index) {
  const uint8_t *bytes = data;
  if (dtype == PSERVER_FLOAT64) {
    double value;
    for (*index = 0; is_finite_f64(bytes); (*index)++) bytes += sizeof value;
    memcpy(&value, bytes, sizeof value);
    return value;
  }
  float value;
  for (*index = 0; size_f32(bytes) < bound_of(encoding); (*index)++) bytes += sizeof value;
  memcpy(&value, bytes, sizeof value);
  return (double)value;
}

/* Norms of gradients. */

/** Independent sums, so that additions do not wait for each other. */
#define SUMS 8
/** Elements that are encoded at one time. */
#define CHUNK_ELEMENTS 4096

static double sum_squares_f32(const uint8_t *data, uint64_t elements) {
  double sums[SUMS] = {0};
  float block[SUMS];
  uint64_t i = 0;
  for (; i + SUMS <= elements; i += SUMS) {
    memcpy(block, data + i * sizeof(float), sizeof block);
    for (int k = 0; k < SUMS; k++) sums[k] += (double)block[k] * (double)block[k];
  }
  for (; i < elements; i++) {
    memcpy(block, data + i * sizeof(float), sizeof(float));
    sums[0] += (double)block[0] * (double)block[0];
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

static double sum_squares_f64(const uint8_t *data, uint64_t elements, double factor) {
  double sums[SUMS] = {0};
  double block[SUMS];
  uint64_t i = 0;
  for (; i + SUMS <= elements; i += SUMS) {
    memcpy(block, data + i * sizeof(double), sizeof block);
    for (int k = 0; k < SUMS; k++) {
      double value = block[k] * factor;
      sums[k] += value * value;
    }
  }
  for (; i < elements; i++) {
    memcpy(block, data + i * sizeof(double), sizeof(double));
    sums[0] += block[0] * factor * (block[0] * factor);
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

static double norm_f64(const uint8_t *data, uint64_t elements) {
  double plain = sqrt(sum_squares_f64(data, elements, 1));
  if (isfinite(plain)) return plain;
  /* Squares of large values have overflowed: scale by the largest element. */
  double largest = 0;
  for (uint64_t i = 0; i < elements; i++) {
    double value;
    memcpy(&value, data + i * sizeof value, sizeof value);
    if (!isfinite(value)) return value * value;
    largest = fmax(largest, fabs(value));
  }
  return fmin(largest * sqrt(sum_squares_f64(data, elements, 1 / largest)), DBL_MAX);
}

static double norm_encoded(pserver_encoding encoding, const uint8_t *data, uint64_t elements) {
  uint8_t halves[CHUNK_ELEMENTS * 2];
  uint8_t floats[CHUNK_ELEMENTS * sizeof(float)];
  double sum = 0;
  for (uint64_t start = 0; start < elements; start += CHUNK_ELEMENTS) {
    size_t n = elements - start < CHUNK_ELEMENTS ? (size_t)(elements - start) : CHUNK_ELEMENTS;
    ps_encode_elements(encoding, data + start * sizeof(float), n, halves);
    ps_decode_elements(encoding, halves, n, floats);
    sum += sum_squares_f32(floats, n);
  }
  return sqrt(sum);
}

double ps_l2_norm(pserver_dtype dtype, pserver_encoding encoding, const void *data, uint64_t elements) {
  if (dtype == PSERVER_FLOAT64) return norm_f64(data, elements);
  if (dtype != PSERVER_FLOAT32) return 0;
  if (encoding != PSERVER_AS_IS) return norm_encoded(encoding, data, elements);
  return sqrt(sum_squares_f32(data, elements));
}

/* Sorts the rows of a gradient, and adds up repeated ones. */

#define ADD(type)                                      \
  do {                                                 \
    type sum;                                          \
    type value;                                        \
    memcpy(&sum, target + i * sizeof sum, sizeof sum); \
    memcpy(&value, from + i * sizeof sum, sizeof sum); \
    sum += value;                                      \
    memcpy(target + i * sizeof sum, &sum, sizeof sum); \
  } while (0)

/** Adds a row to another; integers as unsigned ones, so that signed ones wrap around. */
static void add_row(pserver_dtype dtype, uint8_t *target, const uint8_t *from, uint64_t elements) {
  for (uint64_t i = 0; i < elements; i++) {
    if (dtype == PSERVER_FLOAT32) ADD(float);
    else if (dtype == PSERVER_FLOAT64) ADD(double);
    else if (ps_dtype_bytes(dtype) == 4) ADD(uint32_t);
    else ADD(uint64_t);
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

static void add_up(const struct ps_parameter *parameter, const struct ps_numbered *places, size_t count,
                   const uint8_t *values, struct ps_row_sums *sums) {
  uint64_t width = ps_row_elements(parameter);
  size_t row_bytes = (size_t)width * ps_dtype_bytes(parameter->dtype);
  for (size_t i = 0; i < count; i++) {
    const uint8_t *from = values + places[i].place * row_bytes;
    if (i > 0 && places[i].number == places[i - 1].number) {
      add_row(parameter->dtype, sums->sums + (sums->count - 1) * row_bytes, from, width);
      continue;
    }
    /* Copy the first one: adding it to 0 would lose the sign of a negative zero. */
    memcpy(sums->sums + sums->count * row_bytes, from, row_bytes);
    sums->rows[sums->count++] = places[i].number;
  }
}

/**
 * Sorts rows, and adds up repeated ones, in the order given and in the element type; integers wrap around.
 * Copies values only if the rows are not ascending already. Release the sums with ps_row_sums_release(),
 * also after an error. BAD_INDEX.
 */
static pserver_status ps_sum_rows(const struct ps_parameter *parameter, const int64_t *rows, size_t count,
                                  const void *values, struct ps_row_sums *sums) {
  if (count == 0) return PSERVER_OK;
  bool is_ascending = true;
  struct ps_numbered *places = malloc(count * sizeof *places);
  sums->rows = malloc(count * sizeof *sums->rows);
  pserver_status status = places == NULL || sums->rows == NULL
                              ? ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu rows", count)
                              : normalize(parameter, rows, count, places, &is_ascending);
  if (status == PSERVER_OK && is_ascending) {
    for (size_t i = 0; i < count; i++) sums->rows[i] = places[i].number;
    sums->count = count;
    sums->values = values;
  } else if (status == PSERVER_OK) {
    bool is_sorted = ps_sort_numbered(places, count, parameter->shape[0] - 1);
    sums->sums = malloc(count * (size_t)ps_row_elements(parameter) * ps_dtype_bytes(parameter->dtype));
    bool has_memory = is_sorted && sums->sums != NULL;
    if (has_memory) add_up(parameter, places, count, values, sums);
    else status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu rows", count);
    sums->values = sums->sums;
  }
  free(places);
  return status;
}

void ps_row_sums_release(struct ps_row_sums *sums) {
  free(sums->rows);
  free(sums->sums);
}

/* Sends gradients of whole parameters and of rows. */

/** One gradient of a call. */
struct gradient {
  struct ps_parameter_update update;
  /** A gradient of rows: the distinct rows with their sums, cut into block updates. */
  bool has_rows;
  struct ps_row_sums sums;
  struct ps_part_push push;
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
  if (status == PSERVER_OK) status = ps_check_encoding(parameter, update->encoding);
  if (status != PSERVER_OK) return status;
  if (!ps_dtype_is_float(parameter->dtype) && parameter->has_optimizer) {
    ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": expected float elements or the optimizer none; it is %s",
            parameter->name, ps_dtype_name(parameter->dtype));
    ps_detail_text("parameter", parameter->name);
    ps_detail_json("expected", "[\"float32\",\"float64\"]");
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
  if (status == PSERVER_OK) {
    status = ps_sum_rows(parameter, given->rows, given->row_count, given->values.data, &gradient->sums);
  }
  if (status != PSERVER_OK) return status;
  update->data = gradient->sums.values;
  status = ps_finish_update(update, gradient->sums.count * width);
  if (status != PSERVER_OK || gradient->sums.count == 0) return status;
  return ps_prepare_row_push(update, gradient->sums.rows, gradient->sums.count, &gradient->push);
}

static pserver_status prepare(struct gradient *gradient, const pserver_gradient *given) {
  struct ps_parameter_update *update = &gradient->update;
  const struct ps_parameter *parameter = update->parameter;
  gradient->has_rows = given->rows != NULL;
  pserver_status status = check_gradient(update, gradient->has_rows);
  if (status != PSERVER_OK) return status;
  if (gradient->has_rows) return prepare_rows(gradient, given);
  status = ps_fit_tensor(parameter, &given->values, parameter->shape, parameter->rank,
                         parameter->layout.elements);
  if (status != PSERVER_OK) return status;
  update->data = given->values.data;
  return ps_finish_update(update, parameter->layout.elements);
}

static size_t blocks_of(const struct gradient *gradient) {
  return gradient->has_rows ? gradient->push.count : gradient->update.parameter->layout.blocks;
}

static pserver_status send_all(struct ps_call *call, struct gradient *gradients, size_t count,
                               const pserver_grad_options *options) {
  struct ps_call_updates updates = {.mode = {.is_done_when_stored = options->stored_is_enough}};
  for (size_t i = 0; i < count; i++) updates.count += blocks_of(&gradients[i]);
  updates.sources = calloc(updates.count + 1, sizeof(struct ps_update_source));
  if (updates.sources == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for the gradients");
  struct ps_update_source *sources = updates.sources;
  for (size_t i = 0; i < count; i++) {
    if (gradients[i].has_rows) ps_cut_part_push(&gradients[i].push, sources);
    else ps_cut_into_blocks(&gradients[i].update, sources);
    sources += blocks_of(&gradients[i]);
  }
  struct ps_steps *steps = &call->client->steps;
  pserver_status status = ps_forget_if_stale(
      call, &updates, ps_send_in_step(call, steps, &updates, options->end_step));
  if (status == PSERVER_OK && options->late_blocks != NULL) *options->late_blocks = updates.late;
  free(updates.sources);
  return status;
}

static pserver_status send_grads(struct ps_call *call, const pserver_gradient *grads, size_t count,
                                 const pserver_grad_options *options) {
  struct ps_parameter **found = calloc(count, sizeof *found);
  const char **names = calloc(count, sizeof *names);
  struct gradient *gradients = calloc(count, sizeof *gradients);
  struct ps_parameter_set set;
  pserver_status status = PSERVER_OK;
  bool has_set = ps_parameter_set_init(&set, count);
  if (!has_set || found == NULL || names == NULL || gradients == NULL) {
    status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu gradients", count);
  }
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) names[i] = grads[i].name;
  if (status == PSERVER_OK) status = ps_find_parameters(call, names, count, false, found);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    gradients[i].update = (struct ps_parameter_update){.operation = PS_UPDATE_GRADIENT,
                                                       .parameter = found[i],
                                                       .is_repeated = !ps_parameter_set_add(&set, found[i]),
                                                       .encoding = options->encoding,
                                                       .has_rate = options->has_learning_rate,
                                                       .rate = options->learning_rate,
                                                       .seen = found[i]->seen};
    status = prepare(&gradients[i], &grads[i]);
  }
  if (status == PSERVER_OK) status = send_all(call, gradients, count, options);
  for (size_t i = 0; i < count && gradients != NULL; i++) {
    ps_part_push_release(&gradients[i].push);
    ps_row_sums_release(&gradients[i].sums);
  }
  if (found != NULL) ps_parameters_unref(found, count);
  ps_parameter_set_release(&set);
  free(found);
  free(names);
  free(gradients);
  return status;
}

static pserver_status check_grad_options(const pserver_grad_options *options) {
  if (options->struct_size != sizeof *options) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "pserver_send_grads: struct_size: expected %zu; received %zu: fill the options with "
                   "pserver_grad_options_init",
                   sizeof *options, options->struct_size);
  }
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
  return ps_call_end(&call, ps_run_step_call(&call, &call.client->steps, kind));
}

pserver_status pserver_end_step(pserver_client *handle, int64_t timeout_ms) {
  return run_step_call("pserver_end_step", handle, timeout_ms, PS_STEP_CALL_END);
}

pserver_status pserver_exit_steps(pserver_client *handle, int64_t timeout_ms) {
  return run_step_call("pserver_exit_steps", handle, timeout_ms, PS_STEP_CALL_EXIT);
}
