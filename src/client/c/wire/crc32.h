#ifndef WIRE_CRC32_H
#define WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/** Bytes to copy before their checksum is computed, while they are still in the cache. */
#define PS_CRC32_CHUNK_BYTES 16384

/** Returns the CRC-32, as in zlib, of bytes that follow those with checksum `crc`; 0 for the first bytes. */
uint32_t ps_crc32_update(uint32_t crc, const void *bytes, size_t count);

/** The same without carry-less multiplication, for tests to compare. */
uint32_t ps_crc32_by_table(uint32_t crc, const void *bytes, size_t count);

#endif
