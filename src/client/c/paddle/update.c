/* Sends gradients and values, and saves the model. */
#include "update.h"

#include <stdlib.h>

#include "failures.h"

/** The timeout of saving, as in libpserver. */
#define SAVE_MS 600000

static int no_memory(const char *function, int total) {
  return ps_refuse(function, PSERVER_ERR_INTERNAL, "no memory for %d parameters", total);
}

/** Makes a tensor of values that fits a parameter of any shape. */
static bool flat_tensor_of(const char *function, const struct ps_values *values, pserver_tensor *tensor) {
  if (!ps_tensor_of(function, values, tensor)) return false;
  tensor->rank = PSERVER_RANK_OF_PARAMETER;
  return true;
}

int ps_send_gradients(const char *function, struct ps_trainer *trainer, const struct ps_values *values,
                      int total, const double *learning_rate) {
  pserver_gradient *grads = calloc((size_t)total, sizeof *grads);
  if (grads == NULL) return no_memory(function, total);
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = learning_rate != NULL;
  if (learning_rate != NULL) options.learning_rate = *learning_rate;
  int result = 0;
  for (int i = 0; i < total && result == 0; i++) {
    grads[i].name = values[i].name;
    if (!flat_tensor_of(function, &values[i], &grads[i].values)) result = -1;
  }
  if (result == 0 && pserver_send_grads(trainer->core, grads, (size_t)total, &options,
                                        ps_calling_ms(trainer)) != PSERVER_OK) {
    result = ps_refuse_as_core(function);
  }
  free(grads);
  return result;
}

int ps_set_values(const char *function, struct ps_trainer *trainer, const struct ps_values *values,
                  int total) {
  pserver_tensor *tensors = calloc((size_t)total, sizeof *tensors);
  const char **names = calloc((size_t)total, sizeof *names);
  int result = tensors == NULL || names == NULL ? no_memory(function, total) : 0;
  for (int i = 0; i < total && result == 0; i++) {
    names[i] = values[i].name;
    if (!flat_tensor_of(function, &values[i], &tensors[i])) result = -1;
  }
  if (result == 0 &&
      pserver_set(trainer->core, names, tensors, (size_t)total, ps_calling_ms(trainer)) != PSERVER_OK) {
    result = ps_refuse_as_core(function);
  }
  free(tensors);
  free(names);
  return result;
}

int ps_save_model(const char *function, struct ps_trainer *trainer, const char *path) {
  if (path == NULL) return ps_refuse(function, PSERVER_ERR_BAD_PATH, "expected a path; received NULL");
  int64_t timeout_ms = trainer->timeout_ms == 0 ? SAVE_MS : trainer->timeout_ms;
  if (pserver_save(trainer->core, path, timeout_ms) == PSERVER_OK) return 0;
  return ps_refuse_as_core(function);
}
