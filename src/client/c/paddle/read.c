/* Reads parameters into memory of the caller, or into allocated memory. */
#include "read.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "failures.h"
#include "initialize.h"
#include "tensor.h"

void ps_free_content(void *content) {
  pserver_tensor tensor = {.data = content};
  pserver_tensor_release(&tensor);
}

/** Whether a parameter of so many bytes fits its target, and an int; false with an error. */
static bool check_fit(const char *function, const struct ps_target *target, uint64_t bytes) {
  if (bytes > INT_MAX) {
    ps_refuse(function, PSERVER_ERR_TOO_LARGE,
              "\"%s\": expected at most %d bytes, the maximum of an int; it has %" PRIu64, target->name,
              INT_MAX, bytes);
    return false;
  }
  if (target->content == NULL || target->capacity == (int64_t)bytes) return true;
  if (target->may_exceed && target->capacity > (int64_t)bytes) return true;
  ps_refuse(function, PSERVER_ERR_BAD_LENGTH,
            "\"%s\": expected memory of %" PRIu64 " bytes; received %" PRId64, target->name, bytes,
            target->capacity);
  return false;
}

/** Prepares the tensor to read into: the target if the length is known, otherwise new memory. False with an
 * error. */
static bool aim(const char *function, struct ps_trainer *trainer, const struct ps_target *target,
                pserver_tensor *tensor) {
  struct ps_length length;
  if (!ps_check_name(function, target->name)) return false;
  *tensor = (pserver_tensor){0};
  if (target->content == NULL || !ps_lengths_find(&trainer->lengths, target->name, &length)) return true;
  uint64_t bytes = length.elements * ps_element_bytes((int)length.dtype);
  if (!check_fit(function, target, bytes)) return false;
  tensor->dtype = length.dtype;
  tensor->data = target->content;
  tensor->bytes = bytes;
  return true;
}

/** Moves the values that were read to the target. */
static void deliver(struct ps_trainer *trainer, struct ps_target *target, pserver_tensor *tensor) {
  struct ps_length length = {tensor->dtype, tensor->bytes / ps_element_bytes((int)tensor->dtype)};
  /* Without memory the length is only not remembered. */
  ps_lengths_note(&trainer->lengths, target->name, length);
  target->element_type = (int)tensor->dtype;
  target->length = (int)tensor->bytes;
  if (target->content == NULL) {
    target->content = tensor->data;
  } else if (target->content != tensor->data) {
    memcpy(target->content, tensor->data, tensor->bytes);
    pserver_tensor_release(tensor);
  }
}

static void drop(const struct ps_target *targets, pserver_tensor *tensors, int total) {
  for (int i = 0; i < total; i++) {
    if (tensors[i].data != targets[i].content) pserver_tensor_release(&tensors[i]);
  }
}

static int read_tensors(const char *function, struct ps_trainer *trainer, struct ps_target *targets,
                        const char **names, pserver_tensor *tensors, int total) {
  for (int i = 0; i < total; i++) {
    names[i] = targets[i].name;
    if (!aim(function, trainer, &targets[i], &tensors[i])) return -1;
  }
  if (ps_await_ready(function, trainer) != 0) return -1;
  int64_t timeout_ms = trainer->is_ready ? ps_calling_ms(trainer) : ps_waiting_ms(trainer);
  pserver_status status =
      pserver_get(trainer->core, names, tensors, (size_t)total, PSERVER_AS_IS, timeout_ms);
  if (status != PSERVER_OK) return ps_refuse_as_core(function);
  trainer->is_ready = true;
  for (int i = 0; i < total; i++) {
    if (check_fit(function, &targets[i], tensors[i].bytes)) continue;
    drop(targets, tensors, total);
    return -1;
  }
  for (int i = 0; i < total; i++) deliver(trainer, &targets[i], &tensors[i]);
  return 0;
}

int ps_read_values(const char *function, struct ps_trainer *trainer, struct ps_target *targets, int total) {
  const char **names = calloc((size_t)total, sizeof *names);
  pserver_tensor *tensors = calloc((size_t)total, sizeof *tensors);
  int result = names == NULL || tensors == NULL
                   ? ps_refuse(function, PSERVER_ERR_INTERNAL, "no memory for %d parameters", total)
                   : read_tensors(function, trainer, targets, names, tensors, total);
  free(names);
  free(tensors);
  return result;
}

/** Notes the lengths of the job's parameters; false with an error. */
static bool learn_lengths(const char *function, struct ps_trainer *trainer) {
  pserver_parameter_info *list;
  size_t count;
  if (pserver_list(trainer->core, &list, &count, ps_calling_ms(trainer)) != PSERVER_OK) {
    ps_refuse_as_core(function);
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    struct ps_length length = {list[i].dtype, list[i].elements};
    if (list[i].ready) ps_lengths_note(&trainer->lengths, list[i].name, length);
  }
  pserver_list_release(list, count);
  return true;
}

bool ps_look_up_length(const char *function, struct ps_trainer *trainer, const char *name,
                       struct ps_length *length) {
  if (!ps_check_name(function, name)) return false;
  if (ps_lengths_find(&trainer->lengths, name, length)) return true;
  if (!learn_lengths(function, trainer)) return false;
  if (ps_lengths_find(&trainer->lengths, name, length)) return true;
  ps_refuse(function, PSERVER_ERR_UNKNOWN_PARAMETER,
            "\"%s\": its length is not known: the job has no such parameter yet, so declare it first, "
            "paddle_declare_param(client, \"%s\", element_type, num_elements)",
            name, name);
  return false;
}
