#ifndef ERRORS_DETAILS_H
#define ERRORS_DETAILS_H

#include <pserver_errors.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/msgpack-reader.h"

/*
 * These functions add entries to the details of the thread's last error: the same names and values as in
 * the TypeScript client's `details`. An entry that does not fit is left out. All return the error's code,
 * so that a function that fails can end with `return ps_detail_…`.
 */

pserver_status ps_detail_text(const char *key, const char *text);
pserver_status ps_detail_bytes(const char *key, const void *text, size_t bytes);
pserver_status ps_detail_whole(const char *key, uint64_t number);
pserver_status ps_detail_signed(const char *key, int64_t number);
/** A number as text; "NaN", "Infinity" and "-Infinity" as JavaScript writes them. */
pserver_status ps_detail_number(const char *key, double number);
pserver_status ps_detail_shape(const char *key, const uint64_t *shape, int32_t rank);
/** A value that is already JSON. */
pserver_status ps_detail_json(const char *key, const char *json);

/** Replaces all details by this JSON object; "" is an empty one. */
pserver_status ps_detail_all(const char *json);

/** The parameter, and what was expected and received. */
pserver_status ps_detail_mismatch(const char *parameter, const char *expected, const char *received);

/** The numbers that were expected and received. */
pserver_status ps_detail_numbers(size_t expected, size_t received);

/** Every entry of a map in a message. */
pserver_status ps_detail_entries(const struct ps_value *map);

#endif
