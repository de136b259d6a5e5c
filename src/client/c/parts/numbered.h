#ifndef PARTS_NUMBERED_H
#define PARTS_NUMBERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A number of a list, and its index there. */
struct ps_numbered {
  uint64_t number;
  uint64_t place;
};

/**
 * Sorts a list by number; equal numbers keep their order. Takes time in proportion to the list and to the
 * digits of `most`, an upper bound of the numbers. False if there is no memory.
 */
bool ps_sort_numbered(struct ps_numbered *list, size_t count, uint64_t most);

#endif
