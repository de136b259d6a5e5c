/* Norms of gradients. */
#include "push/norm.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "wire/encodings.h"

/** Independent sums, so that additions do not wait for each other. */
#define SUMS 8
/** Elements that are encoded at one time. */
#define CHUNK_ELEMENTS 4096

static double sum_squares_f32(const uint8_t *data, uint64_t elements) {
  double sums[SUMS] = {0};
  float block[SUMS];
  uint64_t i = 0;
  for (; i + SUMS <= elements; i += SUMS) {
    memcpy(block, data + i * sizeof(float), sizeof block);
    for (int k = 0; k < SUMS; k++) sums[k] += (double)block[k] * (double)block[k];
  }
  for (; i < elements; i++) {
    memcpy(block, data + i * sizeof(float), sizeof(float));
    sums[0] += (double)block[0] * (double)block[0];
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

static double sum_squares_f64(const uint8_t *data, uint64_t elements, double factor) {
  double sums[SUMS] = {0};
  double block[SUMS];
  uint64_t i = 0;
  for (; i + SUMS <= elements; i += SUMS) {
    memcpy(block, data + i * sizeof(double), sizeof block);
    for (int k = 0; k < SUMS; k++) {
      double value = block[k] * factor;
      sums[k] += value * value;
    }
  }
  for (; i < elements; i++) {
    memcpy(block, data + i * sizeof(double), sizeof(double));
    sums[0] += block[0] * factor * (block[0] * factor);
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

static double norm_f64(const uint8_t *data, uint64_t elements) {
  double plain = sqrt(sum_squares_f64(data, elements, 1));
  if (isfinite(plain)) return plain;
  /* Squares of large values have overflowed: scale by the largest element. */
  double largest = 0;
  for (uint64_t i = 0; i < elements; i++) {
    double value;
    memcpy(&value, data + i * sizeof value, sizeof value);
    if (!isfinite(value)) return value * value;
    largest = fmax(largest, fabs(value));
  }
  return fmin(largest * sqrt(sum_squares_f64(data, elements, 1 / largest)), DBL_MAX);
}

static double norm_encoded(pserver_encoding encoding, const uint8_t *data, uint64_t elements) {
  uint8_t halves[CHUNK_ELEMENTS * 2];
  uint8_t floats[CHUNK_ELEMENTS * sizeof(float)];
  double sum = 0;
  for (uint64_t start = 0; start < elements; start += CHUNK_ELEMENTS) {
    size_t n = elements - start < CHUNK_ELEMENTS ? (size_t)(elements - start) : CHUNK_ELEMENTS;
    ps_encode_elements(encoding, data + start * sizeof(float), n, halves);
    ps_decode_elements(encoding, halves, n, floats);
    sum += sum_squares_f32(floats, n);
  }
  return sqrt(sum);
}

double ps_l2_norm(pserver_dtype dtype, pserver_encoding encoding, const void *data, uint64_t elements) {
  if (dtype == PSERVER_FLOAT64) return norm_f64(data, elements);
  if (dtype != PSERVER_FLOAT32) return 0;
  if (encoding != PSERVER_AS_IS) return norm_encoded(encoding, data, elements);
  return sqrt(sum_squares_f32(data, elements));
}
