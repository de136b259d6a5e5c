#ifndef FORMATS_FORMATS_H
#define FORMATS_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads MessagePack in place: nothing is allocated, whatever lengths a message claims. ps_read_checked()
 * checks all bytes once; the other functions rely on that.
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

/** A value in a message, which must stay valid as long as the value. */
struct ps_value {
  enum ps_value_type type;
  bool boolean;
  double number;
  /** The bytes of text and bytes, and of the entries of a list or map; they point into the message. */
  const uint8_t *content;
  size_t content_bytes;
  /** Entries of a list or map. */
  uint32_t count;
  /** The encoded value. */
  const uint8_t *raw;
  size_t raw_bytes;
};

/** Reads bytes that must be exactly one value; false if they are not, or in a form the protocol forbids. */
bool ps_read_checked(const uint8_t *bytes, size_t count, struct ps_value *value);

/** Finds the entry of a map with this key. False if it has none, or nil. */
bool ps_map_find(const struct ps_value *map, const char *key, struct ps_value *entry);

/** Reads the next entry of a list; `*at` is NULL before the first. False after the last. */
bool ps_list_next(const struct ps_value *list, const uint8_t **at, struct ps_value *entry);

/** Reads the next entry of a map; `*at` is NULL before the first. False after the last. */
bool ps_map_next(const struct ps_value *map, const uint8_t **at, struct ps_value *key,
                 struct ps_value *entry);

/** Reads a whole number from 0 to 2^53 - 1, in any encoding. False for any other value. */
bool ps_value_whole(const struct ps_value *value, uint64_t *whole);

/** Reads a whole number from a map's entry as ps_value_whole() does; false also if there is no such entry. */
bool ps_map_whole(const struct ps_value *map, const char *key, uint64_t *whole);

/** Whether a value is this text. */
bool ps_value_is_text(const struct ps_value *value, const char *text);

/** Copies a map's text with a final zero, cut to `size` bytes. False if the entry is not text. */
bool ps_map_copy_text(const struct ps_value *map, const char *key, char *target, size_t size);

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
void ps_json_whole(struct ps_json *json, uint64_t number);
/** Appends text unchanged. */
void ps_json_raw(struct ps_json *json, const char *text);
/** Appends a value of a message; bytes become a string such as "12 bytes". */
void ps_json_value(struct ps_json *json, const struct ps_value *value);

/** Begins an entry of an object: a comma unless it is the first, and the key. */
void ps_json_key(struct ps_json *json, bool is_first, const void *key, size_t bytes);

/** Whether bytes are well-formed UTF-8: no surrogates, no overlong forms. */
bool ps_is_utf8(const void *bytes, size_t count);

/** Returns the length of the sequence at the start of `left` bytes; 0 if they do not begin with one. */
size_t ps_utf8_sequence(const void *text, size_t left);

/** Whether the text begins with C0 80, which stands for a NUL in a name and never occurs in UTF-8. */
bool ps_is_nul_of_name(const void *text, size_t left);

/** Replaces every byte that is not UTF-8 by a question mark. */
void ps_make_utf8(char *text);

#endif
