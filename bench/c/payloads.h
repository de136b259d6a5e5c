#ifndef PAYLOADS_H
#define PAYLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes in flight at a time; the clients of a job have the same limit by default. */
#define WINDOW_BYTES ((size_t)16 * 1024 * 1024)

/**
 * The messages of a measurement without this project's client: ranges of one array, in order and then from
 * its beginning again, so that as many bytes are read from memory as a trainer or host would read.
 */
struct payloads {
  uint8_t *source;
  size_t source_bytes;
  size_t bytes;
  size_t at;
};

/** Makes messages of `bytes` from an array of at least `source_bytes`. False if memory is short. */
bool payloads_init(struct payloads *payloads, size_t bytes, size_t source_bytes);

/** Returns the next message, in memory of the array. */
const uint8_t *payloads_next(struct payloads *payloads);

/** Returns how many messages fit into the window; at least 1. */
size_t payloads_window(const struct payloads *payloads);

void payloads_release(struct payloads *payloads);

#endif
