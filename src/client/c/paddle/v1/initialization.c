/* Revision 1: initialization. */
#include "../initialize.h"

#include <paddle/v1/paddle_pserver_client.h>

#include "../failures.h"
#include "../pointer-client.h"
#include "values.h"

int paddle_begin_init_param(paddle_pserver_client *client) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  int result = ps_begin(__func__, trainer, true);
  ps_trainer_leave(trainer);
  return result;
}

int paddle_init_param(paddle_pserver_client *client, const char *name, int element_type,
                      const void *content) {
  /* An empty OptimizerConfig means SGD with a learning rate of 1.0. */
  static const pserver_config config = {.optimizer_config = "", .optimizer_config_bytes = 0};
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  struct ps_values values;
  int result = ps_measure(__func__, trainer, name, element_type, content, &values)
                   ? ps_initialize(__func__, trainer, &values, &config, PS_REPETITION_FAILS)
                   : -1;
  ps_trainer_leave(trainer);
  return result;
}

int paddle_finish_init_param(paddle_pserver_client *client) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  int result = ps_finish(__func__, trainer, PS_REPETITION_FAILS);
  ps_trainer_leave(trainer);
  return result;
}
