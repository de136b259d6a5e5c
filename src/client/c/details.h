#ifndef DETAILS_H
#define DETAILS_H

#include <pserver_errors.h>
#include <stddef.h>
#include <stdint.h>

#include "msgpack-reader.h"

/*
 * What the last error of the thread is about, by name, as the TypeScript client's `details` say it. An entry
 * that there is no room for is left out. All return the error's code, so that a refusal can end with one.
 */

pserver_status detail_text(const char *key, const char *text);
pserver_status detail_bytes(const char *key, const void *text, size_t bytes);
pserver_status detail_whole(const char *key, uint64_t number);
pserver_status detail_signed(const char *key, int64_t number);
/** A number as text, as JavaScript writes it if it is none or infinite. */
pserver_status detail_number(const char *key, double number);
pserver_status detail_shape(const char *key, const uint64_t *shape, int32_t rank);
/** JSON that is written already. */
pserver_status detail_json(const char *key, const char *json);

/** What of a parameter was expected, and received. */
pserver_status detail_mismatch(const char *parameter, const char *expected, const char *received);

/** Every entry of a map of a message. */
pserver_status detail_entries(const struct value *map);

#endif
