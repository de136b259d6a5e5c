#include "../paddle.h"

#include <limits.h>
#include <paddle/v1/paddle_pserver_client.h>

/** Makes values with the known length of the parameter. False with an error if the length is not known, or
 * the type is another one, so that the content would have another length. */
static bool measure(struct ps_trainer *trainer, const char *name, int element_type, const void *content,
                    struct ps_values *values) {
  struct ps_length length;
  if (!ps_look_up_length(trainer, name, &length)) return false;
  if (element_type != (int)length.dtype) {
    ps_report(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected element type %d; received %d", name,
              (int)length.dtype, element_type);
    return false;
  }
  uint64_t bytes = length.elements * ps_element_bytes(element_type);
  *values = (struct ps_values){name, element_type, content, (int64_t)bytes};
  return true;
}

/* Revision 1: initialization. */

int paddle_begin_init_param(paddle_pserver_client *client) {
  PS_CALL_OF(ps_number_of(client), ps_begin(trainer, true));
}

int paddle_init_param(paddle_pserver_client *client, const char *name, int element_type,
                      const void *content) {
  /* An empty OptimizerConfig means SGD with a learning rate of 1.0. */
  static const pserver_config config = {.optimizer_config = "", .optimizer_config_bytes = 0};
  struct ps_values values;
  PS_CALL_OF(ps_number_of(client), measure(trainer, name, element_type, content, &values)
                                       ? ps_initialize(trainer, &values, &config, PS_REPETITION_FAILS)
                                       : -1);
}

int paddle_finish_init_param(paddle_pserver_client *client) {
  PS_CALL_OF(ps_number_of(client), ps_finish(trainer, PS_REPETITION_FAILS));
}

/* Revision 1: parameters and gradients, which come without lengths. */

static int declare(struct ps_trainer *trainer, const char *name, int element_type, long long elements) {
  long long element = (long long)ps_element_bytes(element_type);
  struct ps_length length = {(pserver_dtype)element_type, (uint64_t)elements};
  if (!ps_check_name(name)) return -1;
  if (element == 0) {
    return ps_report(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected an element type; received %d", name,
                     element_type);
  }
  if (elements <= 0 || elements > INT_MAX / element) {
    return ps_report(PSERVER_ERR_BAD_LENGTH, "\"%s\": expected 1 to %lld elements; received %lld", name,
                     INT_MAX / element, elements);
  }
  if (ps_lengths_note(&trainer->lengths, name, length)) return 0;
  return ps_report(PSERVER_ERR_INTERNAL, "no memory for \"%s\"", name);
}

int paddle_declare_param(paddle_pserver_client *client, const char *name, int element_type,
                         long long num_elements) {
  PS_CALL_OF(ps_number_of(client), declare(trainer, name, element_type, num_elements));
}

int paddle_send_grad(paddle_pserver_client *client, const char *name, int element_type,
                     const void *content) {
  struct ps_values values;
  PS_CALL_OF(ps_number_of(client), measure(trainer, name, element_type, content, &values)
                                       ? ps_send_gradients(trainer, &values, 1, NULL)
                                       : -1);
}

int paddle_set_param(paddle_pserver_client *client, const char *name, int element_type,
                     const void *content) {
  struct ps_values values;
  PS_CALL_OF(ps_number_of(client), measure(trainer, name, element_type, content, &values)
                                       ? ps_set_values(trainer, &values, 1)
                                       : -1);
}

static int get(struct ps_trainer *trainer, const char *name, void **dst, int *dst_bytes) {
  if (dst == NULL || dst_bytes == NULL) {
    return ps_report(PSERVER_ERR_BAD_VALUE, "expected dst and dstLen; received NULL");
  }
  struct ps_target target = {
      .name = name, .content = *dst, .capacity = *dst == NULL ? 0 : *dst_bytes, .may_exceed = true};
  if (ps_read_values(trainer, &target, 1) != 0) return -1;
  *dst = target.content;
  *dst_bytes = target.length;
  return 0;
}

int paddle_get_param(paddle_pserver_client *client, const char *name, void **dst, int *dstLen) {
  PS_CALL_OF(ps_number_of(client), get(trainer, name, dst, dstLen));
}

void paddle_release_param(void **dst) {
  if (dst == NULL) return;
  ps_free_content(*dst);
  *dst = NULL;
}

int paddle_save_model(paddle_pserver_client *client, const char *path) {
  PS_CALL_OF(ps_number_of(client), ps_save_model(trainer, path));
}
