/* Revision 3: parameters and gradients. */
#include <paddle/v3/paddle_pserver_client.h>
#include <stdlib.h>

#include "../failures.h"
#include "../read.h"
#include "../update.h"

static struct ps_values values_of(const paddle_gradient *grad) {
  return (struct ps_values){grad->name, (int)grad->element_type, grad->content, grad->content_len};
}

/** Sends the gradients in `grads` or, if it is not NULL, those that `pointers` point to. */
static int send_all(const char *function, struct ps_trainer *trainer, const paddle_gradient *grads,
                    paddle_gradient *const *pointers, int len) {
  struct ps_values *values = calloc((size_t)len, sizeof *values);
  if (values == NULL) {
    return ps_refuse(function, PSERVER_ERR_INTERNAL, "no memory for %d gradients", len);
  }
  int result = 0;
  for (int i = 0; i < len && result == 0; i++) {
    const paddle_gradient *grad = pointers == NULL ? &grads[i] : pointers[i];
    if (grad != NULL) values[i] = values_of(grad);
    else
      result = ps_refuse(function, PSERVER_ERR_BAD_VALUE, "gradient %d: expected one; received NULL", i);
  }
  if (result == 0) result = ps_send_gradients(function, trainer, values, len, NULL);
  free(values);
  return result;
}

int paddle_send_grads(paddle_pserver_client client, const paddle_gradient *grads, int len) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, (uint32_t)client);
  if (trainer == NULL) return -1;
  int result = ps_check_list(__func__, grads, len) ? send_all(__func__, trainer, grads, NULL, len) : -1;
  ps_trainer_leave(trainer);
  return result;
}

int paddle_send_grads_v(paddle_pserver_client client, paddle_gradient **grads, int len) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, (uint32_t)client);
  if (trainer == NULL) return -1;
  int result = ps_check_list(__func__, grads, len) ? send_all(__func__, trainer, NULL, grads, len) : -1;
  ps_trainer_leave(trainer);
  return result;
}

/** Fills in where to read the parameters to; false with an error. */
static bool aim_at(const char *function, paddle_parameter **dst, struct ps_target *targets, int len) {
  for (int i = 0; i < len; i++) {
    if (dst[i] == NULL) {
      ps_refuse(function, PSERVER_ERR_BAD_VALUE, "parameter %d: expected one; received NULL", i);
      return false;
    }
    targets[i] =
        (struct ps_target){.name = dst[i]->name, .content = dst[i]->content, .capacity = dst[i]->content_len};
  }
  return true;
}

static int read_into(const char *function, struct ps_trainer *trainer, paddle_parameter **dst, int len) {
  struct ps_target *targets = calloc((size_t)len, sizeof *targets);
  if (targets == NULL) {
    return ps_refuse(function, PSERVER_ERR_INTERNAL, "no memory for %d parameters", len);
  }
  int result =
      aim_at(function, dst, targets, len) ? ps_read_values(function, trainer, targets, len) : -1;
  for (int i = 0; i < len && result == 0; i++) {
    dst[i]->element_type = (paddle_element_type)targets[i].element_type;
    dst[i]->content = targets[i].content;
    dst[i]->content_len = targets[i].length;
  }
  free(targets);
  return result;
}

int paddle_get_params(paddle_pserver_client client, paddle_parameter **dst, int len) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, (uint32_t)client);
  if (trainer == NULL) return -1;
  int result = ps_check_list(__func__, dst, len) ? read_into(__func__, trainer, dst, len) : -1;
  ps_trainer_leave(trainer);
  return result;
}

void paddle_release_param_content(paddle_parameter *param) {
  if (param == NULL) return;
  ps_free_content(param->content);
  param->content = NULL;
  param->content_len = 0;
}

int paddle_save_model(paddle_pserver_client client, const char *path) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, (uint32_t)client);
  if (trainer == NULL) return -1;
  int result = ps_save_model(__func__, trainer, path);
  ps_trainer_leave(trainer);
  return result;
}
