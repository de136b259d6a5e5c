#include "../paddle.h"

#include <paddle/v2/paddle_pserver_client.h>
#include <stdlib.h>
#include <string.h>

/* Revision 2: initialization, with one configuration for all parameters. */

/** Whether a configuration is text and not a message of Protocol Buffers, which contains control
 * characters: its keys or lengths. */
static bool is_text(const char *config) {
  for (const char *c = config; *c != '\0'; c++) {
    unsigned char byte = (unsigned char)*c;
    bool is_blank = byte == '\t' || byte == '\n' || byte == '\r';
    if ((byte < 0x20 && !is_blank) || byte == 0x7f) return false;
  }
  return true;
}

/** Keeps a copy of the configuration for paddle_init_param(). */
static bool keep_config(struct ps_trainer *trainer, const void *config, size_t bytes,
                        bool is_config_text) {
  char *copy = NULL;
  if (config != NULL) {
    copy = malloc(bytes + 1);
    if (copy == NULL) {
      ps_report(PSERVER_ERR_INTERNAL, "no memory for the configuration");
      return false;
    }
    memcpy(copy, config, bytes);
    copy[bytes] = '\0';
  }
  pthread_mutex_lock(&trainer->config_lock);
  free(trainer->config);
  trainer->config = copy;
  trainer->config_bytes = bytes;
  trainer->is_config_text = is_config_text;
  pthread_mutex_unlock(&trainer->config_lock);
  return true;
}

static int begin_with(struct ps_trainer *trainer, const void *config, int bytes, bool is_config_text) {
  if (bytes < 0 || (config == NULL && bytes > 0)) {
    return ps_report(PSERVER_ERR_BAD_VALUE, "expected a configuration and its length; received %s and %d",
                     config == NULL ? "NULL" : "bytes", bytes);
  }
  return keep_config(trainer, config, (size_t)bytes, is_config_text) ? ps_begin(trainer, true) : -1;
}

int paddle_begin_init_params(paddle_pserver_client *client, const char *config_proto) {
  bool is_given = config_proto != NULL && *config_proto != '\0';
  PS_CALL_OF(ps_number_of(client),
             begin_with(trainer, is_given ? config_proto : NULL, is_given ? (int)strlen(config_proto) : 0,
                        is_given && is_text(config_proto)));
}

int paddle_begin_init_params_with_config(paddle_pserver_client *client, const void *config_proto,
                                         int config_len) {
  PS_CALL_OF(ps_number_of(client), begin_with(trainer, config_proto, config_len, false));
}

static int initialize(struct ps_trainer *trainer, const paddle_parameter *given) {
  struct ps_values values = {given->name, given->element_type, given->content, given->content_len};
  /* Held during the call, because another thread may replace the configuration. */
  pthread_mutex_lock(&trainer->config_lock);
  pserver_config config = {0};
  if (trainer->is_config_text) {
    config.text = trainer->config;
  } else {
    config.optimizer_config = trainer->config;
    config.optimizer_config_bytes = trainer->config_bytes;
  }
  int result =
      ps_initialize(trainer, &values, trainer->config == NULL ? NULL : &config, PS_REPETITION_FAILS);
  pthread_mutex_unlock(&trainer->config_lock);
  return result;
}

int paddle_init_param(paddle_pserver_client *client, paddle_parameter params) {
  PS_CALL_OF(ps_number_of(client), initialize(trainer, &params));
}

int paddle_finish_init_params(paddle_pserver_client *client) {
  PS_CALL_OF(ps_number_of(client), ps_finish(trainer, PS_REPETITION_FAILS));
}

/* Revision 2: parameters and gradients. */

/** Copies a list of parameters as values, to be freed. NULL with an error. */
static struct ps_values *values_of(const paddle_parameter *params, int total) {
  if (!ps_check_list(params, total)) return NULL;
  struct ps_values *values = calloc((size_t)total, sizeof *values);
  if (values == NULL) {
    ps_report(PSERVER_ERR_INTERNAL, "no memory for %d parameters", total);
    return NULL;
  }
  for (int i = 0; i < total; i++) {
    values[i] = (struct ps_values){params[i].name, params[i].element_type, params[i].content,
                                   params[i].content_len};
  }
  return values;
}

static int send(struct ps_trainer *trainer, const paddle_gradient *grads, int total, const double *rate) {
  struct ps_values *values = values_of(grads, total);
  int result = values == NULL ? -1 : ps_send_gradients(trainer, values, total, rate);
  free(values);
  return result;
}

int paddle_send_grads(paddle_pserver_client *client, const paddle_gradient *grads, int total,
                      double learning_rate) {
  PS_CALL_OF(ps_number_of(client), send(trainer, grads, total, &learning_rate));
}

static int set(struct ps_trainer *trainer, const paddle_parameter *params, int total) {
  struct ps_values *values = values_of(params, total);
  int result = values == NULL ? -1 : ps_set_values(trainer, values, total);
  free(values);
  return result;
}

int paddle_set_params(paddle_pserver_client *client, const paddle_parameter *params, int total) {
  PS_CALL_OF(ps_number_of(client), set(trainer, params, total));
}

static int read_into(struct ps_trainer *trainer, const char **names, paddle_parameter *dst, int total) {
  if (!ps_check_list(names, total) || !ps_check_list(dst, total)) return -1;
  struct ps_target *targets = calloc((size_t)total, sizeof *targets);
  if (targets == NULL) {
    return ps_report(PSERVER_ERR_INTERNAL, "no memory for %d parameters", total);
  }
  for (int i = 0; i < total; i++) {
    targets[i].name = names[i];
    targets[i].content = dst[i].content;
    targets[i].capacity = dst[i].content_len;
  }
  int result = ps_read_values(trainer, targets, total);
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
  PS_CALL_OF(ps_number_of(client), read_into(trainer, names, dst, total));
}

void paddle_release_params(paddle_parameter *params, int total) {
  for (int i = 0; params != NULL && i < total; i++) {
    ps_free_content(params[i].content);
    params[i].content = NULL;
    params[i].content_len = 0;
  }
}

int paddle_save_model(paddle_pserver_client *client, const char *path) {
  PS_CALL_OF(ps_number_of(client), ps_save_model(trainer, path));
}
