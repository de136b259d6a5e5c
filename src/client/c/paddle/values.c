#include "paddle.h"

#include <inttypes.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Values of parameters as PaddlePaddle's functions take and return them. */

/* The lengths of parameters, by name. */

struct known {
  struct ps_length length;
  const char *name;
  /** Memory of `name`, except in keys that are only looked up. */
  char text[];
};

static int compare(const void *left, const void *right) {
  return strcmp(((const struct known *)left)->name, ((const struct known *)right)->name);
}

bool ps_lengths_init(struct ps_lengths *lengths) {
  lengths->root = NULL;
  return pthread_mutex_init(&lengths->lock, NULL) == 0;
}

void ps_lengths_release(struct ps_lengths *lengths) {
  tdestroy(lengths->root, free);
  pthread_mutex_destroy(&lengths->lock);
}

/** Finds the length of a parameter; false if it is not known. */
static bool lengths_find(struct ps_lengths *lengths, const char *name, struct ps_length *found) {
  struct known key = {.name = name};
  pthread_mutex_lock(&lengths->lock);
  struct known **node = tfind(&key, &lengths->root, compare);
  if (node != NULL) *found = (*node)->length;
  pthread_mutex_unlock(&lengths->lock);
  return node != NULL;
}

static struct known *make_known(const char *name) {
  size_t bytes = strlen(name) + 1;
  struct known *entry = malloc(sizeof *entry + bytes);
  if (entry == NULL) return NULL;
  memcpy(entry->text, name, bytes);
  entry->name = entry->text;
  return entry;
}

bool ps_lengths_note(struct ps_lengths *lengths, const char *name, struct ps_length length) {
  struct known *entry = make_known(name);
  if (entry == NULL) return false;
  pthread_mutex_lock(&lengths->lock);
  struct known **node = tsearch(entry, &lengths->root, compare);
  if (node != NULL) (*node)->length = length;
  bool is_known_before = node != NULL && *node != entry;
  pthread_mutex_unlock(&lengths->lock);
  if (node == NULL || is_known_before) free(entry);
  return node != NULL;
}

