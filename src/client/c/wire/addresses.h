#ifndef WIRE_ADDRESSES_H
#define WIRE_ADDRESSES_H

#include <pserver.h>

/** Addresses that are used; further ones of a list are only checked. */
#define PS_ADDRESSES_MAX 32

/** A list of broker addresses. It owns its texts. */
struct ps_addresses {
  /** `scheme://host:port` or `host:port`, without credentials. */
  const char *servers[PS_ADDRESSES_MAX];
  int count;
  /** Whether all addresses are `tls://`; otherwise none is. */
  bool wants_tls;
  /** The host of all addresses, without a port; NULL if they have different ones. */
  char *host;
  /** The credentials of the first address that has any: a user and a password, or a token. */
  char *user;
  char *password;
  char *token;

  /** Memory that `servers` points into. */
  char *text;
};

/**
 * Reads addresses separated by commas: `nats://host:port`, `tls://…` or `host:port`, with `user:password@`
 * or `token@` before the host. In these, `/ @ : ? # % ,` are written as `%` and two hexadecimal digits.
 * Release the addresses also after an error. BAD_VALUE; its message shows nothing of the list, because any
 * part of a malformed list may be part of a password.
 */
pserver_status ps_read_addresses(const char *list, struct ps_addresses *addresses);
void ps_release_addresses(struct ps_addresses *addresses);

#endif
