/* Radix sort of numbered entries, beginning with the least significant digit. */
#include "parts/numbered.h"

#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGITS ((size_t)1 << DIGIT_BITS)

static size_t digit_of(uint64_t number, unsigned shift) { return (number >> shift) & (DIGITS - 1); }

/** Sorts by one digit; equal digits keep their order. */
static void sort_by_digit(const struct ps_numbered *from, struct ps_numbered *to, size_t count,
                          unsigned shift) {
  size_t next[DIGITS] = {0};
  for (size_t i = 0; i < count; i++) next[digit_of(from[i].number, shift)]++;
  size_t before = 0;
  for (size_t digit = 0; digit < DIGITS; digit++) {
    size_t of_digit = next[digit];
    next[digit] = before;
    before += of_digit;
  }
  for (size_t i = 0; i < count; i++) to[next[digit_of(from[i].number, shift)]++] = from[i];
}

bool ps_sort_numbered(struct ps_numbered *list, size_t count, uint64_t most) {
  struct ps_numbered *other = malloc((count + 1) * sizeof *other);
  if (other == NULL) return false;
  struct ps_numbered *from = list;
  struct ps_numbered *to = other;
  for (unsigned shift = 0; shift < 64 && most >> shift > 0; shift += DIGIT_BITS) {
    sort_by_digit(from, to, count, shift);
    struct ps_numbered *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != list) memcpy(list, from, count * sizeof *list);
  free(other);
  return true;
}
