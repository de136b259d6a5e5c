/* Gradients of whole parameters and of rows. */
#include "gradients.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "details.h"
#include "dtypes.h"
#include "msgpack-reader.h"
#include "part-push.h"
#include "row-sums.h"

/** One gradient of a call, as it will be sent. */
struct gradient {
  struct update update;
  /** Of rows: which, added up where they were repeated; and the pieces that they come in. */
  bool has_rows;
  struct row_sums sums;
  struct part_push push;
};

/** Adds the name of the parameter's optimizer to the details of an error. */
static pserver_status tell_optimizer(const struct parameter *parameter) {
  struct value config;
  struct value optimizer;
  struct value name;
  bool is_named = read_checked(parameter->config, parameter->config_bytes, &config) &&
                  map_find(&config, "optimizer", &optimizer) && map_find(&optimizer, "name", &name) &&
                  name.type == VALUE_TEXT;
  if (!is_named) return last_failure()->code;
  return detail_bytes("optimizer", name.content, name.content_bytes);
}

static pserver_status check_gradient(const struct update *update, bool has_rows) {
  const struct parameter *parameter = update->parameter;
  pserver_status status = check_changeable(parameter);
  if (status == PSERVER_OK) status = check_encoding(parameter, update->encoding);
  if (status != PSERVER_OK) return status;
  if (!dtype_is_float(parameter->dtype) && parameter->has_optimizer) {
    fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": expected float elements or the optimizer none; it is %s",
         parameter->name, dtype_name(parameter->dtype));
    detail_text("parameter", parameter->name);
    detail_json("expected", "[\"float32\",\"float64\"]");
    detail_text("received", dtype_name(parameter->dtype));
    return tell_optimizer(parameter);
  }
  if (has_rows && !parameter->is_sparse) {
    fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": rows: expected a parameter that is declared sparse",
         parameter->name);
    return detail_mismatch(parameter->name, "sparse: true", "sparse: false");
  }
  if (update->has_rate || parameter->has_rate || !parameter->has_optimizer) return PSERVER_OK;
  fail(PSERVER_ERR_NO_LEARNING_RATE,
       "\"%s\": expected a learning rate in its configuration or in the call; received neither",
       parameter->name);
  return detail_text("parameter", parameter->name);
}

static pserver_status prepare_rows(struct gradient *gradient, const pserver_gradient *given) {
  struct update *update = &gradient->update;
  const struct parameter *parameter = update->parameter;
  uint64_t shape[PSERVER_RANK_MAX];
  uint64_t width = row_elements(parameter);
  if (parameter->rank == 0) {
    const char *expected = "a parameter with rows";
    fail(PSERVER_ERR_BAD_INDEX, "\"%s\": rows: expected %s; received a scalar", parameter->name, expected);
    return detail_mismatch(parameter->name, expected, "a scalar");
  }
  memcpy(shape, parameter->shape, sizeof shape);
  shape[0] = given->row_count;
  pserver_status status =
      fit_tensor(parameter, &given->values, shape, parameter->rank, given->row_count * width);
  if (status == PSERVER_OK) {
    status = sum_rows(parameter, given->rows, given->row_count, given->values.data, &gradient->sums);
  }
  if (status != PSERVER_OK) return status;
  update->data = gradient->sums.values;
  status = finish_update(update, gradient->sums.count * width);
  if (status != PSERVER_OK || gradient->sums.count == 0) return status;
  return prepare_row_push(update, gradient->sums.rows, gradient->sums.count, &gradient->push);
}

static pserver_status prepare(struct gradient *gradient, const pserver_gradient *given) {
  struct update *update = &gradient->update;
  const struct parameter *parameter = update->parameter;
  gradient->has_rows = given->rows != NULL;
  pserver_status status = check_gradient(update, gradient->has_rows);
  if (status != PSERVER_OK) return status;
  if (gradient->has_rows) return prepare_rows(gradient, given);
  status = fit_tensor(parameter, &given->values, parameter->shape, parameter->rank,
                      parameter->layout.elements);
  if (status != PSERVER_OK) return status;
  update->data = given->values.data;
  return finish_update(update, parameter->layout.elements);
}

static size_t pieces_of(const struct gradient *gradient) {
  return gradient->has_rows ? gradient->push.count : gradient->update.parameter->layout.blocks;
}

/**
 * Sends gradients once more that a shard finds too early: it has fallen back to an older step without this
 * trainer's knowledge. What other shards have taken already they count as late.
 */
static pserver_status send_again(struct call *call, struct gradient *gradients, size_t count,
                                 struct sending *sending, struct step_place *place) {
  pserver_status status = steps_enter_anew(call, sending->pieces, sending->count, place);
  if (status != PSERVER_OK) return status;
  for (size_t i = 0; i < count; i++) gradients[i].update.step = place->step;
  for (size_t i = 0; i < sending->count; i++) sending->pieces[i].fate = FATE_NONE;
  *sending = (struct sending){.count = sending->count,
                              .pieces = sending->pieces,
                              .stored_is_enough = sending->stored_is_enough,
                              .counts_late = place->counts_late};
  return send_pieces(call, sending);
}

