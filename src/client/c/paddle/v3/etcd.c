#include "../paddle.h"
#include "etcd.h"

#include <curl/curl.h>
#include <pserver.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* A request to etcd's HTTP gateway. */

/** The maximum size of an answer; a list of hosts takes some kilobytes. */
#define BODY_BYTES_MAX (1024 * 1024)

struct body {
  char *text;
  size_t bytes;
};

static pthread_once_t prepared = PTHREAD_ONCE_INIT;

static void prepare(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }

/** Appends bytes of the answer; returning fewer than given makes curl fail. */
static size_t take(char *from, size_t size, size_t count, void *target) {
  struct body *body = target;
  size_t bytes = size * count;
  if (bytes > BODY_BYTES_MAX - body->bytes) return 0;
  char *grown = realloc(body->text, body->bytes + bytes + 1);
  if (grown == NULL) return 0;
  memcpy(grown + body->bytes, from, bytes);
  body->text = grown;
  body->bytes += bytes;
  grown[body->bytes] = '\0';
  return bytes;
}

static CURLcode set_up(CURL *curl, const char *url, const char *request, struct curl_slist *headers,
                       int64_t timeout_ms, struct body *body) {
  CURLcode set = curl_easy_setopt(curl, CURLOPT_URL, url);
  if (set == CURLE_OK) set = curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request);
  if (set == CURLE_OK) set = curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  if (set == CURLE_OK) set = curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
  if (set == CURLE_OK) set = curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
  if (set == CURLE_OK) set = curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
  if (set == CURLE_OK) set = curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  /* Signals belong to the trainer. No proxy, because etcd is in the cluster. */
  if (set == CURLE_OK) set = curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  if (set == CURLE_OK) set = curl_easy_setopt(curl, CURLOPT_PROXY, "");
  return set;
}

/** Asks etcd for all keys from `first` up to, but not including, `end`. Returns the JSON of the answer, to
 * be freed; NULL on failure, with the reason in `reason`, which has `size` bytes. */
static char *etcd_range(const char *endpoint, const char *first, const char *end, int64_t timeout_ms,
                        char *reason, size_t size) {
  char url[512];
  char key[512];
  char range_end[512];
  char request[1200];
  pthread_once(&prepared, prepare);
  int length = snprintf(url, sizeof url, "%s/v3/kv/range", endpoint);
  if (length < 0 || (size_t)length >= sizeof url || !ps_base64_encode(first, key, sizeof key) ||
      !ps_base64_encode(end, range_end, sizeof range_end)) {
    snprintf(reason, size, "the address or prefix is too long");
    return NULL;
  }
  snprintf(request, sizeof request, "{\"key\":\"%s\",\"range_end\":\"%s\"}", key, range_end);
  struct body body = {NULL, 0};
  CURL *curl = curl_easy_init();
  struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
  CURLcode code = curl == NULL || headers == NULL ? CURLE_OUT_OF_MEMORY
                                                  : set_up(curl, url, request, headers, timeout_ms, &body);
  if (code == CURLE_OK) code = curl_easy_perform(curl);
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  if (code == CURLE_OK && body.text != NULL) return body.text;
  snprintf(reason, size, "%s", code == CURLE_OK ? "an empty answer" : curl_easy_strerror(code));
  free(body.text);
  return NULL;
}

/* Finds broker and job in etcd: see "Discovery through etcd" in docs/reference/protocol.md. */

#define DISCOVERY_MS 10000
#define REQUEST_MS 2000
#define PAUSE_MS 250
#define PORT_DEFAULT "2379"
#define ENDPOINT_SIZE 300

/** The state of a search. */
struct search {
  char keys[256];
  char keys_end[256];
  /** Why the last attempt found nothing. */
  char reason[600];
  pserver_status code;
  struct ps_discovery *found;
};

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void pause_ms(int64_t delay_ms) {
  struct timespec delay = {delay_ms / 1000, delay_ms % 1000 * 1000000};
  nanosleep(&delay, NULL);
}

/** Whether a text without final zero is an entry of a list separated by commas. */
static bool is_listed(const char *list, const char *text, size_t length) {
  while (*list != '\0') {
    size_t entry = strcspn(list, ",");
    if (entry == length && memcmp(list, text, length) == 0) return true;
    list += entry + (list[entry] == ',');
  }
  return false;
}

/** Adds those addresses that libpserver can use and that are not listed yet. */
static void add_addresses(struct ps_discovery *found, const char *addresses) {
  while (*addresses != '\0') {
    size_t length = strcspn(addresses, ",");
    size_t used = strlen(found->url);
    bool is_usable = strncmp(addresses, "nats://", 7) == 0 || strncmp(addresses, "tls://", 6) == 0;
    if (is_usable && !is_listed(found->url, addresses, length) && used + length + 2 <= sizeof found->url) {
      snprintf(found->url + used, sizeof found->url - used, "%s%.*s", used > 0 ? "," : "", (int)length,
               addresses);
    }
    addresses += length + (addresses[length] == ',');
  }
}

