#ifndef PADDLE_TENSOR_H
#define PADDLE_TENSOR_H

#include <pserver.h>
#include <stdbool.h>

/** Values as trainers pass them in. */
struct ps_values {
  const char *name;
  int element_type;
  const void *content;
  /** In bytes. */
  int64_t length;
};

/** The tensor of values, of one dimension. False with a message if it cannot be one. */
bool ps_tensor_of(const char *function, const struct ps_values *values, pserver_tensor *tensor);

/** Whether a list holds something; false with a message. */
bool ps_check_list(const char *function, const void *list, int total);

/** Whether there is a name; false with a message. */
bool ps_check_name(const char *function, const char *name);

#endif
