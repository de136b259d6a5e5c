#include "formats/formats.h"

#include <string.h>

/* Reads MessagePack values in place. */

/** Depth of nested lists and maps, including the message itself. */
#define DEPTH_MAX 16
/** Entries of a map. Keys are compared pair by pair; no message has a hundred. */
#define MAP_ENTRIES_MAX 1024

struct input {
  const uint8_t *at;
  const uint8_t *end;
};

static bool take_number(struct input *input, size_t bytes, uint64_t *number) {
  if ((size_t)(input->end - input->at) < bytes) return false;
  *number = 0;
  for (size_t i = 0; i < bytes; i++) *number = *number << 8 | input->at[i];
  input->at += bytes;
  return true;
}

static bool take_float(struct input *input, size_t bytes, double *number) {
  uint64_t bits;
  if (!take_number(input, bytes, &bits)) return false;
  if (bytes == 8) {
    memcpy(number, &bits, 8);
    return true;
  }
  uint32_t narrow_bits = (uint32_t)bits;
  float narrow;
  memcpy(&narrow, &narrow_bits, 4);
  *number = (double)narrow;
  return true;
}

static bool take_signed(struct input *input, size_t bytes, double *number) {
  uint64_t bits;
  if (!take_number(input, bytes, &bits)) return false;
  uint64_t sign = UINT64_C(1) << (bytes * 8 - 1);
  /* Two's complement of this width; computed in float64, because -INT64_MIN is not an int64. */
  *number = (bits & sign) == 0 ? (double)bits : -(double)((~bits & (sign - 1))) - 1;
  return true;
}

static bool take_content(struct input *input, size_t bytes, struct ps_value *value) {
  if ((size_t)(input->end - input->at) < bytes) return false;
  value->content = input->at;
  value->content_bytes = bytes;
  input->at += bytes;
  return true;
}

/**
 * Reads the type of a value, and the value itself if it is scalar; `*length` becomes the number of bytes of
 * text and bytes, or of entries of lists and maps.
 */
static bool read_type(struct input *input, struct ps_value *value, uint64_t *length) {
  uint8_t first = *input->at++;
  *length = 0;
  if (first < 0x80 || first >= 0xe0) {
    value->type = PS_VALUE_NUMBER;
    value->number = first < 0x80 ? first : (double)first - 256;
    return true;
  }
  if (first < 0xc0) {
    value->type = first >= 0xa0 ? PS_VALUE_TEXT : first >= 0x90 ? PS_VALUE_LIST : PS_VALUE_MAP;
    *length = first & (first >= 0xa0 ? 0x1f : 0x0f);
    return true;
  }
  switch (first) {
    case 0xc0:
      value->type = PS_VALUE_NIL;
      return true;
    case 0xc2:
    case 0xc3:
      value->type = PS_VALUE_BOOLEAN;
      value->boolean = first == 0xc3;
      return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      value->type = PS_VALUE_BYTES;
      return take_number(input, (size_t)1 << (first - 0xc4), length);
    case 0xca:
    case 0xcb:
      value->type = PS_VALUE_NUMBER;
      return take_float(input, first == 0xca ? 4 : 8, &value->number);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: {
      uint64_t number;
      value->type = PS_VALUE_NUMBER;
      if (!take_number(input, (size_t)1 << (first - 0xcc), &number)) return false;
      value->number = (double)number;
      return true;
    }
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      value->type = PS_VALUE_NUMBER;
      return take_signed(input, (size_t)1 << (first - 0xd0), &value->number);
    case 0xd9:
    case 0xda:
    case 0xdb:
      value->type = PS_VALUE_TEXT;
      return take_number(input, (size_t)1 << (first - 0xd9), length);
    case 0xdc:
    case 0xdd:
      value->type = PS_VALUE_LIST;
      return take_number(input, first == 0xdc ? 2 : 4, length);
    case 0xde:
    case 0xdf:
      value->type = PS_VALUE_MAP;
      return take_number(input, first == 0xde ? 2 : 4, length);
    default:
      return false;
  }
}

static bool read_value(struct input *input, struct ps_value *value, int depth, bool is_checked);

static bool is_key(const struct ps_value *key, bool is_checked, const struct ps_value *map) {
  static const char forbidden[] = "__proto__";
  if (key->type != PS_VALUE_TEXT) return false;
  if (is_checked) return true;
  if (ps_value_is_text(key, forbidden)) return false;
  /* Look for the same key before. Maps in messages are small: a few dozen entries at most, in details. */
  struct input before = {map->content, key->raw};
  while (before.at < key->raw) {
    struct ps_value other;
    struct ps_value skipped;
    if (!read_value(&before, &other, 0, true) || !read_value(&before, &skipped, 0, true)) return false;
    if (other.content_bytes == key->content_bytes &&
        memcmp(other.content, key->content, key->content_bytes) == 0) {
      return false;
    }
  }
  return true;
}

