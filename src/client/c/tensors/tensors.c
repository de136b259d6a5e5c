#include "tensors/tensors.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Checks of callers' tensors. */

/* Whether elements are finite. */

/** Elements that are checked in parallel. */
#define LANES 32
/** Elements after which the result so far is checked. */
#define RUN_ELEMENTS 4096

/** Returns the least float32 without sign, as bits, that is infinite or NaN once encoded. */
static int32_t bound_of(pserver_encoding encoding) {
  if (encoding == PSERVER_ENCODING_BFLOAT16) return 0x7f7f8000; /* 2^128 - 2^119 */
  if (encoding == PSERVER_ENCODING_FLOAT16) return 0x477ff000;  /* 65520 */
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

/** Whether all half floats are below the bits of infinity, without their signs. */
static bool all_finite_halves(pserver_dtype dtype, const uint8_t *data, uint64_t elements) {
  uint16_t infinity = dtype == PSERVER_FLOAT16 ? 0x7c00 : 0x7f80;
  bool all = true;
  for (uint64_t i = 0; i < elements; i++) {
    uint16_t bits;
    memcpy(&bits, data + i * sizeof bits, sizeof bits);
    all &= (bits & 0x7fff) < infinity;
  }
  return all;
}

static bool all_finite(pserver_dtype dtype, pserver_encoding encoding, const uint8_t *data,
                       uint64_t elements) {
  if (dtype == PSERVER_FLOAT32) return all_below(data, elements, bound_of(encoding));
  if (dtype == PSERVER_FLOAT64) return all_finite_f64(data, elements);
  return all_finite_halves(dtype, data, elements);
}

/** Whether elements, at any alignment, are finite, also in this encoding. Integers are. */
static bool stays_finite(pserver_dtype dtype, pserver_encoding encoding, const void *data,
                         uint64_t elements) {
  const uint8_t *bytes = data;
  if (!ps_dtype_is_float(dtype)) return true;
  size_t element_bytes = ps_dtype_bytes(dtype);
  for (uint64_t start = 0; start < elements; start += RUN_ELEMENTS) {
    uint64_t n = elements - start < RUN_ELEMENTS ? elements - start : RUN_ELEMENTS;
    const uint8_t *run = bytes + start * element_bytes;
    if (!all_finite(dtype, encoding, run, n)) return false;
  }
  return true;
}

/** Returns the first element that is not finite, and its index; there must be one. */
static double first_non_finite(pserver_dtype dtype, pserver_encoding encoding, const void *data,
                               uint64_t *index) {
  const uint8_t *bytes = data;
  if (dtype == PSERVER_FLOAT64) {
    double value;
    for (*index = 0; is_finite_f64(bytes); (*index)++) bytes += sizeof value;
    memcpy(&value, bytes, sizeof value);
    return value;
  }
  float value;
  pserver_encoding half = ps_half_form(dtype);
  if (half != PSERVER_AS_IS) {
    for (*index = 0; all_finite_halves(dtype, bytes, 1); (*index)++) bytes += ps_dtype_bytes(dtype);
    ps_decode_halves(half, bytes, 1, &value);
    return (double)value;
  }
  for (*index = 0; size_f32(bytes) < bound_of(encoding); (*index)++) bytes += sizeof value;
  memcpy(&value, bytes, sizeof value);
  return (double)value;
}

/* Norms of gradients. */

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

static double norm_of_halves(pserver_encoding encoding, const uint8_t *data, uint64_t elements) {
  uint8_t halves[CHUNK_ELEMENTS * 2];
  uint8_t floats[CHUNK_ELEMENTS * sizeof(float)];
  double sum = 0;
  for (uint64_t start = 0; start < elements; start += CHUNK_ELEMENTS) {
    size_t n = elements - start < CHUNK_ELEMENTS ? (size_t)(elements - start) : CHUNK_ELEMENTS;
    ps_encode_halves(encoding, data + start * sizeof(float), n, halves);
    ps_decode_halves(encoding, halves, n, floats);
    sum += sum_squares_f32(floats, n);
  }
  return sqrt(sum);
}

static double norm_halves(pserver_encoding form, const uint8_t *data, uint64_t elements) {
  uint8_t floats[CHUNK_ELEMENTS * sizeof(float)];
  double sum = 0;
  for (uint64_t start = 0; start < elements; start += CHUNK_ELEMENTS) {
    size_t n = elements - start < CHUNK_ELEMENTS ? (size_t)(elements - start) : CHUNK_ELEMENTS;
    ps_decode_halves(form, data + start * 2, n, floats);
    sum += sum_squares_f32(floats, n);
  }
  return sqrt(sum);
}

double ps_l2_norm(pserver_dtype dtype, pserver_encoding encoding, const void *data, uint64_t elements) {
  if (dtype == PSERVER_FLOAT64) return norm_f64(data, elements);
  pserver_encoding half = ps_half_form(dtype);
  if (half != PSERVER_AS_IS) return norm_halves(half, data, elements);
  if (dtype != PSERVER_FLOAT32) return 0;
  if (encoding != PSERVER_AS_IS) return norm_of_halves(encoding, data, elements);
  return sqrt(sum_squares_f32(data, elements));
}

/* Checks of callers' tensors. */

pserver_status ps_fail_length(const char *name, uint64_t expected, uint64_t received) {
  ps_fail(PSERVER_ERR_BAD_LENGTH, "\"%s\": expected %" PRIu64 " bytes; received %" PRIu64, name, expected,
          received);
  ps_detail_text("parameter", name);
  return ps_detail_numbers(expected, received);
}

pserver_status ps_check_tensor(const char *name, const pserver_tensor *tensor) {
  if (name == NULL) return ps_fail(PSERVER_ERR_BAD_NAME, "expected a name; received NULL");
  if (tensor == NULL)
    return ps_fail(PSERVER_ERR_BAD_VALUE, "\"%s\": expected a tensor; received NULL", name);
  if (ps_dtype_name(tensor->dtype) == NULL) {
    ps_fail(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected an element type; received %d", name,
            (int)tensor->dtype);
    ps_detail_text("parameter", name);
    ps_detail_text("expected", "an element type");
    return ps_detail_signed("received", (int)tensor->dtype);
  }
  if (tensor->data == NULL && tensor->bytes > 0) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "\"%s\": expected data; received NULL", name);
  }
  if (tensor->rank == PSERVER_RANK_OF_PARAMETER) return PSERVER_OK;
  if (tensor->rank < 0 || tensor->rank > PSERVER_RANK_MAX) {
    ps_fail(PSERVER_ERR_BAD_SHAPE, "\"%s\": expected at most %d dimensions; received %d", name,
            PSERVER_RANK_MAX, (int)tensor->rank);
    ps_detail_text("parameter", name);
    ps_detail_text("expected", "at most 32 dimensions");
    return ps_detail_signed("received", tensor->rank);
  }
  return PSERVER_OK;
}

