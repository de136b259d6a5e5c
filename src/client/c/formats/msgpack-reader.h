#ifndef FORMATS_MSGPACK_READER_H
#define FORMATS_MSGPACK_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Reads MessagePack where it lies: nothing is allocated, whatever lengths a message claims. Bytes are
 * checked once, as a whole; everything after may trust them.
 */

enum ps_value_type {
  PS_VALUE_NIL,
  PS_VALUE_BOOLEAN,
  PS_VALUE_NUMBER,
  PS_VALUE_TEXT,
  PS_VALUE_BYTES,
  PS_VALUE_LIST,
  PS_VALUE_MAP
};

struct ps_value {
  enum ps_value_type type;
  bool boolean;
  double number;
  /** Of text, bytes, and what is in a list or map. A view of the message. */
  const uint8_t *content;
  size_t content_bytes;
  /** Entries of a list or map. */
  uint32_t count;
  /** The value as it is written. */
  const uint8_t *raw;
  size_t raw_bytes;
};

/** Whether bytes are one value and nothing else, in the forms that the protocol allows. */
bool ps_read_checked(const uint8_t *bytes, size_t count, struct ps_value *value);

/** The entry of a map. False if it has none, or nil. */
bool ps_map_find(const struct ps_value *map, const char *key, struct ps_value *entry);

/** Walks a list: `at` NULL at first. False after the last. */
bool ps_list_next(const struct ps_value *list, const uint8_t **at, struct ps_value *entry);

/** The same of a map. */
bool ps_map_next(const struct ps_value *map, const uint8_t **at, struct ps_value *key, struct ps_value *entry);

/** A number that is whole, from 0 to 2^53 - 1, however it is written. */
bool ps_value_whole(const struct ps_value *value, uint64_t *whole);

/** The same of a map's entry; false if there is none. */
bool ps_map_whole(const struct ps_value *map, const char *key, uint64_t *whole);

/** Whether a value is this text. */
bool ps_value_is_text(const struct ps_value *value, const char *text);

/** Copies text with a final zero, cut to `room`. False if it is no text. */
bool ps_map_copy_text(const struct ps_value *map, const char *key, char *target, size_t size);

#endif
