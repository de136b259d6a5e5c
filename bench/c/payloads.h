#ifndef PAYLOADS_H
#define PAYLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes under way at one time: what the clients of a job allow, too. */
#define WINDOW_BYTES ((size_t)16 * 1024 * 1024)

/**
 * The messages of a raw measurement: pieces of one array, one after the other and again from its
 * beginning, so that as many bytes are read from memory as a trainer or host would read.
 */
struct payloads {
  uint8_t *source;
  size_t source_bytes;
  size_t bytes;
  size_t at;
};

/** Messages of `bytes` out of at least `source_bytes`. False if there is no memory. */
bool payloads_init(struct payloads *payloads, size_t bytes, size_t source_bytes);

/** The next message; it stays the array's. */
const uint8_t *payloads_next(struct payloads *payloads);

/** How many messages the window holds, one at least. */
size_t payloads_window(const struct payloads *payloads);

void payloads_release(struct payloads *payloads);

#endif
