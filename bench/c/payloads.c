/* Messages for measurements that do not use this project's client. */
#include "payloads.h"

#include <stdlib.h>
#include <string.h>

bool payloads_init(struct payloads *payloads, size_t bytes, size_t source_bytes) {
  size_t messages = (source_bytes + bytes - 1) / bytes;
  *payloads = (struct payloads){.bytes = bytes, .source_bytes = messages * bytes};
  payloads->source = malloc(payloads->source_bytes);
  if (payloads->source == NULL) return false;
  /* Filled, because pages that were never written to share one page of memory. */
  memset(payloads->source, 1, payloads->source_bytes);
  return true;
}

const uint8_t *payloads_next(struct payloads *payloads) {
  const uint8_t *payload = payloads->source + payloads->at;
  payloads->at = (payloads->at + payloads->bytes) % payloads->source_bytes;
  return payload;
}

size_t payloads_window(const struct payloads *payloads) {
  size_t window = WINDOW_BYTES / payloads->bytes;
  return window > 0 ? window : 1;
}

void payloads_release(struct payloads *payloads) { free(payloads->source); }
