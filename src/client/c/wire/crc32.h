#ifndef WIRE_CRC32_H
#define WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/** CRC-32 as in zlib, of the bytes after those that gave `crc`; 0 at first. */
uint32_t ps_crc32_update(uint32_t crc, const void *bytes, size_t count);

/** The same without the processor's carry-less multiplication: what it is tested against. */
uint32_t ps_crc32_by_table(uint32_t crc, const void *bytes, size_t count);

#endif
