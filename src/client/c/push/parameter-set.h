#ifndef PUSH_PARAMETER_SET_H
#define PUSH_PARAMETER_SET_H

#include "calls/parameter.h"

/** The parameters, by name, that a call has come across. All zeros: none, and no room. */
struct ps_parameter_set {
  const struct ps_parameter **slots;
  size_t slot_count;
};

/** An empty set with room for so many; false if there is no memory. Released also then. */
bool ps_parameter_set_init(struct ps_parameter_set *set, size_t count);

/** Adds a parameter; false if one of its name was in the set. It must stay as long as the set. */
bool ps_parameter_set_add(struct ps_parameter_set *set, const struct ps_parameter *parameter);

void ps_parameter_set_release(struct ps_parameter_set *set);

#endif
