#include "paddle.h"

#include <paddle/v1/paddle_pserver_client.h>

/* Revisions 1 and 2: making and releasing clients, which are pointers. */

/* A client is its trainer's number plus 1, so that it is not NULL. It is never dereferenced. */

uint32_t ps_number_of(const struct paddle_pserver_client *client) {
  uintptr_t number = (uintptr_t)client;
  return number == 0 || number > UINT32_MAX ? PS_NO_TRAINER : (uint32_t)(number - 1);
}

paddle_pserver_client *paddle_new_pserver_client(void) {
  ps_name_function(__func__);
  uint32_t number = ps_trainer_open((struct ps_place){0}, true);
  return number == PS_NO_TRAINER ? NULL : (paddle_pserver_client *)((uintptr_t)number + 1);
}

void paddle_pserver_client_release(paddle_pserver_client *client) {
  ps_name_function(__func__);
  if (client != NULL) ps_trainer_close(ps_number_of(client));
}

const char *paddle_pserver_last_error(void) { return ps_last_report(); }
