/* Revision 2: parameters and gradients. */
#include <paddle/v2/paddle_pserver_client.h>
#include <stdlib.h>

#include "../failures.h"
#include "../pointer-client.h"
#include "../read.h"
#include "../update.h"

/** Copies a list of parameters as values, to be freed. NULL with an error. */
static struct ps_values *values_of(const char *function, const paddle_parameter *params, int total) {
  if (!ps_check_list(function, params, total)) return NULL;
  struct ps_values *values = calloc((size_t)total, sizeof *values);
  if (values == NULL) {
    ps_refuse(function, PSERVER_ERR_INTERNAL, "no memory for %d parameters", total);
    return NULL;
  }
  for (int i = 0; i < total; i++) {
    values[i] = (struct ps_values){params[i].name, params[i].element_type, params[i].content,
                                   params[i].content_len};
  }
  return values;
}

int paddle_send_grads(paddle_pserver_client *client, const paddle_gradient *grads, int total,
                      double learning_rate) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  struct ps_values *values = values_of(__func__, grads, total);
  int result = values == NULL ? -1 : ps_send_gradients(__func__, trainer, values, total, &learning_rate);
  free(values);
  ps_trainer_leave(trainer);
  return result;
}

int paddle_set_params(paddle_pserver_client *client, const paddle_parameter *params, int total) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  struct ps_values *values = values_of(__func__, params, total);
  int result = values == NULL ? -1 : ps_set_values(__func__, trainer, values, total);
  free(values);
  ps_trainer_leave(trainer);
  return result;
}

static int read_into(const char *function, struct ps_trainer *trainer, const char **names,
                     paddle_parameter *dst, int total) {
  struct ps_target *targets = calloc((size_t)total, sizeof *targets);
  if (targets == NULL) {
    return ps_refuse(function, PSERVER_ERR_INTERNAL, "no memory for %d parameters", total);
  }
  for (int i = 0; i < total; i++) {
    targets[i].name = names[i];
    targets[i].content = dst[i].content;
    targets[i].capacity = dst[i].content_len;
  }
  int result = ps_read_values(function, trainer, targets, total);
  for (int i = 0; i < total && result == 0; i++) {
    if (dst[i].name == NULL) dst[i].name = (char *)names[i];
    dst[i].element_type = targets[i].element_type;
    dst[i].content = targets[i].content;
    dst[i].content_len = targets[i].length;
  }
  free(targets);
  return result;
}

int paddle_get_params(paddle_pserver_client *client, const char **names, paddle_parameter *dst,
                      int total) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  int result = ps_check_list(__func__, names, total) && ps_check_list(__func__, dst, total)
                   ? read_into(__func__, trainer, names, dst, total)
                   : -1;
  ps_trainer_leave(trainer);
  return result;
}

void paddle_release_params(paddle_parameter *params, int total) {
  for (int i = 0; params != NULL && i < total; i++) {
    ps_free_content(params[i].content);
    params[i].content = NULL;
    params[i].content_len = 0;
  }
}

int paddle_save_model(paddle_pserver_client *client, const char *path) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  int result = ps_save_model(__func__, trainer, path);
  ps_trainer_leave(trainer);
  return result;
}
