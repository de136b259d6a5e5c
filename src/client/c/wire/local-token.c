#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* The token of a broker on this machine that this user has started, as src/transport/local-token.ts finds it. */

#define PORT_DEFAULT "4222"

/** Skips the text if the address begins with it; NULL if it does not. */
static const char *after(const char *address, const char *text) {
  size_t length = strlen(text);
  return strncasecmp(address, text, length) == 0 ? address + length : NULL;
}

/** Skips `127.` and three numbers more; NULL if they are not there. */
static const char *after_ipv4_loopback(const char *address) {
  const char *rest = after(address, "127");
  for (int i = 0; i < 3 && rest != NULL; i++) {
    size_t digits = *rest == '.' ? strspn(rest + 1, "0123456789") : 0;
    rest = digits >= 1 && digits <= 3 ? rest + 1 + digits : NULL;
  }
  return rest;
}

/** Returns the port of an address of this machine; NULL for any other address. */
static const char *local_port(const char *address) {
  const char *start = after(address, "nats://");
  if (start == NULL) start = address;
  const char *rest = after(start, "localhost");
  if (rest == NULL) rest = after(start, "[::1]");
  if (rest == NULL) rest = after_ipv4_loopback(start);
  if (rest == NULL || (*rest != '\0' && *rest != ':')) return NULL;
  return *rest == ':' ? rest + 1 : PORT_DEFAULT;
}

/** Writes the path of a token; false if the environment does not say where the user's files are. */
static bool path_of(const char *port, char path[PATH_MAX]) {
  const char *state = getenv("XDG_STATE_HOME");
  /* The XDG specification has relative paths ignored. */
  bool is_given = state != NULL && state[0] == '/';
  const char *home = getenv("HOME");
  if (!is_given && (home == NULL || home[0] == '\0')) return false;
  int length = snprintf(path, PATH_MAX, "%s%s/pserver/token-%s", is_given ? state : home,
                        is_given ? "" : "/.local/state", port);
  return length > 0 && length < PATH_MAX;
}

static pserver_status check_owner(int file, const char *path) {
  struct stat found;
  if (fstat(file, &found) != 0) {
    return ps_fail(PSERVER_ERR_IO, "cannot read the broker's token from %s: %s", path, strerror(errno));
  }
  if (found.st_uid != geteuid()) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "the broker's token in %s: expected a file of user %u; received one of user %u", path,
                   (unsigned)geteuid(), (unsigned)found.st_uid);
  }
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "the broker's token in %s: expected mode 600, for its owner only; received %o", path,
                   (unsigned)(found.st_mode & 0777));
  }
  if (found.st_size >= PS_LOCAL_TOKEN_SIZE) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "the broker's token in %s: expected at most %d bytes", path,
                   PS_LOCAL_TOKEN_SIZE - 1);
  }
  return PSERVER_OK;
}

/** Reads a token; it is "" if there is no such file. */
static pserver_status read_token(const char *path, char token[PS_LOCAL_TOKEN_SIZE]) {
  token[0] = '\0';
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return PSERVER_OK;
  if (file < 0) {
    return ps_fail(PSERVER_ERR_IO, "cannot read the broker's token from %s: %s", path, strerror(errno));
  }
  pserver_status status = check_owner(file, path);
  ssize_t length = status == PSERVER_OK ? read(file, token, PS_LOCAL_TOKEN_SIZE - 1) : 0;
  close(file);
  token[length > 0 ? length : 0] = '\0';
  token[strcspn(token, "\r\n")] = '\0';
  return status;
}

pserver_status ps_find_local_token(const struct ps_addresses *addresses, char token[PS_LOCAL_TOKEN_SIZE]) {
  token[0] = '\0';
  for (int i = 0; i < addresses->count; i++) {
    if (local_port(addresses->servers[i]) == NULL) return PSERVER_OK;
  }
  for (int i = 0; i < addresses->count && token[0] == '\0'; i++) {
    char path[PATH_MAX];
    if (!path_of(local_port(addresses->servers[i]), path)) return PSERVER_OK;
    pserver_status status = read_token(path, token);
    if (status != PSERVER_OK) return status;
  }
  return PSERVER_OK;
}
