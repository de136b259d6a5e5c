/* Revision 2: initialization, with one configuration for all parameters. */
#include "../initialize.h"

#include <paddle/v2/paddle_pserver_client.h>
#include <stdlib.h>
#include <string.h>

#include "../failures.h"
#include "../pointer-client.h"

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
static bool keep_config(const char *function, struct ps_trainer *trainer, const void *config, size_t bytes,
                        bool is_config_text) {
  char *copy = NULL;
  if (config != NULL) {
    copy = malloc(bytes + 1);
    if (copy == NULL) {
      ps_refuse(function, PSERVER_ERR_INTERNAL, "no memory for the configuration");
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

static int begin_with(const char *function, paddle_pserver_client *client, const void *config,
                      size_t bytes, bool is_config_text) {
  struct ps_trainer *trainer = ps_trainer_enter(function, ps_number_of(client));
  if (trainer == NULL) return -1;
  int result = keep_config(function, trainer, config, bytes, is_config_text)
                   ? ps_begin(function, trainer, true)
                   : -1;
  ps_trainer_leave(trainer);
  return result;
}

int paddle_begin_init_params(paddle_pserver_client *client, const char *config_proto) {
  bool is_given = config_proto != NULL && *config_proto != '\0';
  return begin_with(__func__, client, is_given ? config_proto : NULL,
                    is_given ? strlen(config_proto) : 0, is_given && is_text(config_proto));
}

int paddle_begin_init_params_with_config(paddle_pserver_client *client, const void *config_proto,
                                         int config_len) {
  if (config_len < 0 || (config_proto == NULL && config_len > 0)) {
    return ps_refuse(__func__, PSERVER_ERR_BAD_VALUE,
                     "expected a configuration and its length; received %s and %d",
                     config_proto == NULL ? "NULL" : "bytes", config_len);
  }
  return begin_with(__func__, client, config_proto, (size_t)config_len, false);
}

int paddle_init_param(paddle_pserver_client *client, paddle_parameter params) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  struct ps_values values = {params.name, params.element_type, params.content, params.content_len};
  /* Held during the call, because another thread may replace the configuration. */
  pthread_mutex_lock(&trainer->config_lock);
  pserver_config config = {0};
  if (trainer->is_config_text) {
    config.text = trainer->config;
  } else {
    config.optimizer_config = trainer->config;
    config.optimizer_config_bytes = trainer->config_bytes;
  }
  int result = ps_initialize(__func__, trainer, &values, trainer->config == NULL ? NULL : &config,
                             PS_REPETITION_FAILS);
  pthread_mutex_unlock(&trainer->config_lock);
  ps_trainer_leave(trainer);
  return result;
}

int paddle_finish_init_params(paddle_pserver_client *client) {
  struct ps_trainer *trainer = ps_trainer_enter(__func__, ps_number_of(client));
  if (trainer == NULL) return -1;
  int result = ps_finish(__func__, trainer, PS_REPETITION_FAILS);
  ps_trainer_leave(trainer);
  return result;
}