uint64_t ps_element_bytes(int element_type) {
  switch (element_type) {
    case PSERVER_INT32:
    case PSERVER_UINT32:
    case PSERVER_FLOAT32:
      return 4;
    case PSERVER_INT64:
    case PSERVER_UINT64:
    case PSERVER_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

/* Checks arguments for what libpserver cannot check, and makes tensors of them. */

bool ps_check_list(const void *list, int total) {
  if (total <= 0) {
    ps_report(PSERVER_ERR_EMPTY, "expected at least one parameter; received %d", total);
    return false;
  }
  if (list != NULL) return true;
  ps_report(PSERVER_ERR_BAD_VALUE, "expected %d parameters; received NULL", total);
  return false;
}

bool ps_check_name(const char *name) {
  if (name != NULL) return true;
  ps_report(PSERVER_ERR_BAD_NAME, "expected a name; received NULL");
  return false;
}

bool ps_tensor_of(const struct ps_values *values, pserver_tensor *tensor) {
  if (!ps_check_name(values->name)) return false;
  uint64_t element = ps_element_bytes(values->element_type);
  if (element == 0) {
    ps_report(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected an element type; received %d", values->name,
              values->element_type);
    return false;
  }
  if (values->content == NULL) {
    ps_report(PSERVER_ERR_BAD_VALUE, "\"%s\": expected content; received NULL", values->name);
    return false;
  }
  if (values->length <= 0 || (uint64_t)values->length % element != 0) {
    ps_report(PSERVER_ERR_BAD_LENGTH,
              "\"%s\": expected elements of %" PRIu64 " bytes; received %" PRId64 " bytes", values->name,
              element, values->length);
    return false;
  }
  *tensor = (pserver_tensor){.dtype = (pserver_dtype)values->element_type,
                             .rank = 1,
                             .shape = {(uint64_t)values->length / element},
                             /* libpserver only reads it. */
                             .data = (void *)(uintptr_t)values->content,
                             .bytes = (uint64_t)values->length};
  return true;
}

/* Reads parameters into memory of the caller, or into allocated memory. */

void ps_free_content(void *content) {
  pserver_tensor tensor = {.data = content};
  pserver_tensor_release(&tensor);
}

/** Whether a parameter of so many bytes fits its target, and an int; false with an error. */
static bool check_fit(const struct ps_target *target, uint64_t bytes) {
  if (bytes > INT_MAX) {
    ps_report(PSERVER_ERR_TOO_LARGE,
              "\"%s\": expected at most %d bytes, the maximum of an int; it has %" PRIu64, target->name,
              INT_MAX, bytes);
    return false;
  }
  if (target->content == NULL || target->capacity == (int64_t)bytes) return true;
  if (target->may_exceed && target->capacity > (int64_t)bytes) return true;
  ps_report(PSERVER_ERR_BAD_LENGTH, "\"%s\": expected memory of %" PRIu64 " bytes; received %" PRId64,
            target->name, bytes, target->capacity);
  return false;
}

/** Whether PaddlePaddle has the type of a parameter; false with an error. */
static bool check_type(const char *name, pserver_dtype dtype) {
  if (ps_element_bytes((int)dtype) != 0) return true;
  ps_report(PSERVER_ERR_BAD_DTYPE,
            "\"%s\": expected one of the element types 0 to 5 that PaddlePaddle has; it has type %d", name,
            (int)dtype);
  return false;
}

/**
 * Prepares the tensor to read into: the target if the length is known, else new memory. False with an error.
 */
static bool aim(struct ps_trainer *trainer, const struct ps_target *target, pserver_tensor *tensor) {
  struct ps_length length;
  if (!ps_check_name(target->name)) return false;
  *tensor = (pserver_tensor){0};
  if (target->content == NULL || !lengths_find(&trainer->lengths, target->name, &length)) return true;
  uint64_t bytes = length.elements * ps_element_bytes((int)length.dtype);
  if (!check_type(target->name, length.dtype) || !check_fit(target, bytes)) return false;
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

static int read_tensors(struct ps_trainer *trainer, struct ps_target *targets, const char **names,
                        pserver_tensor *tensors, int total) {
  for (int i = 0; i < total; i++) {
    names[i] = targets[i].name;
    if (!aim(trainer, &targets[i], &tensors[i])) return -1;
  }
  if (ps_await_ready(trainer) != 0) return -1;
  int64_t timeout_ms = trainer->is_ready ? ps_calling_ms(trainer) : ps_waiting_ms(trainer);
  pserver_status status =
      pserver_get(trainer->core, names, tensors, (size_t)total, PSERVER_AS_IS, timeout_ms);
  if (status != PSERVER_OK) return ps_report_core();
  trainer->is_ready = true;
  for (int i = 0; i < total; i++) {
    if (check_type(targets[i].name, tensors[i].dtype) && check_fit(&targets[i], tensors[i].bytes)) continue;
    drop(targets, tensors, total);
    return -1;
  }
  for (int i = 0; i < total; i++) deliver(trainer, &targets[i], &tensors[i]);
  return 0;
}

int ps_read_values(struct ps_trainer *trainer, struct ps_target *targets, int total) {
  const char **names = calloc((size_t)total, sizeof *names);
  pserver_tensor *tensors = calloc((size_t)total, sizeof *tensors);
  int result = names == NULL || tensors == NULL
                   ? ps_report(PSERVER_ERR_INTERNAL, "no memory for %d parameters", total)
                   : read_tensors(trainer, targets, names, tensors, total);
  free(names);
  free(tensors);
  return result;
}

/** Notes the lengths of the job's parameters; false with an error. */
static bool learn_lengths(struct ps_trainer *trainer) {
  pserver_parameter_info *list;
  size_t count;
  if (pserver_list(trainer->core, &list, &count, ps_calling_ms(trainer)) != PSERVER_OK) {
    ps_report_core();
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    struct ps_length length = {list[i].dtype, list[i].elements};
    if (list[i].ready) ps_lengths_note(&trainer->lengths, list[i].name, length);
  }
  pserver_list_release(list, count);
  return true;
}

bool ps_look_up_length(struct ps_trainer *trainer, const char *name, struct ps_length *length) {
  if (!ps_check_name(name)) return false;
  if (lengths_find(&trainer->lengths, name, length)) return true;
  if (!learn_lengths(trainer)) return false;
  if (lengths_find(&trainer->lengths, name, length)) return true;
  ps_report(PSERVER_ERR_UNKNOWN_PARAMETER,
            "\"%s\": its length is not known: the job has no such parameter yet, so declare it first, "
            "paddle_declare_param(client, \"%s\", element_type, num_elements)",
            name, name);
  return false;
}
