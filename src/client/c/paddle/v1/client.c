#include "../paddle.h"

#include <limits.h>
#include <paddle/v1/paddle_pserver_client.h>

/** Makes values with the known length of the parameter. False with an error if the length is not known, or
 * the type is another one, so that the content would have another length. */
static bool measure(const char *function, struct ps_trainer *trainer, const char *name, int element_type,
                const void *content, struct ps_values *values) {
  struct ps_length length;
  if (!ps_look_up_length(function, trainer, name, &length)) return false;
  if (element_type != (int)length.dtype) {
    ps_refuse(function, PSERVER_ERR_BAD_DTYPE, "\"%s\": expected element type %d; received %d", name,
              (int)length.dtype, element_type);
    return false;
  }
  uint64_t bytes = length.elements * ps_element_bytes(element_type);
  *values = (struct ps_values){name, element_type, content, (int64_t)bytes};
  return true;
}

/* Revision 1: initialization. */

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
  int result = measure(__func__, trainer, name, element_type, content, &values)
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

/* Revision 1: parameters and gradients, which come without lengths. */

int paddle_declare_param(paddle_pserver_client *client, const char *name, int element_type,
                         long long num_elements) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  int result = -1;
  uint64_t element = ps_element_bytes(element_type);
  if (!ps_check_name(__func__, name)) {
    /* ps_check_name() has set the error. */
  } else if (element == 0) {
    ps_refuse(__func__, PSERVER_ERR_BAD_DTYPE, "\"%s\": expected an element type; received %d", name,
              element_type);
  } else if (num_elements <= 0 || num_elements > INT_MAX / (long long)element) {
    ps_refuse(__func__, PSERVER_ERR_BAD_LENGTH, "\"%s\": expected 1 to %lld elements; received %lld", name,
              INT_MAX / (long long)element, num_elements);
  } else if (!ps_lengths_note(&trainer->lengths, name,
                              (struct ps_length){(pserver_dtype)element_type, (uint64_t)num_elements})) {
    ps_refuse(__func__, PSERVER_ERR_INTERNAL, "no memory for \"%s\"", name);
  } else {
    result = 0;
  }
  ps_trainer_leave(trainer);
  return result;
}

int paddle_send_grad(paddle_pserver_client *client, const char *name, int element_type,
                     const void *content) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  struct ps_values values;
  int result = measure(__func__, trainer, name, element_type, content, &values)
                   ? ps_send_gradients(__func__, trainer, &values, 1, NULL)
                   : -1;
  ps_trainer_leave(trainer);
  return result;
}

int paddle_set_param(paddle_pserver_client *client, const char *name, int element_type,
                     const void *content) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  struct ps_values values;
  int result = measure(__func__, trainer, name, element_type, content, &values)
                   ? ps_set_values(__func__, trainer, &values, 1)
                   : -1;
  ps_trainer_leave(trainer);
  return result;
}

int paddle_get_param(paddle_pserver_client *client, const char *name, void **dst, int *dstLen) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  int result = -1;
  if (dst == NULL || dstLen == NULL) {
    ps_refuse(__func__, PSERVER_ERR_BAD_VALUE, "expected dst and dstLen; received NULL");
  } else {
    struct ps_target target = {
        .name = name, .content = *dst, .capacity = *dst == NULL ? 0 : *dstLen, .may_exceed = true};
    result = ps_read_values(__func__, trainer, &target, 1);
    if (result == 0) {
      *dst = target.content;
      *dstLen = target.length;
    }
  }
  ps_trainer_leave(trainer);
  return result;
}

void paddle_release_param(void **dst) {
  if (dst == NULL) return;
  ps_free_content(*dst);
  *dst = NULL;
}

int paddle_save_model(paddle_pserver_client *client, const char *path) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  int result = ps_save_model(__func__, trainer, path);
  ps_trainer_leave(trainer);
  return result;
}
