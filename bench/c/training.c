/* The client of programs that train. */
#include "training.h"

pserver_client *client;

bool is_done(pserver_status status, const char *what, struct answer *answer) {
  const char *text = "";
  if (status == PSERVER_OK) return true;
  pserver_last_error(&text);
  return refuse(answer, "%s: %s: %s", what, pserver_status_name(status), text);
}

bool open_trainer(char **arguments, struct answer *answer) {
  pserver_options options;
  pserver_options_init(&options);
  options.url = arguments[0];
  options.job = arguments[1];
  options.trainer = arguments[2];
  options.connect_timeout_ms = TIMEOUT_MS;
  return is_done(pserver_connect(&options, &client), "open", answer);
}

void close_trainer(void) {
  if (client != NULL) pserver_close(client, TIMEOUT_MS);
}
