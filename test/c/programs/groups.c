/*
 * Compares int8 and e3m0 with a reference in float64, for groups by chance and at all limits; and proves that the
 * I/O thread encodes alike where the thread that made it takes denormals for zeros.
 */
#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "expect.h"
#include "wire/wire.h"

#define ROUNDS 20000

static uint64_t state = 88172645463325252u;

static uint32_t random_bits(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32);
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The reference: float64 has the exact product, and a quotient that rounds to the same float32 as the exact one. */

static float divided(float a, float b) { return (float)((double)a / (double)b); }

static float reference_scale(pserver_encoding encoding, const float *group, size_t count) {
  float largest = 0;
  for (size_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(group[i]));
  for (size_t i = 0; i < count; i++) {
    if (isnan(group[i])) return NAN;
  }
  if (isinf(largest) || encoding == PSERVER_ENCODING_E3M0) return largest;
  float scale = divided(largest, 127);
  return (double)scale * 127 > (double)FLT_MAX * (1 + ldexp(1, -25)) ? nextafterf(scale, 0) : scale;
}

/** Returns the factor of the scale that an element becomes. */
static double reference_factor(pserver_encoding encoding, float element, float scale) {
  if (scale == 0 || !isfinite(scale)) return 0;
  double ratio = (double)divided(element, scale);
  if (encoding == PSERVER_ENCODING_INT8) return fmax(-127, fmin(127, nearbyint(ratio)));
  double size = fabs(ratio);
  if (size < ldexp(1, -7)) return 0;
  double best = ldexp(1, -6);
  for (int exponent = -5; exponent <= 0; exponent++) {
    double power = ldexp(1, exponent);
    if (fabs(power - size) <= fabs(best - size)) best = power;
  }
  return copysign(best, ratio);
}

static uint8_t reference_code(pserver_encoding encoding, double factor) {
  if (encoding == PSERVER_ENCODING_INT8) return (uint8_t)(int8_t)factor;
  if (factor == 0) return 0;
  return (uint8_t)((factor < 0 ? 8 : 0) | (ilogb(factor) + 7));
}

static void check_group(pserver_encoding encoding, const float *given, size_t count) {
  float group[PS_GROUP_ELEMENTS] = {0};
  float decoded[PS_GROUP_ELEMENTS];
  uint8_t scale_bytes[4];
  uint8_t codes[PS_GROUP_ELEMENTS];
  memcpy(group, given, count * sizeof(float));
  memset(codes, 0xaa, sizeof codes);
  ps_encode_group(encoding, group, count, scale_bytes, codes);
  EXPECT(ps_decode_group(encoding, scale_bytes, codes, count, decoded));
  float scale;
  float expected_scale = reference_scale(encoding, given, count);
  memcpy(&scale, scale_bytes, sizeof scale);
  if (isnan(expected_scale)) expected_scale = float_of(0x7fc00000);
  EXPECT(memcmp(&scale, &expected_scale, sizeof scale) == 0);
  for (size_t i = 0; i < count; i++) {
    double factor = reference_factor(encoding, given[i], scale);
    uint8_t code = codes[encoding == PSERVER_ENCODING_INT8 ? i : i / 2];
    if (encoding == PSERVER_ENCODING_E3M0) code = i % 2 == 0 ? code & 15 : code >> 4;
    EXPECT(code == reference_code(encoding, factor));
    float expected = isfinite(scale) ? (float)(factor * (double)scale) : scale;
    EXPECT(memcmp(&decoded[i], &expected, sizeof expected) == 0 || (expected == 0 && decoded[i] == 0));
    EXPECT(!isfinite(scale) || isfinite(decoded[i]));
    EXPECT(expected != 0 || !signbit(decoded[i]));
  }
  if (encoding == PSERVER_ENCODING_E3M0 && count % 2 == 1) EXPECT(codes[count / 2] >> 4 == 0);
  size_t bytes = ps_code_bytes(encoding, count);
  EXPECT(bytes == sizeof codes || codes[bytes] == 0xaa);
}

/** Elements of all sizes within this many powers of two below the largest. */
static void fill(float *group, size_t count, uint32_t largest_exponent, uint32_t span) {
  for (size_t i = 0; i < count; i++) {
    uint32_t below = span == 0 ? 0 : random_bits() % span;
    uint32_t exponent = below > largest_exponent ? 0 : largest_exponent - below;
    group[i] = float_of((random_bits() & 0x807fffffu) | exponent << 23);
  }
}

