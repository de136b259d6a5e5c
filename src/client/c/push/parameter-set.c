/* Sets of parameters, in a table that is at most half full. */
#include "push/parameter-set.h"

#include <stdlib.h>
#include <string.h>

bool ps_parameter_set_init(struct ps_parameter_set *set, size_t count) {
  size_t slots = 2;
  while (slots < 2 * count) slots *= 2;
  *set = (struct ps_parameter_set){.slots = calloc(slots, sizeof(struct ps_parameter *)),
                                   .slot_count = slots};
  return set->slots != NULL;
}

/** FNV-1a. */
static size_t hash(const struct ps_parameter *parameter) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < parameter->name_bytes; i++) {
    hash = (hash ^ (uint8_t)parameter->name[i]) * 16777619u;
  }
  return hash;
}

static bool is_same(const struct ps_parameter *a, const struct ps_parameter *b) {
  return a == b || (a->name_bytes == b->name_bytes && memcmp(a->name, b->name, a->name_bytes) == 0);
}

bool ps_parameter_set_add(struct ps_parameter_set *set, const struct ps_parameter *parameter) {
  size_t last = set->slot_count - 1;
  size_t at = hash(parameter) & last;
  for (; set->slots[at] != NULL; at = (at + 1) & last) {
    if (is_same(set->slots[at], parameter)) return false;
  }
  set->slots[at] = parameter;
  return true;
}

void ps_parameter_set_release(struct ps_parameter_set *set) { free(set->slots); }
