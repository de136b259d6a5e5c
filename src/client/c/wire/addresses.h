#ifndef WIRE_ADDRESSES_H
#define WIRE_ADDRESSES_H

#include <pserver.h>

#define PS_ADDRESSES_MAX 32

/** What a list of broker addresses says. The texts belong to it. */
struct ps_addresses {
  /** `scheme://host:port` or `host:port`, without credentials. */
  const char *servers[PS_ADDRESSES_MAX];
  int count;
  /** Whether they are `tls://`: all of them, or none. */
  bool wants_tls;
  /** The host of all of them, without a port; NULL if they have several. */
  char *host;
  /** The credentials of the first address that has any: a user and a password, or a token. */
  char *user;
  char *password;
  char *token;

  /** What `servers` points into. */
  char *text;
};

/**
 * Reads addresses with commas between them: `nats://host:port`, `tls://…` or `host:port`, with
 * `user:password@` or `token@` before the host, in which `/ @ : ? # % ,` of a password are written as
 * `%` and two hexadecimal digits. To be released, also after an error. BAD_VALUE, with a message that shows nothing
 * of the list: any part of a malformed one can be part of a password.
 */
pserver_status ps_read_addresses(const char *list, struct ps_addresses *addresses);
void ps_release_addresses(struct ps_addresses *addresses);

#endif
