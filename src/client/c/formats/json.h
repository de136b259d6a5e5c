#ifndef FORMATS_JSON_H
#define FORMATS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/msgpack-reader.h"

/** JSON text that is being written, always with a final zero. What has no room sets `is_full`. */
struct ps_json {
  char *bytes;
  size_t used;
  size_t size;
  bool is_full;
};

/** A string; U+FFFD stands for every byte that is no UTF-8. */
void ps_json_text(struct ps_json *json, const void *text, size_t bytes);
/** null for what is no finite number. */
void ps_json_number(struct ps_json *json, double number);
void ps_json_whole(struct ps_json *json, uint64_t number);
/** Text as it is. */
void ps_json_raw(struct ps_json *json, const char *text);
/** A value of a message; bytes as a text that tells how many. */
void ps_json_value(struct ps_json *json, const struct ps_value *value);

/** An entry of an object: a comma if it is not the first, and the key. */
void ps_json_key(struct ps_json *json, bool is_first, const void *key, size_t bytes);

#endif
