#ifndef WIRE_ENCODINGS_H
#define WIRE_ENCODINGS_H

#include <pserver.h>

/**
 * Encodes float32 elements in two bytes each, rounded to nearest even; a NaN becomes the canonical one. Any
 * alignment; the two memories must not overlap.
 */
void ps_encode_elements(pserver_encoding encoding, const void *floats, size_t elements, void *halves);

/** Decodes elements to float32, exactly. */
void ps_decode_elements(pserver_encoding encoding, const void *halves, size_t elements, void *floats);

#endif
