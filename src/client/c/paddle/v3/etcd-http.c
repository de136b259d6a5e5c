/* A request to etcd's HTTP gateway. */
#include "etcd-http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etcd-reply.h"

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

char *ps_etcd_range(const char *endpoint, const char *first, const char *end, int64_t timeout_ms,
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
  CURLcode code = curl == NULL || headers == NULL
                      ? CURLE_OUT_OF_MEMORY
                      : set_up(curl, url, request, headers, timeout_ms, &body);
  if (code == CURLE_OK) code = curl_easy_perform(curl);
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  if (code == CURLE_OK && body.text != NULL) return body.text;
  snprintf(reason, size, "%s", code == CURLE_OK ? "an empty answer" : curl_easy_strerror(code));
  free(body.text);
  return NULL;
}
