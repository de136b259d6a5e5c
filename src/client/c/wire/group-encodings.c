#include "wire/wire.h"

#include <math.h>
#include <string.h>

/*
 * The encodings int8 and e3m0: see docs/reference/protocol.md, "Encodings". All arithmetic is of float32, and every
 * operation rounds once, so that all clients and hosts find the same bits. Loops are over whole groups without branches:
 * compilers turn them into vector instructions.
 */

#define GROUP PS_GROUP_ELEMENTS

#define SIZE_BITS 0x7fffffff
#define INFINITY_BITS 0x7f800000
#define NAN_BITS 0x7fc00000

/** Codes of int8 are from -127 to 127. */
#define INT8_MAX_CODE 127
#define INT8_UNUSED (-128)
/** 1.5 · 2^23: floats around it are whole numbers, so adding it rounds to nearest, ties to even. */
#define ROUNDER 12582912.0f
#define ROUNDER_BITS 0x4b400000

/** Codes of e3m0: a sign, and a level from 0 to 7. Level L stands for 2^(L - 7), and level 0 for zero. */
#define E3M0_SIGN 8
#define E3M0_LEVELS 7
/** The exponent of float32 numbers that level 0 would have. */
#define E3M0_EXPONENT (127 - E3M0_LEVELS)
#define FRACTION_BITS 23
/** 2^-7, as bits. */
#define E3M0_LEAST (E3M0_EXPONENT << FRACTION_BITS)

bool ps_is_grouped(pserver_encoding encoding) {
  return encoding == PSERVER_ENCODING_INT8 || encoding == PSERVER_ENCODING_E3M0;
}

size_t ps_group_count(uint64_t elements) { return (size_t)((elements + GROUP - 1) / GROUP); }

size_t ps_scale_bytes(uint64_t elements) { return ps_group_count(elements) * sizeof(float); }

