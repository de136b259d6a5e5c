/* Revision 3: making and releasing clients, which are numbers. */
#include <paddle/v3/paddle_pserver_client.h>

#include "../failures.h"
#include "../trainer.h"
#include "etcd.h"

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