static bool has_shape(const pserver_tensor *tensor, const uint64_t *shape, int32_t rank) {
  if (tensor->rank == PSERVER_RANK_OF_PARAMETER) return true;
  if (tensor->rank != rank) return false;
  for (int32_t axis = 0; axis < rank; axis++) {
    if (tensor->shape[axis] != shape[axis]) return false;
  }
  return true;
}

/** Bytes of the text of a shape; a longer one is cut. */
enum { SHAPE_TEXT_BYTES = 128 };

/** Writes the sizes, separated by commas; a long text is cut and ends with three dots. */
static void write_shape(char text[SHAPE_TEXT_BYTES], const uint64_t *shape, int32_t rank) {
  static const char cut[] = "...";
  size_t used = 0;
  text[0] = '\0';
  for (int32_t axis = 0; axis < rank; axis++) {
    size_t left = SHAPE_TEXT_BYTES - sizeof cut - used;
    int size = snprintf(text + used, left, "%s%" PRIu64, axis > 0 ? "," : "", shape[axis]);
    if (size < 0 || (size_t)size >= left) {
      memcpy(text + used, cut, sizeof cut);
      return;
    }
    used += (size_t)size;
  }
}

pserver_status ps_fail_shape(const char *name, const char *expected, const pserver_tensor *received) {
  char received_shape[SHAPE_TEXT_BYTES];
  write_shape(received_shape, received->shape, received->rank);
  ps_fail(PSERVER_ERR_BAD_SHAPE, "\"%s\": shape: expected %s; received [%s]", name, expected,
          received_shape);
  ps_detail_text("parameter", name);
  ps_detail_text("expected", expected);
  return ps_detail_shape("received", received->shape, received->rank);
}