static bool is_number(const char *text) {
  return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/** Whether the entries name a broker and a job. */
static bool read_entries(struct search *search, const char *json) {
  char key[PS_ETCD_TEXT_SIZE];
  char value[PS_ETCD_TEXT_SIZE];
  struct ps_etcd_reply reply;
  struct ps_discovery *found = search->found;
  *found = (struct ps_discovery){0};
  if (!ps_etcd_reply_open(&reply, json)) {
    search->code = PSERVER_ERR_NO_ETCD;
    snprintf(search->reason, sizeof search->reason, "what answers is not etcd");
    return false;
  }
  size_t prefix = strlen(search->keys);
  while (ps_etcd_reply_next(&reply, key, value)) {
    if (strncmp(key, search->keys, prefix) != 0) continue;
    if (is_number(key + prefix)) add_addresses(found, value);
    if (strcmp(key + prefix, "job") == 0 && strlen(value) < sizeof found->job) {
      memcpy(found->job, value, strlen(value) + 1);
    }
  }
  if (found->url[0] != '\0' && found->job[0] != '\0') return true;
  search->code = PSERVER_ERR_NO_HOST;
  snprintf(search->reason, sizeof search->reason, "no host is published below %s: start one with --etcd",
           search->keys);
  return false;
}

/** Returns the length of `http://` or `https://` at the beginning of an entry. */
static size_t scheme_bytes(const char *entry) {
  if (strncasecmp(entry, "http://", 7) == 0) return 7;
  return strncasecmp(entry, "https://", 8) == 0 ? 8 : 0;
}

/** Writes an entry such as `host` as `http://host:port`; false if it is invalid or does not fit. */
static bool to_endpoint(const char *entry, size_t length, char *endpoint, size_t size) {
  while (length > 0 && strchr(" /", entry[length - 1]) != NULL) length--;
  size_t scheme = scheme_bytes(entry);
  if (length <= scheme || memchr(entry, '@', length) != NULL) return false;
  if (memmem(entry + scheme, length - scheme, "://", 3) != NULL) return false;
  /* The last colon begins a port, unless it is within the brackets of an IPv6 address. */
  const char *colon = memrchr(entry + scheme, ':', length - scheme);
  const char *bracket = memrchr(entry + scheme, ']', length - scheme);
  bool has_port = colon != NULL && (bracket == NULL || colon > bracket);
  int written = snprintf(endpoint, size, "%s%.*s%s", scheme > 0 ? "" : "http://", (int)length, entry,
                         has_port ? "" : ":" PORT_DEFAULT);
  return written > 0 && (size_t)written < size;
}

static bool ask(struct search *search, const char *endpoint, int64_t timeout_ms) {
  char reason[256];
  char *json = etcd_range(endpoint, search->keys, search->keys_end, timeout_ms, reason, sizeof reason);
  if (json == NULL) {
    /* Keep the reason of an earlier request: this one had less time than usual. */
    if (timeout_ms < REQUEST_MS && search->reason[0] != '\0') return false;
    search->code = PSERVER_ERR_NO_ETCD;
    snprintf(search->reason, sizeof search->reason, "%s: %s", endpoint, reason);
    return false;
  }
  bool is_found = read_entries(search, json);
  free(json);
  return is_found;
}

/** Whether all entries are addresses, and there is at least one; false with an error, which does not repeat
 * them, because they may contain a password. */
static bool check_endpoints(const char *endpoints) {
  int count = 0;
  bool are_valid = endpoints != NULL;
  for (const char *entry = endpoints; are_valid && *entry != '\0';) {
    char endpoint[ENDPOINT_SIZE];
    entry += strspn(entry, " ,");
    size_t length = strcspn(entry, ",");
    if (length > 0) {
      are_valid = to_endpoint(entry, length, endpoint, sizeof endpoint);
      count++;
    }
    entry += length;
  }
  if (are_valid && count > 0) return true;
  ps_report(PSERVER_ERR_BAD_VALUE,
            "expected addresses of etcd like http://host:port, with commas between them; received %s",
            endpoints == NULL ? "NULL" : "something else");
  return false;
}

/** Asks the endpoints one after the other until one knows broker and job. */
static bool ask_each(struct search *search, const char *endpoints, int64_t until_ms) {
  for (const char *entry = endpoints; *entry != '\0';) {
    entry += strspn(entry, " ,");
    size_t length = strcspn(entry, ",");
    char endpoint[ENDPOINT_SIZE];
    int64_t left_ms = until_ms - now_ms();
    if (length == 0 || left_ms <= 0) break;
    if (to_endpoint(entry, length, endpoint, sizeof endpoint) &&
        ask(search, endpoint, left_ms < REQUEST_MS ? left_ms : REQUEST_MS)) {
      return true;
    }
    entry += length;
  }
  return false;
}

bool ps_discover(const char *endpoints, struct ps_discovery *found) {
  struct search search = {.code = PSERVER_ERR_NO_ETCD, .found = found};
  const char *prefix = ps_environment_value("PSERVER_ETCD_PREFIX");
  if (prefix == NULL) prefix = "";
  if (!check_endpoints(endpoints)) return false;
  if (strlen(prefix) > sizeof search.keys - 8) {
    ps_report(PSERVER_ERR_BAD_VALUE, "PSERVER_ETCD_PREFIX is too long");
    return false;
  }
  snprintf(search.keys, sizeof search.keys, "%s/ps/", prefix);
  /* The end of the keys with this prefix: '0' follows '/'. */
  snprintf(search.keys_end, sizeof search.keys_end, "%s/ps0", prefix);
  int64_t until_ms = now_ms() + DISCOVERY_MS;
  while (!ask_each(&search, endpoints, until_ms)) {
    if (now_ms() + PAUSE_MS < until_ms) {
      pause_ms(PAUSE_MS);
      continue;
    }
    ps_report(search.code, "within %d ms: %s", DISCOVERY_MS, search.reason);
    return false;
  }
  return true;
}
