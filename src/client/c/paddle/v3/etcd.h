#ifndef PADDLE_V3_ETCD_H
#define PADDLE_V3_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Broker and job, as hosts publish them in etcd. */
struct ps_discovery {
  /** The broker's addresses, separated by commas; those that do not fit are left out. */
  char url[4096];
  char job[64];
};

/** Finds broker and job in etcd; waits for them up to 10 seconds. False with an error. */
bool ps_discover(const char *function, const char *endpoints, struct ps_discovery *found);

#endif
