#ifndef WIRE_CRC32_H
#define WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/** Returns the CRC-32, as in zlib, of bytes that follow those with checksum `crc`; 0 for the first bytes. */
uint32_t ps_crc32_update(uint32_t crc, const void *bytes, size_t count);

/** The same without carry-less multiplication, for tests to compare. */
uint32_t ps_crc32_by_table(uint32_t crc, const void *bytes, size_t count);

#endif
