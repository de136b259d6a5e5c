#ifndef ERRORS_DETAILS_H
#define ERRORS_DETAILS_H

#include <pserver_errors.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/msgpack-reader.h"

/*
 * What the last error of the thread is about, by name, as the TypeScript client's `details` say it. An entry
 * that there is no room for is left out. All return the error's code, so that a refusal can end with one.
 */

pserver_status ps_detail_text(const char *key, const char *text);
pserver_status ps_detail_bytes(const char *key, const void *text, size_t bytes);
pserver_status ps_detail_whole(const char *key, uint64_t number);
pserver_status ps_detail_signed(const char *key, int64_t number);
/** A number as text, as JavaScript writes it if it is none or infinite. */
pserver_status ps_detail_number(const char *key, double number);
pserver_status ps_detail_shape(const char *key, const uint64_t *shape, int32_t rank);
/** JSON that is written already. */
pserver_status ps_detail_json(const char *key, const char *json);

/** Replaces all details by a JSON object that is written already; "" for an empty one. */
pserver_status ps_detail_all(const char *json);

/** What of a parameter was expected, and received. */
pserver_status ps_detail_mismatch(const char *parameter, const char *expected, const char *received);

/** Numbers that were expected and received. */
pserver_status ps_detail_numbers(size_t expected, size_t received);

/** Every entry of a map of a message. */
pserver_status ps_detail_entries(const struct ps_value *map);

#endif
