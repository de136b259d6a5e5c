#include "formats/formats.h"

#include <stdint.h>
#include <string.h>

/* Well-formed UTF-8, as defined in table 3-7 of the Unicode standard. */

size_t ps_utf8_sequence(const void *text, size_t left) {
  const uint8_t *at = text;
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

bool ps_is_utf8(const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  while (count > 0) {
    size_t taken = ps_utf8_sequence(at, count);
    if (taken == 0) return false;
    at += taken;
    count -= taken;
  }
  return true;
}

bool ps_is_nul_of_name(const void *text, size_t left) {
  const uint8_t *at = text;
  return left >= 2 && at[0] == 0xc0 && at[1] == 0x80;
}

void ps_make_utf8(char *text) {
  size_t left = strlen(text);
  while (left > 0) {
    size_t taken = ps_utf8_sequence(text, left);
    if (taken == 0) {
      *text = '?';
      taken = 1;
    }
    text += taken;
    left -= taken;
  }
}
