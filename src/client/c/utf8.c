/* Well-formed UTF-8, as table 3-7 of the Unicode standard has it. */
#include "utf8.h"

#include <stdint.h>

/** Bytes of the sequence that begins here; 0 if none does. */
static size_t sequence_bytes(const uint8_t *at, size_t left) {
  uint8_t first = at[0];
  if (first < 0x80) return 1;
  size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes > left) return 0;
  uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (at[1] < low || at[1] > high) return 0;
  for (size_t i = 2; i < bytes; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

bool is_utf8(const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  while (count > 0) {
    size_t taken = sequence_bytes(at, count);
    if (taken == 0) return false;
    at += taken;
    count -= taken;
  }
  return true;
}
