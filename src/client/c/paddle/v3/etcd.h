#ifndef PADDLE_V3_ETCD_H
#define PADDLE_V3_ETCD_H

#include <stdbool.h>

/** What hosts publish in etcd. */
struct ps_discovery {
  /** The broker's addresses, separated by commas; of more than fit the first. */
  char url[4096];
  char job[64];
};

/** Finds broker and job in etcd, waiting for both up to 10 seconds. False with a message. */
bool ps_discover(const char *function, const char *endpoints, struct ps_discovery *found);

#endif
