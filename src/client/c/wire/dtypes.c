#include "wire/wire.h"

#include <string.h>

/* Element types and encodings. */

static const struct {
  const char *name;
  size_t bytes;
} types[] = {
    [PSERVER_INT32] = {"int32", 4},     [PSERVER_UINT32] = {"uint32", 4},
    [PSERVER_INT64] = {"int64", 8},     [PSERVER_UINT64] = {"uint64", 8},
    [PSERVER_FLOAT32] = {"float32", 4}, [PSERVER_FLOAT64] = {"float64", 8},
    [PSERVER_BOOL] = {"bool", 1},       [PSERVER_UINT8] = {"uint8", 1},
    [PSERVER_INT8] = {"int8", 1},       [PSERVER_FLOAT16] = {"float16", 2},
    [PSERVER_BFLOAT16] = {"bfloat16", 2},
};

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
  return dtype == PSERVER_FLOAT32 || dtype == PSERVER_FLOAT64 || ps_half_form(dtype) != PSERVER_AS_IS;
}

pserver_encoding ps_half_form(pserver_dtype dtype) {
  if (dtype == PSERVER_BFLOAT16) return PSERVER_ENCODING_BFLOAT16;
  return dtype == PSERVER_FLOAT16 ? PSERVER_ENCODING_FLOAT16 : PSERVER_AS_IS;
}

const char *ps_encoding_name(pserver_encoding encoding) {
  switch (encoding) {
    case PSERVER_ENCODING_BFLOAT16:
      return "bfloat16";
    case PSERVER_ENCODING_FLOAT16:
      return "float16";
    case PSERVER_ENCODING_INT8:
      return "int8";
    case PSERVER_ENCODING_E3M0:
      return "e3m0";
    default:
      return NULL;
  }
}

size_t ps_encoded_bytes(pserver_dtype dtype, pserver_encoding encoding, uint64_t elements) {
  if (encoding == PSERVER_AS_IS) return (size_t)elements * ps_dtype_bytes(dtype);
  if (!ps_is_grouped(encoding)) return (size_t)elements * 2;
  return ps_scale_bytes(elements) + ps_code_bytes(encoding, elements);
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

/* bfloat16 and float16 by the rules of IEEE 754, in integer arithmetic, independent of processor modes. */

#define SIGN 0x80000000u
#define INFINITY_BITS 0x7f800000u
/** 2^-14, the least normal float16, and 65520, the least number that rounds to infinity. */
#define LEAST_NORMAL 0x38800000u
#define OVERFLOW 0x477ff000u

static uint16_t to_bfloat16(uint32_t bits) {
  if ((bits & ~SIGN) > INFINITY_BITS) return 0x7fc0;
  /* Add just under half a unit of the last kept bit, exactly half if that bit is odd: the carry rounds. */
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t to_float16(uint32_t bits) {
  uint32_t size = bits & ~SIGN;
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (size > INFINITY_BITS) return 0x7e00;
  if (size >= OVERFLOW) return sign | 0x7c00;
  if (size >= LEAST_NORMAL) {
    uint32_t rounded = size + 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | ((rounded - (112u << 23)) >> 13));
  }
  /* A denormal, a multiple of 2^-24: shift the fraction, with its leading one, by the missing exponent. */
  uint32_t exponent = size >> 23;
  if (exponent < 102) return sign;
  uint32_t fraction = (size & 0x7fffff) | 0x800000;
  uint32_t shift = 126 - exponent;
  uint32_t half = 1u << (shift - 1);
  uint32_t rest = fraction & ((half << 1) - 1);
  uint32_t whole = fraction >> shift;
  if (rest > half || (rest == half && (whole & 1) != 0)) whole++;
  return (uint16_t)(sign | whole);
}

static uint32_t from_float16(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  uint32_t exponent = half >> 10 & 31;
  uint32_t fraction = half & 0x3ffu;
  if (exponent == 31) return sign | INFINITY_BITS | fraction << 13;
  if (exponent != 0) return sign | (exponent + 112) << 23 | fraction << 13;
  if (fraction == 0) return sign;
  uint32_t lead = 31 - (uint32_t)__builtin_clz(fraction);
  return sign | (lead + 103) << 23 | (fraction << (23 - lead) & 0x7fffff);
}

void ps_encode_halves(pserver_encoding encoding, const void *floats, size_t elements, void *halves) {
  for (size_t i = 0; i < elements; i++) {
    uint32_t bits;
    memcpy(&bits, (const uint8_t *)floats + i * 4, 4);
    uint16_t half = encoding == PSERVER_ENCODING_BFLOAT16 ? to_bfloat16(bits) : to_float16(bits);
    memcpy((uint8_t *)halves + i * 2, &half, 2);
  }
}

void ps_decode_halves(pserver_encoding encoding, const void *halves, size_t elements, void *floats) {
  for (size_t i = 0; i < elements; i++) {
    uint16_t half;
    memcpy(&half, (const uint8_t *)halves + i * 2, 2);
    uint32_t bits = encoding == PSERVER_ENCODING_BFLOAT16 ? (uint32_t)half << 16 : from_float16(half);
    memcpy((uint8_t *)floats + i * 4, &bits, 4);
  }
}
