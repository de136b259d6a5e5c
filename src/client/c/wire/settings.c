#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Settings of the connection: from the options, else from the environment, else defaults. */

#define DEFAULT_URL "nats://127.0.0.1:4222"
/**
 * The interval of pings of cnats, and after how many without an answer it counts the connection as lost. On a slow
 * link an answer comes behind megabytes; the client's own watch, in link.c, ends a connection on which nothing moves.
 */
#define PING_INTERVAL_MS 10000
#define PINGS_MAX 12
#define RECONNECT_WAIT_MS 250
/** How long writing one message may take at most. The client's own watch ends a write that does not move. */
#define WRITE_DEADLINE_MS 120000
/** Large enough that one system call writes the message of a block. */
#define IO_BUFFER_BYTES (256 * 1024)
/** Small, because the client itself repeats what it published without a connection. */
#define RECONNECT_BUFFER_BYTES 1024

struct credentials {
  const char *user;
  const char *password;
  const char *token;
  const char *creds_file;
  const char *nkey_file;
  const char *nkey_public;
};

const char *ps_from_environment(const char *name) {
  const char *value = getenv(name);
  return value == NULL || value[0] == '\0' ? NULL : value;
}

static const char *address_of(const pserver_options *options) {
  if (options->url != NULL) return options->url;
  const char *url = ps_from_environment("PSERVER_URL");
  if (url == NULL) url = ps_from_environment("NATS_URL");
  return url == NULL ? DEFAULT_URL : url;
}

static bool are_credentials(const struct credentials *given) {
  return given->user != NULL || given->token != NULL || given->creds_file != NULL ||
         given->nkey_file != NULL;
}

static struct credentials credentials_of(const pserver_options *options,
                                         const struct ps_addresses *addresses) {
  if (addresses->user != NULL || addresses->token != NULL) {
    return (struct credentials){
        .user = addresses->user, .password = addresses->password, .token = addresses->token};
  }
  struct credentials given = {options->user,       options->password,  options->token,
                              options->creds_file, options->nkey_file, options->nkey_public};
  if (are_credentials(&given)) {
    if (given.user != NULL && given.password == NULL) {
      /* The password may come from the environment, unless that names another user. */
      const char *user = ps_from_environment("NATS_USER");
      if (user == NULL || strcmp(user, given.user) == 0) {
        given.password = ps_from_environment("NATS_PASSWORD");
      }
    }
    return given;
  }
  return (struct credentials){ps_from_environment("NATS_USER"),  ps_from_environment("NATS_PASSWORD"),
                              ps_from_environment("NATS_TOKEN"), ps_from_environment("NATS_CREDS"),
                              ps_from_environment("NATS_NKEY"),  ps_from_environment("NATS_NKEY_PUBLIC")};
}

static pserver_status nats_failure(natsStatus status, pserver_status code, const char *what) {
  if (status == NATS_OK) return PSERVER_OK;
  const char *detail = nats_GetLastError(NULL);
  return ps_fail(code, "%s: %s%s%s", what, natsStatus_GetText(status), detail == NULL ? "" : ": ",
                 detail == NULL ? "" : detail);
}

/**
 * Returns a text as cnats must be given it for the message CONNECT: cnats writes it between the quotes of a JSON string as
 * it is. The caller frees it. NULL without memory.
 */
static char *as_json_content(const char *text) {
  size_t size = 6 * strlen(text) + sizeof "\"\"";
  char *quoted = malloc(size);
  if (quoted == NULL) return NULL;
  struct ps_json json = {.bytes = quoted, .size = size};
  ps_json_text(&json, text, strlen(text));
  quoted[json.used - 1] = '\0';
  memmove(quoted, quoted + 1, json.used - 1);
  return quoted;
}

static natsStatus set_user(natsOptions *made, const char *user, const char *password) {
  char *user_content = as_json_content(user);
  char *password_content = as_json_content(password == NULL ? "" : password);
  bool is_made = user_content != NULL && password_content != NULL;
  natsStatus set =
      is_made ? natsOptions_SetUserInfo(made, user_content, password_content) : NATS_NO_MEMORY;
  free(user_content);
  free(password_content);
  return set;
}

/** Sets one text of the message CONNECT. */
static natsStatus set_text(natsOptions *made, natsStatus (*set)(natsOptions *, const char *),
                           const char *text) {
  char *content = as_json_content(text);
  natsStatus status = content == NULL ? NATS_NO_MEMORY : set(made, content);
  free(content);
  return status;
}

static pserver_status check_readable(const char *path, const char *what) {
  if (path == NULL || access(path, R_OK) == 0) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_IO, "%s: cannot read the file %s", what, path);
}

static pserver_status set_credentials(natsOptions *made, const struct credentials *with) {
  pserver_status status = check_readable(with->creds_file, "credentials");
  if (status == PSERVER_OK) status = check_readable(with->nkey_file, "nkey");
  if (status != PSERVER_OK) return status;
  natsStatus set = NATS_OK;
  if (with->creds_file != NULL) {
    set = natsOptions_SetUserCredentialsFromFiles(made, with->creds_file, NULL);
  } else if (with->nkey_file != NULL) {
    if (with->nkey_public == NULL) {
      return ps_fail(PSERVER_ERR_BAD_VALUE, "nkey_file: expected its public key as nkey_public, too");
    }
    set = natsOptions_SetNKeyFromSeed(made, with->nkey_public, with->nkey_file);
  } else if (with->user != NULL) {
    set = set_user(made, with->user, with->password);
  } else if (with->token != NULL) {
    set = set_text(made, natsOptions_SetToken, with->token);
  }
  return nats_failure(set, PSERVER_ERR_BAD_VALUE, "credentials");
}

