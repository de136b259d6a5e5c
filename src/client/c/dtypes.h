#ifndef DTYPES_H
#define DTYPES_H

#include <pserver.h>

/** Bytes of an element; 0 of no element type. */
size_t dtype_bytes(pserver_dtype dtype);

/** The type's name in messages; NULL of no element type. */
const char *dtype_name(pserver_dtype dtype);

/** The type with this name. False if there is none. */
bool dtype_from_name(const char *name, size_t bytes, pserver_dtype *dtype);

bool dtype_is_float(pserver_dtype dtype);

/** The encoding's name in messages; NULL of none. */
const char *encoding_name(pserver_encoding encoding);

/** Bytes of an element as it travels. */
size_t encoded_bytes(pserver_dtype dtype, pserver_encoding encoding);

/** Elements of a shape; 0 if it has a dimension of 0, too many dimensions or 2^53 elements. */
uint64_t element_count(const uint64_t *shape, int32_t rank);

#endif
