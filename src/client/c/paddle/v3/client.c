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
  ps_name_function(__func__);
  return client_of(ps_trainer_open(place, selected != 0));
}

paddle_pserver_client paddle_new_etcd_pserver_client(char *etcd_addr) {
  struct ps_discovery found;
  ps_name_function(__func__);
  if (!ps_discover(etcd_addr, &found)) return -1;
  struct ps_place place = {.url = found.url, .job = found.job};
  return client_of(ps_trainer_open(place, true));
}

void paddle_pserver_client_release(paddle_pserver_client c) {
  ps_name_function(__func__);
  ps_trainer_close((uint32_t)c);
}

const char *paddle_pserver_last_error(void) { return ps_last_report(); }

/* Revision 3: initialization, with a configuration for each parameter. */

int paddle_begin_init_params(paddle_pserver_client client) {
  PS_CALL_OF((uint32_t)client, trainer->is_selectable ? ps_begin(trainer, false) : 0);
}

static int initialize(struct ps_trainer *trainer, const paddle_parameter *given, const void *config_proto,
                      int config_bytes) {
  if (config_bytes < 0 || (config_proto == NULL && config_bytes > 0)) {
    return ps_report(PSERVER_ERR_BAD_VALUE, "expected a configuration and its length; received %s and %d",
                     config_proto == NULL ? "NULL" : "bytes", config_bytes);
  }
  /* NULL stands for an empty message. */
  pserver_config config = {.optimizer_config = config_proto == NULL ? "" : config_proto,
                           .optimizer_config_bytes = (size_t)config_bytes};
  struct ps_values values = {given->name, (int)given->element_type, given->content, given->content_len};
  return ps_initialize(trainer, &values, &config, PS_REPETITION_SUCCEEDS);
}

int paddle_init_param(paddle_pserver_client client, paddle_parameter param,
                      const unsigned char *param_config_proto, int config_len) {
  PS_CALL_OF((uint32_t)client, initialize(trainer, &param, param_config_proto, config_len));
}

int paddle_finish_init_params(paddle_pserver_client client) {
  PS_CALL_OF((uint32_t)client, ps_finish(trainer, PS_REPETITION_SUCCEEDS));
}

/* Revision 3: parameters and gradients. */

static struct ps_values values_of(const paddle_gradient *grad) {
  return (struct ps_values){grad->name, (int)grad->element_type, grad->content, grad->content_len};
}

/** Sends the gradients in `grads` or, if it is not NULL, those that `pointers` point to. */
static int send_all(struct ps_trainer *trainer, const paddle_gradient *grads,
                    paddle_gradient *const *pointers, int len) {
  struct ps_values *values = calloc((size_t)len, sizeof *values);
  if (values == NULL) {
    return ps_report(PSERVER_ERR_INTERNAL, "no memory for %d gradients", len);
  }
  int result = 0;
  for (int i = 0; i < len && result == 0; i++) {
    const paddle_gradient *grad = pointers == NULL ? &grads[i] : pointers[i];
    if (grad != NULL) values[i] = values_of(grad);
    else result = ps_report(PSERVER_ERR_BAD_VALUE, "gradient %d: expected one; received NULL", i);
  }
  if (result == 0) result = ps_send_gradients(trainer, values, len, NULL);
  free(values);
  return result;
}

int paddle_send_grads(paddle_pserver_client client, const paddle_gradient *grads, int len) {
  PS_CALL_OF((uint32_t)client, ps_check_list(grads, len) ? send_all(trainer, grads, NULL, len) : -1);
}

int paddle_send_grads_v(paddle_pserver_client client, paddle_gradient **grads, int len) {
  PS_CALL_OF((uint32_t)client, ps_check_list(grads, len) ? send_all(trainer, NULL, grads, len) : -1);
}

/** Fills in where to read the parameters to; false with an error. */
static bool aim_at(paddle_parameter **dst, struct ps_target *targets, int len) {
  for (int i = 0; i < len; i++) {
    if (dst[i] == NULL) {
      ps_report(PSERVER_ERR_BAD_VALUE, "parameter %d: expected one; received NULL", i);
      return false;
    }
    targets[i] = (struct ps_target){
        .name = dst[i]->name, .content = dst[i]->content, .capacity = dst[i]->content_len};
  }
  return true;
}

static int read_into(struct ps_trainer *trainer, paddle_parameter **dst, int len) {
  struct ps_target *targets = calloc((size_t)len, sizeof *targets);
  if (targets == NULL) {
    return ps_report(PSERVER_ERR_INTERNAL, "no memory for %d parameters", len);
  }
  int result = aim_at(dst, targets, len) ? ps_read_values(trainer, targets, len) : -1;
  for (int i = 0; i < len && result == 0; i++) {
    dst[i]->element_type = (paddle_element_type)targets[i].element_type;
    dst[i]->content = targets[i].content;
    dst[i]->content_len = targets[i].length;
  }
  free(targets);
  return result;
}

int paddle_get_params(paddle_pserver_client client, paddle_parameter **dst, int len) {
  PS_CALL_OF((uint32_t)client, ps_check_list(dst, len) ? read_into(trainer, dst, len) : -1);
}

void paddle_release_param_content(paddle_parameter *param) {
  if (param == NULL) return;
  ps_free_content(param->content);
  param->content = NULL;
  param->content_len = 0;
}

int paddle_save_model(paddle_pserver_client client, const char *path) {
  PS_CALL_OF((uint32_t)client, ps_save_model(trainer, path));
}
