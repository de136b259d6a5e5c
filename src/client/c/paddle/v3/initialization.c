/* Revision 3: initialization, with a configuration for each parameter. */
#include "../initialize.h"

#include <paddle/v3/paddle_pserver_client.h>

#include "../failures.h"

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
    pserver_config config = {
        .optimizer_config = param_config_proto == NULL ? (const void *)"" : param_config_proto,
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
