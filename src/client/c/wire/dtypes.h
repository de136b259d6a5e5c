#ifndef WIRE_DTYPES_H
#define WIRE_DTYPES_H

#include <pserver.h>

/** Bytes of an element; 0 of no element type. */
size_t ps_dtype_bytes(pserver_dtype dtype);

/** The type's name in messages; NULL of no element type. */
const char *ps_dtype_name(pserver_dtype dtype);

/** The type with this name. False if there is none. */
bool ps_dtype_from_name(const char *name, size_t bytes, pserver_dtype *dtype);

bool ps_dtype_is_float(pserver_dtype dtype);

/** The encoding's name in messages; NULL of none. */
const char *ps_encoding_name(pserver_encoding encoding);

/** Bytes of an element as it travels. */
size_t ps_encoded_bytes(pserver_dtype dtype, pserver_encoding encoding);

/** Elements of a shape; 0 if it has a dimension of 0, too many dimensions or 2^53 elements. */
uint64_t ps_element_count(const uint64_t *shape, int32_t rank);

#endif
