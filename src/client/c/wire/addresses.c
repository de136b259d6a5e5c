#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Lists of broker addresses, and the credentials in them. */

#define PORT_MAX 65535

/** One address of a list; its texts are in a copy of the list. */
struct entry {
  /** NULL if the address has none, as `credentials`. */
  char *scheme;
  char *credentials;
  char *address;
};

static pserver_status malformed(int number, const char *what) {
  return ps_fail(
      PSERVER_ERR_BAD_VALUE,
      "url: expected nats://host:port or tls://host:port, commas between several, and / @ : ? # %% , "
      "of a password written as %%2F %%40 %%3A %%3F %%23 %%25 %%2C; address %d %s",
      number, what);
}

static pserver_status no_memory(void) { return ps_no_memory("the addresses"); }

static char *trimmed(char *text) {
  text += strspn(text, " ");
  size_t length = strlen(text);
  while (length > 0 && text[length - 1] == ' ') text[--length] = '\0';
  return text;
}

/** Splits an address into its texts. Everything before the last `@` counts as credentials. */
static void split(char *text, struct entry *entry) {
  char *start = strstr(text, "://");
  char *at = strrchr(text, '@');
  *entry = (struct entry){.address = text};
  if (start != NULL && (at == NULL || start < at)) {
    *start = '\0';
    entry->scheme = text;
    entry->address = start + 3;
  }
  if (at != NULL) {
    *at = '\0';
    entry->credentials = entry->address;
    entry->address = at + 1;
  }
  size_t length = strlen(entry->address);
  if (length > 0 && entry->address[length - 1] == '/') entry->address[length - 1] = '\0';
}

/** Returns where the port begins: at its colon, or the end of the text if it has none. */
static const char *port_of(const char *address) {
  const char *from = address[0] == '[' ? strchr(address, ']') : address;
  if (from == NULL) return NULL;
  if (address[0] == '[') return from + 1;
  return from + strcspn(from, ":");
}

/** Whether it has spaces or control characters, for which cnats frees memory that it does not own. */
static bool has_unprintable(const char *address) {
  for (const char *c = address; *c != '\0'; c++) {
    if ((unsigned char)*c <= ' ' || *c == 0x7f) return true;
  }
  return false;
}

/** Whether the text is a host, with or without a port. */
static bool is_address(const char *address) {
  const char *port = port_of(address);
  if (port == NULL || port == address || strpbrk(address, "/@") != NULL) return false;
  if (has_unprintable(address)) return false;
  if (*port == '\0') return true;
  size_t digits = strspn(port + 1, "0123456789");
  if (*port != ':' || digits == 0 || digits > 5 || port[1 + digits] != '\0') return false;
  long number = strtol(port + 1, NULL, 10);
  return number > 0 && number <= PORT_MAX;
}

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/** Replaces the escapes of a text in place; false if one is malformed. */
static bool unescape(char *text) {
  char *to = text;
  for (const char *from = text; *from != '\0'; from++) {
    if (*from != '%') {
      *to++ = *from;
      continue;
    }
    int high = digit_of(from[1]);
    int low = high < 0 ? -1 : digit_of(from[2]);
    if (low < 0 || high + low == 0) return false;
    *to++ = (char)(high * 16 + low);
    from += 2;
  }
  *to = '\0';
  return true;
}

/** Copies a text and replaces its escapes. */
static pserver_status copy_unescaped(const char *text, int number, char **copy) {
  *copy = strdup(text);
  if (*copy == NULL) return no_memory();
  return unescape(*copy) ? PSERVER_OK : malformed(number, "has a % that begins no escape");
}

static pserver_status take_credentials(struct ps_addresses *addresses, char *given, int number) {
  if (given[0] == '\0' || addresses->user != NULL || addresses->token != NULL) return PSERVER_OK;
  char *colon = strchr(given, ':');
  if (colon == NULL) return copy_unescaped(given, number, &addresses->token);
  *colon = '\0';
  pserver_status status = copy_unescaped(given, number, &addresses->user);
  if (status != PSERVER_OK) return status;
  return copy_unescaped(colon + 1, number, &addresses->password);
}

