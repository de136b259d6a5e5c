#ifndef FORMATS_JSON_H
#define FORMATS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/msgpack-reader.h"

/** JSON text that is being written, with a final zero. Text that does not fit is left out and sets
 * `is_full`. */
struct ps_json {
  char *bytes;
  size_t used;
  size_t size;
  bool is_full;
};

/** Appends a string; every byte that is not UTF-8 becomes U+FFFD. */
void ps_json_text(struct ps_json *json, const void *text, size_t bytes);
/** Appends a number; null unless it is finite. */
void ps_json_number(struct ps_json *json, double number);
void ps_json_whole(struct ps_json *json, uint64_t number);
/** Appends text unchanged. */
void ps_json_raw(struct ps_json *json, const char *text);
/** Appends a value of a message; bytes become a string such as "12 bytes". */
void ps_json_value(struct ps_json *json, const struct ps_value *value);

/** Begins an entry of an object: a comma unless it is the first, and the key. */
void ps_json_key(struct ps_json *json, bool is_first, const void *key, size_t bytes);

#endif