static void check_chance(pserver_encoding encoding) {
  float group[PS_GROUP_ELEMENTS];
  for (size_t round = 0; round < ROUNDS; round++) {
    size_t count = round % 3 == 0 ? PS_GROUP_ELEMENTS : 1 + random_bits() % PS_GROUP_ELEMENTS;
    uint32_t exponents[] = {127, random_bits() % 255, random_bits() % 12, 254};
    fill(group, count, exponents[round % 4], random_bits() % 12);
    /* Every fourth float is near a multiple of a 254th of the largest, or near a power of two. */
    float largest = 0;
    for (size_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(group[i]));
    for (size_t i = 1; i < count; i += 4) {
      float halves = largest / 254 * (float)(random_bits() % 255);
      float powers = largest * ldexpf(1.5f, -(int)(random_bits() % 9));
      float near = random_bits() % 2 == 0 ? halves : powers;
      group[i] = near >= largest ? largest : nextafterf(near, random_bits() % 2 == 0 ? 0 : largest);
    }
    if (round % 50 == 7) group[random_bits() % count] = random_bits() % 2 == 0 ? INFINITY : -INFINITY;
    if (round % 70 == 9) group[random_bits() % count] = NAN;
    check_group(encoding, group, count);
  }
}

static void check_limits(pserver_encoding encoding) {
  for (uint32_t bits = 0; bits < 600; bits++) {
    check_group(encoding, (float[]){float_of(bits), float_of(0x80000000u | bits / 3), 0}, 3);
  }
  for (uint32_t below = 0; below < 600; below++) {
    float largest = float_of(0x7f7fffffu - below);
    check_group(encoding, (float[]){largest, -largest, largest / 2, 1}, 4);
  }
  check_group(encoding, (float[]){-0.0f, 0.0f}, 2);
}

/** Every byte of codes is read or refused. */
static void check_codes(void) {
  float decoded[PS_GROUP_ELEMENTS];
  const float scale = 0.75f;
  const uint8_t *scale_bytes = (const uint8_t *)&scale;
  for (unsigned byte = 0; byte < 256; byte++) {
    uint8_t code = (uint8_t)byte;
    EXPECT(ps_decode_group(PSERVER_ENCODING_INT8, scale_bytes, &code, 1, decoded) == (byte != 128));
    bool has_unused = (byte & 15) == 8 || byte >> 4 == 8;
    EXPECT(ps_decode_group(PSERVER_ENCODING_E3M0, scale_bytes, &code, 2, decoded) == !has_unused);
    bool is_single = byte < 16 && byte != 8;
    EXPECT(ps_decode_group(PSERVER_ENCODING_E3M0, scale_bytes, &code, 1, decoded) == is_single);
  }
  const uint32_t negative[] = {0x80000000u, 0x80000001u, 0xbf800000u, 0xff800000u, 0xffc00000u};
  for (size_t i = 0; i < sizeof negative / sizeof negative[0]; i++) {
    uint8_t code = 1;
    EXPECT(!ps_decode_group(PSERVER_ENCODING_INT8, (const uint8_t *)&negative[i], &code, 1, decoded));
  }
}

/** Elements whose scales are denormals, or whose codes need them. */
static void encode_small(uint8_t bytes[2][4 + PS_GROUP_ELEMENTS]) {
  float group[PS_GROUP_ELEMENTS] = {0};
  for (uint32_t i = 0; i < PS_GROUP_ELEMENTS; i++) group[i] = float_of(i * 1009);
  ps_encode_group(PSERVER_ENCODING_INT8, group, PS_GROUP_ELEMENTS, bytes[0], bytes[0] + 4);
  ps_encode_group(PSERVER_ENCODING_E3M0, group, PS_GROUP_ELEMENTS, bytes[1], bytes[1] + 4);
}

static void encode_work(void *context) { encode_small(context); }

static void check_thread(void) {
  static uint8_t here[2][4 + PS_GROUP_ELEMENTS];
  static uint8_t there[2][4 + PS_GROUP_ELEMENTS];
  struct ps_io_thread io;
  struct ps_io_work work = {.run = encode_work, .context = there};
  encode_small(here);
#if defined(__SSE__)
  /* Flush to zero, and denormals are zeros. */
  unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040);
#endif
  EXPECT_OK(ps_io_init(&io));
  EXPECT_OK(ps_io_start(&io));
  ps_io_post(&io, &work);
  ps_io_stop(&io);
  ps_io_release(&io);
#if defined(__SSE__)
  _mm_setcsr(mode);
#endif
  EXPECT(memcmp(here, there, sizeof here) == 0);
}

int main(void) {
  check_chance(PSERVER_ENCODING_INT8);
  check_chance(PSERVER_ENCODING_E3M0);
  check_limits(PSERVER_ENCODING_INT8);
  check_limits(PSERVER_ENCODING_E3M0);
  check_codes();
  check_thread();
  return 0;
}
