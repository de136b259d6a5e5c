#ifndef PADDLE_TENSOR_H
#define PADDLE_TENSOR_H

#include <pserver.h>
#include <stdbool.h>

/** Values of a parameter, as an argument. */
struct ps_values {
  const char *name;
  int element_type;
  const void *content;
  /** In bytes. */
  int64_t length;
};

/** Makes a tensor of one dimension of the values. False with an error if they are invalid. */
bool ps_tensor_of(const char *function, const struct ps_values *values, pserver_tensor *tensor);

/** Whether a list has entries; false with an error. */
bool ps_check_list(const char *function, const void *list, int total);

/** Whether the name is not NULL; false with an error. */
bool ps_check_name(const char *function, const char *name);

#endif