pserver_status ps_fit_tensor(const struct ps_parameter *parameter, const pserver_tensor *tensor,
                             const uint64_t *shape, int32_t rank, uint64_t elements) {
  pserver_status status = ps_check_tensor(parameter->name, tensor);
  if (status != PSERVER_OK) return status;
  if (tensor->dtype != parameter->dtype) {
    ps_fail(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected %s; received %s", parameter->name,
            ps_dtype_name(parameter->dtype), ps_dtype_name(tensor->dtype));
    return ps_detail_mismatch(parameter->name, ps_dtype_name(parameter->dtype),
                              ps_dtype_name(tensor->dtype));
  }
  if (!has_shape(tensor, shape, rank)) {
    char expected_shape[SHAPE_TEXT_BYTES];
    char received_shape[SHAPE_TEXT_BYTES];
    write_shape(expected_shape, shape, rank);
    write_shape(received_shape, tensor->shape, tensor->rank);
    ps_fail(PSERVER_ERR_BAD_SHAPE, "\"%s\": expected shape [%s]; received [%s]", parameter->name,
            expected_shape, received_shape);
    ps_detail_text("parameter", parameter->name);
    ps_detail_shape("expected", shape, rank);
    return ps_detail_shape("received", tensor->shape, tensor->rank);
  }
  uint64_t expected = elements * ps_dtype_bytes(parameter->dtype);
  if (tensor->bytes != expected) return ps_fail_length(parameter->name, expected, tensor->bytes);
  return ps_check_bools(parameter->name, tensor);
}

pserver_status ps_check_bools(const char *name, const pserver_tensor *tensor) {
  if (tensor->dtype != PSERVER_BOOL) return PSERVER_OK;
  const uint8_t *data = tensor->data;
  for (uint64_t i = 0; i < tensor->bytes; i++) {
    if (data[i] <= 1) continue;
    ps_fail(PSERVER_ERR_BAD_VALUE, "\"%s\": expected bools as 0 and 1; received %d as element %" PRIu64,
            name, data[i], i);
    ps_detail_text("parameter", name);
    ps_detail_text("expected", "0 or 1");
    ps_detail_whole("received", data[i]);
    return ps_detail_whole("index", i);
  }
  return PSERVER_OK;
}

static pserver_status bad_encoding(const char *what, pserver_encoding encoding) {
  ps_fail(PSERVER_ERR_BAD_VALUE,
          "%s: encoding: expected bfloat16, float16, int8 or e3m0, or none; received %d", what, (int)encoding);
  ps_detail_json("expected", "[\"bfloat16\",\"float16\",\"int8\",\"e3m0\"]");
  return ps_detail_signed("received", (int)encoding);
}

pserver_status ps_check_options(const char *what, size_t expected, size_t received, const char *init,
                                pserver_encoding encoding) {
  pserver_status status = ps_check_struct_size(what, expected, received, init);
  bool is_known = encoding == PSERVER_AS_IS || ps_encoding_name(encoding) != NULL;
  return status != PSERVER_OK || is_known ? status : bad_encoding(what, encoding);
}

pserver_status ps_check_encoding(const struct ps_parameter *parameter, pserver_encoding encoding) {
  if (encoding == PSERVER_AS_IS) return PSERVER_OK;
  if (ps_encoding_name(encoding) == NULL) {
    return bad_encoding(parameter->name, encoding);
  }
  if (parameter->dtype == PSERVER_FLOAT32) return PSERVER_OK;
  ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": encoding: %s is for float32 elements; it is %s",
          parameter->name, ps_encoding_name(encoding), ps_dtype_name(parameter->dtype));
  return ps_detail_mismatch(parameter->name, "float32", ps_dtype_name(parameter->dtype));
}

pserver_status ps_check_read_encoding(const struct ps_parameter *parameter, pserver_encoding encoding) {
  if (encoding == PSERVER_AS_IS || parameter->dtype == PSERVER_FLOAT32) return PSERVER_OK;
  ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": encodings are for float32; it is %s", parameter->name,
          ps_dtype_name(parameter->dtype));
  return ps_detail_mismatch(parameter->name, "float32", ps_dtype_name(parameter->dtype));
}

pserver_status ps_check_finite(const struct ps_parameter *parameter, pserver_encoding encoding,
                               const void *data, uint64_t elements) {
  pserver_dtype dtype = parameter->dtype;
  if (parameter->allows_non_finite || stays_finite(dtype, encoding, data, elements)) {
    return PSERVER_OK;
  }
  uint64_t index;
  double received = first_non_finite(dtype, encoding, data, &index);
  bool is_encoded = isfinite(received);
  ps_fail(PSERVER_ERR_NON_FINITE,
          "\"%s\": expected finite values; received %g%s%s%s as element %" PRIu64
          ". Declare it with allowNonFinite to take them",
          parameter->name, received, is_encoded ? ", an infinity as " : "",
          is_encoded ? ps_encoding_name(encoding) : "", is_encoded ? "," : "", index);
  ps_detail_text("parameter", parameter->name);
  ps_detail_text("expected", "finite values");
  ps_detail_number("received", received);
  return ps_detail_whole("index", index);
}
