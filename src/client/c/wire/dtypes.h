#ifndef WIRE_DTYPES_H
#define WIRE_DTYPES_H

#include <pserver.h>

/** Returns the bytes of an element; 0 if `dtype` is not an element type. */
size_t ps_dtype_bytes(pserver_dtype dtype);

/** Returns the type's name in messages; NULL if it is not an element type. */
const char *ps_dtype_name(pserver_dtype dtype);

/** Finds the type with this name. False if there is none. */
bool ps_dtype_from_name(const char *name, size_t bytes, pserver_dtype *dtype);

bool ps_dtype_is_float(pserver_dtype dtype);

/** Returns the encoding's name in messages; NULL for PSERVER_AS_IS and unknown ones. */
const char *ps_encoding_name(pserver_encoding encoding);

/** Returns the bytes of an element in a message. */
size_t ps_encoded_bytes(pserver_dtype dtype, pserver_encoding encoding);

/** Returns the number of elements of a shape; 0 for a dimension of 0, too many dimensions, or 2^53
 * elements. */
uint64_t ps_element_count(const uint64_t *shape, int32_t rank);

#endif
