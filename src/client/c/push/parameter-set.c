/* Sets of parameters, in a hash table that is at most half full. */
#include "push/parameter-set.h"

#include <stdlib.h>

bool ps_parameter_set_init(struct ps_parameter_set *set, size_t count) {
  size_t slots = 2;
  while (slots < 2 * count) slots *= 2;
  *set = (struct ps_parameter_set){.slots = calloc(slots, sizeof(struct ps_parameter *)),
                                   .slot_count = slots};
  return set->slots != NULL;
}

bool ps_parameter_set_add(struct ps_parameter_set *set, const struct ps_parameter *parameter) {
  size_t last = set->slot_count - 1;
  size_t at = ps_name_hash(parameter->name, parameter->name_bytes) & last;
  for (; set->slots[at] != NULL; at = (at + 1) & last) {
    if (ps_has_name(set->slots[at], parameter->name, parameter->name_bytes)) return false;
  }
  set->slots[at] = parameter;
  return true;
}

void ps_parameter_set_release(struct ps_parameter_set *set) { free(set->slots); }