size_t ps_code_bytes(pserver_encoding encoding, uint64_t elements) {
  return (size_t)(encoding == PSERVER_ENCODING_INT8 ? elements : (elements + 1) / 2);
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/** Returns the largest of the elements' bits without signs; those of a NaN are larger than any number's. */
static uint32_t largest_size(const float elements[GROUP]) {
  int32_t words[GROUP];
  int32_t largest = 0;
  memcpy(words, elements, sizeof words);
  for (size_t i = 0; i < GROUP; i++) {
    int32_t size = words[i] & SIZE_BITS;
    largest = size > largest ? size : largest;
  }
  return (uint32_t)largest;
}

/** Returns the scale of a group whose largest element has this size. */
static float int8_scale(float largest) {
  float scale = largest / (float)INT8_MAX_CODE;
  /* Rounded up, it would decode the largest elements to infinities. */
  return isinf(scale * (float)INT8_MAX_CODE) ? float_of(bits_of(scale) - 1) : scale;
}

static void int8_codes(const float elements[GROUP], float scale, int8_t codes[GROUP]) {
  for (size_t i = 0; i < GROUP; i++) {
    float rounded = elements[i] / scale + ROUNDER;
    int32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    /* Where the scale is a denormal, it may be much less than a 127th of the element. */
    int32_t code = bits - ROUNDER_BITS;
    code = code > INT8_MAX_CODE ? INT8_MAX_CODE : code;
    codes[i] = (int8_t)(code < -INT8_MAX_CODE ? -INT8_MAX_CODE : code);
  }
}

static void e3m0_codes(const float elements[GROUP], float scale, uint8_t codes[GROUP]) {
  for (size_t i = 0; i < GROUP; i++) {
    float ratio = elements[i] / scale;
    int32_t bits;
    memcpy(&bits, &ratio, sizeof bits);
    int32_t size = bits & SIZE_BITS;
    /* Half a unit of the exponent is added: from 1.5 · 2^n on, numbers round to 2^(n + 1). */
    int32_t level = ((size + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS) - E3M0_EXPONENT;
    int32_t least = size >= E3M0_LEAST;
    level = level > least ? level : least;
    int32_t sign = bits < 0 ? E3M0_SIGN : 0;
    codes[i] = (uint8_t)(level | (level > 0 ? sign : 0));
  }
}

/** Writes two codes of four bits into each byte, the first one in the low half. */
static void pack_halves(const uint8_t codes[GROUP], uint8_t packed[GROUP / 2]) {
  for (size_t i = 0; i < GROUP / 2; i++) packed[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
}

void ps_encode_group(pserver_encoding encoding, const float elements[GROUP], size_t count, uint8_t *scale_bytes,
                     uint8_t *target) {
  size_t bytes = ps_code_bytes(encoding, count);
  uint32_t largest = largest_size(elements);
  bool is_int8 = encoding == PSERVER_ENCODING_INT8;
  float scale = float_of(largest > INFINITY_BITS ? NAN_BITS : largest);
  if (is_int8 && largest < INFINITY_BITS) scale = int8_scale(scale);
  memcpy(scale_bytes, &scale, sizeof scale);
  if (largest >= INFINITY_BITS || scale == 0) {
    memset(target, 0, bytes);
    return;
  }
  uint8_t codes[GROUP];
  if (is_int8) {
    int8_codes(elements, scale, (int8_t *)codes);
    memcpy(target, codes, bytes);
    return;
  }
  uint8_t packed[GROUP / 2];
  e3m0_codes(elements, scale, codes);
  pack_halves(codes, packed);
  memcpy(target, packed, bytes);
}

/** Decodes codes of int8; false if one of them is not used. */
static bool decode_int8(const int8_t codes[GROUP], float scale, float elements[GROUP]) {
  int32_t unused = 0;
  for (size_t i = 0; i < GROUP; i++) {
    unused |= codes[i] == INT8_UNUSED;
    elements[i] = (float)codes[i] * scale;
  }
  return unused == 0;
}

/** Decodes codes of e3m0; false if one of them is not used. */
static bool decode_e3m0(const uint8_t packed[GROUP / 2], float scale, float elements[GROUP]) {
  uint8_t codes[GROUP];
  int32_t unused = 0;
  for (size_t i = 0; i < GROUP / 2; i++) {
    codes[2 * i] = packed[i] & 15;
    codes[2 * i + 1] = packed[i] >> 4;
  }
  for (size_t i = 0; i < GROUP; i++) {
    int32_t level = codes[i] & E3M0_LEVELS;
    int32_t size = level > 0 ? (level + E3M0_EXPONENT) << FRACTION_BITS : 0;
    uint32_t bits = (uint32_t)size | (uint32_t)(codes[i] & E3M0_SIGN) << 28;
    float factor;
    memcpy(&factor, &bits, sizeof factor);
    unused |= codes[i] == E3M0_SIGN;
    elements[i] = factor * scale;
  }
  return unused == 0;
}

bool ps_decode_group(pserver_encoding encoding, const uint8_t *scale_bytes, const uint8_t *codes, size_t count,
                     float elements[GROUP]) {
  uint8_t padded[GROUP] = {0};
  uint32_t bits;
  size_t bytes = ps_code_bytes(encoding, count);
  memcpy(&bits, scale_bytes, sizeof bits);
  memcpy(padded, codes, bytes);
  float scale = float_of(bits);
  bool is_int8 = encoding == PSERVER_ENCODING_INT8;
  bool is_known = is_int8 ? decode_int8((const int8_t *)padded, scale, elements)
                          : decode_e3m0(padded, scale, elements);
  bool is_odd = !is_int8 && count % 2 != 0;
  if (bits >= INFINITY_BITS) {
    float all = float_of(bits > INFINITY_BITS ? NAN_BITS : INFINITY_BITS);
    for (size_t i = 0; i < GROUP; i++) elements[i] = all;
  }
  bool has_sign = bits > SIZE_BITS;
  return is_known && !has_sign && !(is_odd && padded[bytes - 1] > 15);
}

bool ps_decode_elements(pserver_encoding encoding, const void *encoded, uint64_t elements, void *floats) {
  if (!ps_is_grouped(encoding)) {
    ps_decode_halves(encoding, encoded, (size_t)elements, floats);
    return true;
  }
  const uint8_t *scale = encoded;
  const uint8_t *codes = scale + ps_scale_bytes(elements);
  uint8_t *target = floats;
  bool is_known = true;
  for (uint64_t start = 0; start < elements; start += GROUP, scale += sizeof(float)) {
    float group[GROUP];
    size_t count = elements - start < GROUP ? (size_t)(elements - start) : GROUP;
    is_known = ps_decode_group(encoding, scale, codes, count, group) && is_known;
    memcpy(target, group, count * sizeof(float));
    codes += ps_code_bytes(encoding, count);
    target += count * sizeof(float);
  }
  return is_known;
}