/** Reads the entries of a list or map, to check them and to find its end. */
static bool read_entries(struct input *input, struct ps_value *value, uint64_t count, int depth,
                         bool is_checked) {
  if (!is_checked && depth >= DEPTH_MAX) return false;
  /* Each entry takes at least one byte, so a larger count is wrong: do not loop over it. */
  if (count > (uint64_t)(input->end - input->at)) return false;
  if (value->type == PS_VALUE_MAP && count > MAP_ENTRIES_MAX) return false;
  value->count = (uint32_t)count;
  value->content = input->at;
  for (uint64_t i = 0; i < count; i++) {
    struct ps_value entry;
    if (value->type == PS_VALUE_MAP) {
      if (!read_value(input, &entry, depth + 1, is_checked)) return false;
      if (!is_key(&entry, is_checked, value)) return false;
    }
    if (!read_value(input, &entry, depth + 1, is_checked)) return false;
  }
  value->content_bytes = (size_t)(input->at - value->content);
  return true;
}

static bool read_value(struct input *input, struct ps_value *value, int depth, bool is_checked) {
  if (input->at >= input->end) return false;
  *value = (struct ps_value){.raw = input->at};
  uint64_t length;
  if (!read_type(input, value, &length)) return false;
  if (value->type == PS_VALUE_LIST || value->type == PS_VALUE_MAP) {
    if (!read_entries(input, value, length, depth, is_checked)) return false;
  } else if (value->type == PS_VALUE_TEXT || value->type == PS_VALUE_BYTES) {
    if (!take_content(input, (size_t)length, value)) return false;
    if (value->type == PS_VALUE_TEXT && !is_checked && !ps_is_utf8(value->content, value->content_bytes)) {
      return false;
    }
  }
  value->raw_bytes = (size_t)(input->at - value->raw);
  return true;
}

bool ps_read_checked(const uint8_t *bytes, size_t count, struct ps_value *value) {
  struct input input = {bytes, bytes + count};
  return read_value(&input, value, 0, false) && input.at == input.end;
}

bool ps_map_find(const struct ps_value *map, const char *key, struct ps_value *entry) {
  if (map->type != PS_VALUE_MAP) return false;
  struct input input = {map->content, map->content + map->content_bytes};
  for (uint32_t i = 0; i < map->count; i++) {
    struct ps_value name;
    if (!read_value(&input, &name, 0, true) || !read_value(&input, entry, 0, true)) return false;
    if (ps_value_is_text(&name, key)) return entry->type != PS_VALUE_NIL;
  }
  return false;
}

bool ps_list_next(const struct ps_value *list, const uint8_t **at, struct ps_value *entry) {
  if (list->type != PS_VALUE_LIST) return false;
  const uint8_t *end = list->content + list->content_bytes;
  struct input input = {*at == NULL ? list->content : *at, end};
  if (input.at >= end || !read_value(&input, entry, 0, true)) return false;
  *at = input.at;
  return true;
}

bool ps_map_next(const struct ps_value *map, const uint8_t **at, struct ps_value *key,
                 struct ps_value *entry) {
  if (map->type != PS_VALUE_MAP) return false;
  const uint8_t *end = map->content + map->content_bytes;
  struct input input = {*at == NULL ? map->content : *at, end};
  if (input.at >= end || !read_value(&input, key, 0, true)) return false;
  if (!read_value(&input, entry, 0, true)) return false;
  *at = input.at;
  return true;
}

bool ps_value_whole(const struct ps_value *value, uint64_t *whole) {
  if (value->type != PS_VALUE_NUMBER) return false;
  /* A NaN fails both comparisons. */
  if (!(value->number >= 0 && value->number <= 9007199254740991.0)) return false;
  *whole = (uint64_t)value->number;
  return (double)*whole == value->number;
}

bool ps_map_whole(const struct ps_value *map, const char *key, uint64_t *whole) {
  struct ps_value entry;
  return ps_map_find(map, key, &entry) && ps_value_whole(&entry, whole);
}

bool ps_value_is_text(const struct ps_value *value, const char *text) {
  return value->type == PS_VALUE_TEXT && strlen(text) == value->content_bytes &&
         memcmp(text, value->content, value->content_bytes) == 0;
}

bool ps_map_copy_text(const struct ps_value *map, const char *key, char *target, size_t size) {
  struct ps_value entry;
  target[0] = '\0';
  if (!ps_map_find(map, key, &entry) || entry.type != PS_VALUE_TEXT) return false;
  size_t bytes = entry.content_bytes < size ? entry.content_bytes : size - 1;
  memcpy(target, entry.content, bytes);
  target[bytes] = '\0';
  return true;
}
