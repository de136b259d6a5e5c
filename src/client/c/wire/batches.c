/* How many bytes names take in batches. */
#include "wire/batches.h"

#include <stdbool.h>
#include <stdint.h>

/** The maximum number of bytes of UTF-8 for one UTF-16 code unit. */
#define UTF8_BYTES 3

size_t ps_batch_name_bytes_max(const char *name) {
  size_t units = 0;
  for (; *name != '\0'; name++) {
    uint8_t byte = (uint8_t)*name;
    bool goes_on = (byte & 0xc0) == 0x80;
    /* A character of four bytes is two units. */
    units += goes_on ? 0 : byte >= 0xf0 ? 2 : 1;
  }
  return UTF8_BYTES * units;
}