/** Files for TLS: all from the options, or all from the environment. */
struct tls_files {
  const char *ca;
  const char *cert;
  const char *key;
};

static bool are_given(const struct tls_files *files) {
  return files->ca != NULL || files->cert != NULL || files->key != NULL;
}

static pserver_status find_tls_files(const pserver_options *options, struct tls_files *files) {
  *files = (struct tls_files){options->tls_ca, options->tls_cert, options->tls_key};
  if (!are_given(files)) {
    *files = (struct tls_files){ps_from_environment("NATS_CA"), ps_from_environment("NATS_CERT"),
                                ps_from_environment("NATS_KEY")};
  }
  if ((files->cert == NULL) != (files->key == NULL)) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "tls_cert and tls_key: expected both or none; received one");
  }
  pserver_status status = check_readable(files->ca, "tls_ca");
  if (status == PSERVER_OK) status = check_readable(files->cert, "tls_cert");
  return status == PSERVER_OK ? check_readable(files->key, "tls_key") : status;
}

/**
 * Requires TLS if an address or a file asks for it: cnats then refuses a broker without TLS at every
 * connection, before it sends a password. Without a file of authorities, the system's are trusted.
 */
static pserver_status set_tls(natsOptions *made, const pserver_options *options,
                              const struct ps_addresses *addresses) {
  struct tls_files files;
  pserver_status status = find_tls_files(options, &files);
  if (status != PSERVER_OK) return status;
  if (!addresses->wants_tls && !are_given(&files)) return PSERVER_OK;
  natsStatus set = natsOptions_SetSecure(made, true);
  if (set == NATS_OK && files.ca != NULL) {
    set = natsOptions_LoadCATrustedCertificates(made, files.ca);
  }
  if (set == NATS_OK && files.cert != NULL) {
    set = natsOptions_LoadCertificatesChain(made, files.cert, files.key);
  }
  /* A single host name is always checked; with several, cnats checks each if it was built to. */
  if (set == NATS_OK && addresses->host != NULL) {
    set = natsOptions_SetExpectedHostname(made, addresses->host);
  }
  return nats_failure(set, PSERVER_ERR_BAD_VALUE, "TLS");
}

static natsStatus set_behaviour(natsOptions *made, const pserver_options *options, const char *name) {
  natsStatus set = set_text(made, natsOptions_SetName, name);
  if (set == NATS_OK) set = natsOptions_SetTimeout(made, options->attempt_timeout_ms);
  if (set == NATS_OK) set = natsOptions_SetMaxReconnect(made, -1);
  if (set == NATS_OK) set = natsOptions_SetReconnectWait(made, RECONNECT_WAIT_MS);
  if (set == NATS_OK) set = natsOptions_SetReconnectJitter(made, RECONNECT_WAIT_MS, RECONNECT_WAIT_MS);
  if (set == NATS_OK) set = natsOptions_SetReconnectBufSize(made, RECONNECT_BUFFER_BYTES);
  if (set == NATS_OK) set = natsOptions_SetPingInterval(made, PING_INTERVAL_MS);
  if (set == NATS_OK) set = natsOptions_SetMaxPingsOut(made, PINGS_MAX);
  if (set == NATS_OK) set = natsOptions_SetWriteDeadline(made, WRITE_DEADLINE_MS);
  if (set == NATS_OK) set = natsOptions_SetIOBufSize(made, IO_BUFFER_BYTES);
  return set;
}

static pserver_status set_all(natsOptions *made, const pserver_options *options, const char *name,
                              struct ps_addresses *addresses) {
  struct credentials credentials = credentials_of(options, addresses);
  char token[PS_LOCAL_TOKEN_SIZE];
  if (!are_credentials(&credentials)) {
    pserver_status found = ps_find_local_token(addresses, token);
    if (found != PSERVER_OK) return found;
    if (token[0] != '\0') credentials.token = token;
  }
  pserver_status status = nats_failure(natsOptions_SetServers(made, addresses->servers, addresses->count),
                                       PSERVER_ERR_BAD_VALUE, "url: expected nats://host:port");
  if (status == PSERVER_OK) status = set_credentials(made, &credentials);
  if (status == PSERVER_OK) status = set_tls(made, options, addresses);
  if (status != PSERVER_OK) return status;
  return nats_failure(set_behaviour(made, options, name), PSERVER_ERR_BAD_VALUE, "options");
}

pserver_status ps_make_nats_options(const pserver_options *options, const char *name, natsOptions **made) {
  struct ps_addresses addresses;
  pserver_status status = ps_read_addresses(address_of(options), &addresses);
  if (status == PSERVER_OK && natsOptions_Create(made) != NATS_OK) {
    status = ps_no_memory("the connection");
  }
  if (status == PSERVER_OK) status = set_all(*made, options, name, &addresses);
  ps_release_addresses(&addresses);
  if (status == PSERVER_OK) return status;
  natsOptions_Destroy(*made);
  *made = NULL;
  return status;
}

void ps_shown_address(const pserver_options *options, char *target, size_t size) {
  struct ps_addresses addresses;
  size_t used = 0;
  target[0] = '\0';
  if (ps_read_addresses(address_of(options), &addresses) == PSERVER_OK) {
    for (int i = 0; i < addresses.count && used < size; i++) {
      int length = snprintf(target + used, size - used, "%s%s", i == 0 ? "" : ",", addresses.servers[i]);
      used += (size_t)length;
    }
  }
  ps_release_addresses(&addresses);
}
