/* Whether elements are finite. */
#include "push/finite.h"

#include <math.h>
#include <string.h>

/** Elements that are checked in parallel. */
#define LANES 32
/** Elements after which the result so far is checked. */
#define RUN_ELEMENTS 4096

/** Returns the least float32 without sign, as bits, that is infinite or NaN once encoded. */
static int32_t bound_of(pserver_encoding encoding) {
  if (encoding == PSERVER_BFLOAT16) return 0x7f7f8000; /* 2^128 - 2^119 */
  if (encoding == PSERVER_FLOAT16) return 0x477ff000;  /* 65520 */
  return 0x7f800000;
}

static int32_t size_f32(const uint8_t *data) {
  int32_t bits;
  memcpy(&bits, data, sizeof bits);
  return bits & 0x7fffffff;
}

static bool is_finite_f64(const uint8_t *data) {
  double value;
  memcpy(&value, data, sizeof value);
  return isfinite(value);
}

/**
 * Whether all elements are below the bound. Without signs, floats have the same order as their bits, and
 * NaNs are above infinity. So `bound - 1 - bits` is negative exactly if an element is not below the bound.
 */
static bool all_below(const uint8_t *data, uint64_t elements, int32_t bound) {
  int32_t words[LANES];
  int32_t left[LANES] = {0};
  uint64_t i = 0;
  for (; i + LANES <= elements; i += LANES) {
    memcpy(words, data + i * sizeof *words, sizeof words);
    for (int k = 0; k < LANES; k++) left[k] |= bound - 1 - (words[k] & 0x7fffffff);
  }
  int32_t any = 0;
  for (int k = 0; k < LANES; k++) any |= left[k];
  for (; i < elements; i++) any |= bound - 1 - size_f32(data + i * sizeof *words);
  return any >= 0;
}

static bool all_finite_f64(const uint8_t *data, uint64_t elements) {
  bool all = true;
  for (uint64_t i = 0; i < elements; i++) all &= is_finite_f64(data + i * sizeof(double));
  return all;
}

bool ps_stays_finite(pserver_dtype dtype, pserver_encoding encoding, const void *data,
                     uint64_t elements) {
  const uint8_t *bytes = data;
  if (dtype != PSERVER_FLOAT32 && dtype != PSERVER_FLOAT64) return true;
  size_t element_bytes = dtype == PSERVER_FLOAT32 ? sizeof(float) : sizeof(double);
  for (uint64_t start = 0; start < elements; start += RUN_ELEMENTS) {
    uint64_t n = elements - start < RUN_ELEMENTS ? elements - start : RUN_ELEMENTS;
    const uint8_t *run = bytes + start * element_bytes;
    bool all = dtype == PSERVER_FLOAT32 ? all_below(run, n, bound_of(encoding)) : all_finite_f64(run, n);
    if (!all) return false;
  }
  return true;
}

double ps_first_non_finite(pserver_dtype dtype, pserver_encoding encoding, const void *data,
                           uint64_t *index) {
  const uint8_t *bytes = data;
  if (dtype == PSERVER_FLOAT64) {
    double value;
    for (*index = 0; is_finite_f64(bytes); (*index)++) bytes += sizeof value;
    memcpy(&value, bytes, sizeof value);
    return value;
  }
  float value;
  for (*index = 0; size_f32(bytes) < bound_of(encoding); (*index)++) bytes += sizeof value;
  memcpy(&value, bytes, sizeof value);
  return (double)value;
}