/** Notes the host; forgets it once addresses have different ones. */
static pserver_status take_host(struct ps_addresses *addresses, const char *address) {
  size_t length = (size_t)(port_of(address) - address);
  if (address[0] == '[') {
    address++;
    length -= 2;
  }
  if (addresses->count == 0) {
    addresses->host = strndup(address, length);
    return addresses->host == NULL ? no_memory() : PSERVER_OK;
  }
  bool is_same = addresses->host != NULL && strlen(addresses->host) == length &&
                 strncasecmp(addresses->host, address, length) == 0;
  if (is_same) return PSERVER_OK;
  free(addresses->host);
  addresses->host = NULL;
  return PSERVER_OK;
}

/** Returns the address without credentials: moves the scheme over them, in place. */
static const char *without_credentials(const struct entry *entry) {
  if (entry->scheme == NULL) return entry->address;
  size_t length = strlen(entry->scheme);
  char *start = entry->address - length - 3;
  memmove(start, entry->scheme, length);
  memcpy(start + length, "://", 3);
  return start;
}

static pserver_status take(struct ps_addresses *addresses, const struct entry *entry, int number) {
  bool is_tls = entry->scheme != NULL && strcasecmp(entry->scheme, "tls") == 0;
  bool is_plain = entry->scheme == NULL || strcasecmp(entry->scheme, "nats") == 0;
  if (!is_address(entry->address)) return malformed(number, "has no host, or a malformed port");
  if (!is_tls && !is_plain) return malformed(number, "has another scheme");
  if (entry->credentials != NULL && strpbrk(entry->credentials, "/@?# ") != NULL) {
    return malformed(number, "has credentials that are not escaped");
  }
  /* The client may reconnect to any address, and must not do so without TLS. */
  if (addresses->count > 0 && is_tls != addresses->wants_tls) {
    return malformed(number, "differs from those before it: expected tls:// before all or before none");
  }
  if (addresses->count == PS_ADDRESSES_MAX) return PSERVER_OK;
  pserver_status status = PSERVER_OK;
  if (entry->credentials != NULL) status = take_credentials(addresses, entry->credentials, number);
  if (status == PSERVER_OK) status = take_host(addresses, entry->address);
  if (status != PSERVER_OK) return status;
  addresses->wants_tls = is_tls;
  addresses->servers[addresses->count++] = without_credentials(entry);
  return PSERVER_OK;
}

pserver_status ps_read_addresses(const char *list, struct ps_addresses *addresses) {
  *addresses = (struct ps_addresses){.text = strdup(list)};
  if (addresses->text == NULL) return no_memory();
  bool are_several = strchr(list, ',') != NULL;
  char *rest = NULL;
  int number = 1;
  pserver_status status = PSERVER_OK;
  for (char *text = strtok_r(addresses->text, ",", &rest); text != NULL && status == PSERVER_OK;
       text = strtok_r(NULL, ",", &rest), number++) {
    char *given = trimmed(text);
    if (given[0] == '\0') continue;
    struct entry entry;
    split(given, &entry);
    /* A comma in a password splits the address: its second part must not count as an address. */
    bool is_tail = are_several && entry.scheme == NULL && entry.credentials != NULL;
    status =
        is_tail ? malformed(number, "has credentials and no scheme") : take(addresses, &entry, number);
  }
  if (status != PSERVER_OK || addresses->count > 0) return status;
  return ps_fail(PSERVER_ERR_BAD_VALUE,
                 "url: expected nats://host:port or tls://host:port; received none");
}

void ps_release_addresses(struct ps_addresses *addresses) {
  free(addresses->host);
  free(addresses->user);
  free(addresses->password);
  free(addresses->token);
  free(addresses->text);
}
