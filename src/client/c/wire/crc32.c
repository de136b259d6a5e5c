#include "wire/wire.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/*
 * CRC-32 with the reflected polynomial 0xedb88320. Where the processor has carry-less multiplication, 64
 * bytes at a time are folded into the next 64 by multiplying them with x^n mod P (Gopal et al., "Fast CRC
 * computation for generic polynomials using PCLMULQDQ", 2009); otherwise eight tables are used.
 */

#define POLYNOMIAL 0xedb88320u
#define TABLES 8

static uint32_t tables[TABLES][256];
#if defined(__x86_64__)
static bool multiplies;
#endif
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

static void prepare(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
    tables[0][byte] = crc;
  }
  for (int t = 1; t < TABLES; t++) {
    for (int byte = 0; byte < 256; byte++) {
      uint32_t before = tables[t - 1][byte];
      tables[t][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
#if defined(__x86_64__)
  __builtin_cpu_init();
  multiplies = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
}

/** Updates the inverted checksum. */
static uint32_t register_by_table(uint32_t crc, const uint8_t *bytes, size_t count) {
  for (; count >= 8; count -= 8, bytes += 8) {
    uint32_t low = crc ^ ((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                          (uint32_t)bytes[3] << 24);
    crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
          tables[4][low >> 24] ^ tables[3][bytes[4]] ^ tables[2][bytes[5]] ^ tables[1][bytes[6]] ^
          tables[0][bytes[7]];
  }
  for (; count > 0; count--, bytes++) crc = (crc >> 8) ^ tables[0][(crc ^ *bytes) & 0xff];
  return crc;
}

#if defined(__x86_64__)

#define FOLDS __attribute__((target("pclmul,sse4.1")))

/** Multiplies the halves of `block` by the two powers of x in `powers`, and adds the bytes at that
 * distance. */
FOLDS static inline __m128i fold(__m128i block, __m128i powers, __m128i ahead) {
  __m128i low = _mm_clmulepi64_si128(block, powers, 0x00);
  __m128i high = _mm_clmulepi64_si128(block, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), ahead);
}

FOLDS static inline __m128i load(const uint8_t *bytes) {
  return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

/** Updates the inverted checksum with at least 64 bytes, a multiple of 16. */
FOLDS static uint32_t register_by_folding(uint32_t crc, const uint8_t *bytes, size_t count) {
  /* Reflected remainders: x^(512+64), x^512; x^(128+64), x^128; x^64; P and its inverse. */
  const __m128i by512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  const __m128i by128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  const __m128i by64 = _mm_set_epi64x(0, 0x0163cd6124);
  const __m128i reduction = _mm_set_epi64x(0x01f7011641, 0x01db710641);
  const __m128i low32 = _mm_set_epi32(0, -1, 0, -1);

  __m128i a = _mm_xor_si128(load(bytes), _mm_cvtsi32_si128((int)crc));
  __m128i b = load(bytes + 16);
  __m128i c = load(bytes + 32);
  __m128i d = load(bytes + 48);
  for (bytes += 64, count -= 64; count >= 64; bytes += 64, count -= 64) {
    a = fold(a, by512, load(bytes));
    b = fold(b, by512, load(bytes + 16));
    c = fold(c, by512, load(bytes + 32));
    d = fold(d, by512, load(bytes + 48));
  }
  a = fold(fold(fold(a, by128, b), by128, c), by128, d);
  for (; count >= 16; bytes += 16, count -= 16) a = fold(a, by128, load(bytes));

  /* 128 bits to 96, to 64, then to 32 by Barrett's reduction. */
  a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by128, 0x10));
  a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, low32), by64, 0x00));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(a, low32), reduction, 0x10);
  __m128i product = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), reduction, 0x00);
  return (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, product), 1);
}
#endif

uint32_t ps_crc32_by_table(uint32_t crc, const void *bytes, size_t count) {
  pthread_once(&prepared, prepare);
  return ~register_by_table(~crc, bytes, count);
}

uint32_t ps_crc32_update(uint32_t crc, const void *bytes, size_t count) {
  pthread_once(&prepared, prepare);
  const uint8_t *from = bytes;
  uint32_t state = ~crc;
#if defined(__x86_64__)
  size_t folded = count & ~(size_t)15;
  if (multiplies && folded >= 64) {
    state = register_by_folding(state, from, folded);
    from += folded;
    count -= folded;
  }
#endif
  return ~register_by_table(state, from, count);
}
