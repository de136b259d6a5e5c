#include "../paddle.h"
#include "etcd.h"

#include <paddle/v3/paddle_pserver_client.h>
#include <stdlib.h>

/* Revision 3: making and releasing clients, which are numbers. */

static paddle_pserver_client client_of(uint32_t number) {
  return number == PS_NO_TRAINER ? -1 : (paddle_pserver_client)number;
}

paddle_pserver_client paddle_new_pserver_client(char *pserver_addrs, int selected) {
  struct ps_place place = {.url = pserver_addrs == NULL || *pserver_addrs == '\0' ? NULL : pserver_addrs};
  return client_of(ps_trainer_open(__func__, place, selected != 0));
}

paddle_pserver_client paddle_new_etcd_pserver_client(char *etcd_addr) {
  struct ps_discovery found;
  if (!ps_discover(__func__, etcd_addr, &found)) return -1;
  struct ps_place place = {.url = found.url, .job = found.job};
  return client_of(ps_trainer_open(__func__, place, true));
}

void paddle_pserver_client_release(paddle_pserver_client c) { ps_trainer_close(__func__, (uint32_t)c); }

const char *paddle_pserver_last_error(void) { return ps_last_refusal(); }

/* Revision 3: initialization, with a configuration for each parameter. */

int paddle_begin_init_params(paddle_pserver_client client) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, (uint32_t)client);
  if (trainer == NULL) return -1;
  int result = trainer->is_selectable ? ps_begin(__func__, trainer, false) : 0;
  ps_trainer_leave(trainer);
  return result;
}

int paddle_init_param(paddle_pserver_client client, paddle_parameter param,
                      const unsigned char *param_config_proto, int config_len) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, (uint32_t)client);
  if (trainer == NULL) return -1;
  int result;
  if (config_len < 0 || (param_config_proto == NULL && config_len > 0)) {
    result = ps_refuse(__func__, PSERVER_ERR_BAD_VALUE,
                       "expected a configuration and its length; received %s and %d",
                       param_config_proto == NULL ? "NULL" : "bytes", config_len);
  } else {
    /* NULL stands for an empty message. */
    pserver_config config = {.optimizer_config =
                                 param_config_proto == NULL ? (const void *)"" : param_config_proto,
                             .optimizer_config_bytes = (size_t)config_len};
    struct ps_values values = {param.name, (int)param.element_type, param.content, param.content_len};
    result = ps_initialize(__func__, trainer, &values, &config, PS_REPETITION_SUCCEEDS);
  }
  ps_trainer_leave(trainer);
  return result;
}

int paddle_finish_init_params(paddle_pserver_client client) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, (uint32_t)client);
  if (trainer == NULL) return -1;
  int result = ps_finish(__func__, trainer, PS_REPETITION_SUCCEEDS);
  ps_trainer_leave(trainer);
  return result;
}

/* Revision 3: parameters and gradients. */

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
    targets[i] = (struct ps_target){
        .name = dst[i]->name, .content = dst[i]->content, .capacity = dst[i]->content_len};
  }
  return true;
}

static int read_into(const char *function, struct ps_trainer *trainer, paddle_parameter **dst, int len) {
  struct ps_target *targets = calloc((size_t)len, sizeof *targets);
  if (targets == NULL) {
    return ps_refuse(function, PSERVER_ERR_INTERNAL, "no memory for %d parameters", len);
  }
  int result = aim_at(function, dst, targets, len) ? ps_read_values(function, trainer, targets, len) : -1;
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