static pserver_status send_all(struct call *call, struct gradient *gradients, size_t count,
                               const pserver_grad_options *options) {
  struct sending sending = {.stored_is_enough = options->stored_is_enough};
  for (size_t i = 0; i < count; i++) sending.count += pieces_of(&gradients[i]);
  sending.pieces = calloc(sending.count + 1, sizeof(struct piece));
  if (sending.pieces == NULL) return fail(PSERVER_ERR_INTERNAL, "no memory for the pieces");
  struct piece *pieces = sending.pieces;
  for (size_t i = 0; i < count; i++) {
    if (gradients[i].has_rows) cut_part_push(&gradients[i].push, pieces);
    else cut_into_pieces(&gradients[i].update, pieces);
    pieces += pieces_of(&gradients[i]);
  }
  struct step_place place;
  pserver_status status =
      steps_join_in(call, sending.pieces, sending.count, options->end_step, &place);
  if (status == PSERVER_OK) {
    for (size_t i = 0; i < count; i++) gradients[i].update.step = place.step;
    sending.counts_late = place.counts_late;
    status = send_pieces(call, &sending);
    bool is_early = ps_reaction_to_rejection(status) == PS_REJECTION_RESEND_IN_STEP;
    if (is_early && place.is_in_steps) {
      status = send_again(call, gradients, count, &sending, &place);
    }
    if (status == PSERVER_OK && options->late_blocks != NULL) *options->late_blocks = sending.late;
    status = steps_sent(call, &place, options->end_step, status, sending.late);
  }
  free(sending.pieces);
  return status;
}

static pserver_status send_grads(struct call *call, const pserver_gradient *grads, size_t count,
                                 const pserver_grad_options *options) {
  struct parameter **found = calloc(count, sizeof *found);
  const char **names = calloc(count, sizeof *names);
  struct gradient *gradients = calloc(count, sizeof *gradients);
  pserver_status status = PSERVER_OK;
  if (found == NULL || names == NULL || gradients == NULL) {
    status = fail(PSERVER_ERR_INTERNAL, "no memory for %zu gradients", count);
  }
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) names[i] = grads[i].name;
  if (status == PSERVER_OK) status = find_parameters(call, names, count, false, found);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    gradients[i].update = (struct update){.operation = UPDATE_GRADIENT,
                                          .parameter = found[i],
                                          .encoding = options->encoding,
                                          .has_rate = options->has_learning_rate,
                                          .rate = options->learning_rate,
                                          .seen = found[i]->seen};
    status = prepare(&gradients[i], &grads[i]);
  }
  if (status == PSERVER_OK) status = send_all(call, gradients, count, options);
  for (size_t i = 0; i < count && gradients != NULL; i++) {
    part_push_release(&gradients[i].push);
    row_sums_release(&gradients[i].sums);
  }
  if (found != NULL) give_back_parameters(call->client, found, count);
  free(found);
  free(names);
  free(gradients);
  return status;
}

static pserver_status check_grad_options(const pserver_grad_options *options) {
  if (options->struct_size != sizeof *options) {
    return fail(PSERVER_ERR_BAD_VALUE,
                "pserver_send_grads: struct_size: expected %zu; received %zu: fill the options with "
                "pserver_grad_options_init",
                sizeof *options, options->struct_size);
  }
  if (!options->has_learning_rate || isfinite(options->learning_rate)) return PSERVER_OK;
  fail(PSERVER_ERR_BAD_VALUE, "learning_rate: expected a finite number; received %g",
       options->learning_rate);
  detail_text("expected", "a finite number");
  return detail_number("received", options->learning_rate);
}

pserver_status pserver_send_grads(pserver_client *handle, const pserver_gradient *grads, size_t count,
                                  const pserver_grad_options *given, int64_t timeout_ms) {
  struct call call;
  pserver_grad_options options;
  pserver_status status = call_begin(&call, handle, "pserver_send_grads", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  pserver_grad_options_init(&options);
  if (given != NULL) options = *given;
  status = check_grad_options(&options);
  if (status == PSERVER_OK && count == 0) {
    status = fail(PSERVER_ERR_EMPTY,
                  "pserver_send_grads: expected at least one gradient; received none");
  }
  if (status == PSERVER_OK && grads == NULL) {
    status = fail(PSERVER_ERR_BAD_VALUE, "pserver_send_grads: expected gradients; received NULL");
  }
  if (status == PSERVER_OK) status = send_grads(&call, grads, count, &options);
  return call_end(&call, status);
}
