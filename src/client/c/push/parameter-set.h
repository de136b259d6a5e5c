#ifndef PUSH_PARAMETER_SET_H
#define PUSH_PARAMETER_SET_H

#include "calls/parameter.h"

/** A set of parameters, compared by name. All zeros: without memory. */
struct ps_parameter_set {
  const struct ps_parameter **slots;
  size_t slot_count;
};

/** Makes an empty set for so many parameters; false if there is no memory. Release it also then. */
bool ps_parameter_set_init(struct ps_parameter_set *set, size_t count);

/** Adds a parameter, which must outlive the set; false if the set has one of its name already. */
bool ps_parameter_set_add(struct ps_parameter_set *set, const struct ps_parameter *parameter);

void ps_parameter_set_release(struct ps_parameter_set *set);

#endif
