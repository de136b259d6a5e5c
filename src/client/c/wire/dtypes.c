/* Element types and encodings. */
#include "wire/dtypes.h"

#include <string.h>

static const struct {
  const char *name;
  size_t bytes;
} types[] = {{"int32", 4}, {"uint32", 4}, {"int64", 8}, {"uint64", 8}, {"float32", 4}, {"float64", 8}};

#define TYPES (sizeof types / sizeof types[0])

size_t ps_dtype_bytes(pserver_dtype dtype) {
  return (size_t)dtype < TYPES ? types[(size_t)dtype].bytes : 0;
}

const char *ps_dtype_name(pserver_dtype dtype) {
  return (size_t)dtype < TYPES ? types[(size_t)dtype].name : NULL;
}

bool ps_dtype_from_name(const char *name, size_t bytes, pserver_dtype *dtype) {
  for (size_t i = 0; i < TYPES; i++) {
    if (strlen(types[i].name) != bytes || memcmp(types[i].name, name, bytes) != 0) continue;
    *dtype = (pserver_dtype)i;
    return true;
  }
  return false;
}

bool ps_dtype_is_float(pserver_dtype dtype) {
  return dtype == PSERVER_FLOAT32 || dtype == PSERVER_FLOAT64;
}

const char *ps_encoding_name(pserver_encoding encoding) {
  if (encoding == PSERVER_BFLOAT16) return "bfloat16";
  return encoding == PSERVER_FLOAT16 ? "float16" : NULL;
}

size_t ps_encoded_bytes(pserver_dtype dtype, pserver_encoding encoding) {
  return encoding == PSERVER_AS_IS ? ps_dtype_bytes(dtype) : 2;
}

uint64_t ps_element_count(const uint64_t *shape, int32_t rank) {
  if (rank < 0 || rank > PSERVER_RANK_MAX) return 0;
  uint64_t elements = 1;
  for (int32_t axis = 0; axis < rank; axis++) {
    if (shape[axis] == 0 || shape[axis] >= (UINT64_C(1) << 53) / elements) return 0;
    elements *= shape[axis];
  }
  return elements;
}
