/* Checks arguments for what libpserver cannot check, and makes tensors of them. */
#include "tensor.h"

#include <inttypes.h>

#include "failures.h"
#include "lengths.h"

bool ps_check_list(const char *function, const void *list, int total) {
  if (total <= 0) {
    ps_refuse(function, PSERVER_ERR_EMPTY, "expected at least one parameter; received %d", total);
    return false;
  }
  if (list != NULL) return true;
  ps_refuse(function, PSERVER_ERR_BAD_VALUE, "expected %d parameters; received NULL", total);
  return false;
}

bool ps_check_name(const char *function, const char *name) {
  if (name != NULL) return true;
  ps_refuse(function, PSERVER_ERR_BAD_NAME, "expected a name; received NULL");
  return false;
}

bool ps_tensor_of(const char *function, const struct ps_values *values, pserver_tensor *tensor) {
  if (!ps_check_name(function, values->name)) return false;
  uint64_t element = ps_element_bytes(values->element_type);
  if (element == 0) {
    ps_refuse(function, PSERVER_ERR_BAD_DTYPE, "\"%s\": expected an element type; received %d",
              values->name, values->element_type);
    return false;
  }
  if (values->content == NULL) {
    ps_refuse(function, PSERVER_ERR_BAD_VALUE, "\"%s\": expected content; received NULL", values->name);
    return false;
  }
  if (values->length <= 0 || (uint64_t)values->length % element != 0) {
    ps_refuse(function, PSERVER_ERR_BAD_LENGTH,
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
