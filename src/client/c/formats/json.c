#include "formats/formats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Writes values of messages as JSON. */

#define REPLACEMENT "\xef\xbf\xbd"
/** 2^53: below it every whole number has its own float64. */
#define WHOLE_MAX 9007199254740992.0

static void append(struct ps_json *json, const void *bytes, size_t count) {
  if (json->is_full || count >= json->size - json->used) {
    json->is_full = true;
    return;
  }
  memcpy(json->bytes + json->used, bytes, count);
  json->used += count;
  json->bytes[json->used] = '\0';
}

void ps_json_raw(struct ps_json *json, const char *text) { append(json, text, strlen(text)); }

static void append_control(struct ps_json *json, uint8_t byte) {
  char escaped[8];
  snprintf(escaped, sizeof escaped, "\\u%04x", byte);
  ps_json_raw(json, escaped);
}

void ps_json_text(struct ps_json *json, const void *text, size_t bytes) {
  const uint8_t *at = text;
  const uint8_t *end = at + bytes;
  ps_json_raw(json, "\"");
  while (at < end && !json->is_full) {
    size_t taken = ps_utf8_sequence(at, (size_t)(end - at));
    if (ps_is_nul_of_name(at, (size_t)(end - at))) {
      append_control(json, 0);
      taken = 2;
    } else if (taken == 0) {
      ps_json_raw(json, REPLACEMENT);
      taken = 1;
    } else if (*at < 0x20 || *at == 0x7f) {
      append_control(json, *at);
    } else {
      if (*at == '"' || *at == '\\') ps_json_raw(json, "\\");
      append(json, at, taken);
    }
    at += taken;
  }
  ps_json_raw(json, "\"");
}

void ps_json_whole(struct ps_json *json, uint64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%" PRIu64, number);
  ps_json_raw(json, text);
}

/** Appends a number; null unless it is finite. */
static void json_number(struct ps_json *json, double number) {
  char text[32];
  bool is_whole = floor(number) == number && fabs(number) < WHOLE_MAX;
  if (!isfinite(number)) snprintf(text, sizeof text, "null");
  else snprintf(text, sizeof text, is_whole ? "%.0f" : "%.17g", number);
  ps_json_raw(json, text);
}

void ps_json_key(struct ps_json *json, bool is_first, const void *key, size_t bytes) {
  if (!is_first) ps_json_raw(json, ",");
  ps_json_text(json, key, bytes);
  ps_json_raw(json, ":");
}

static void append_list(struct ps_json *json, const struct ps_value *list) {
  struct ps_value entry;
  const uint8_t *at = NULL;
  ps_json_raw(json, "[");
  for (bool is_first = true; ps_list_next(list, &at, &entry); is_first = false) {
    if (!is_first) ps_json_raw(json, ",");
    ps_json_value(json, &entry);
  }
  ps_json_raw(json, "]");
}

static void append_map(struct ps_json *json, const struct ps_value *map) {
  struct ps_value key;
  struct ps_value entry;
  const uint8_t *at = NULL;
  ps_json_raw(json, "{");
  for (bool is_first = true; ps_map_next(map, &at, &key, &entry); is_first = false) {
    ps_json_key(json, is_first, key.content, key.content_bytes);
    ps_json_value(json, &entry);
  }
  ps_json_raw(json, "}");
}

void ps_json_value(struct ps_json *json, const struct ps_value *value) {
  char text[40];
  switch (value->type) {
    case PS_VALUE_NIL:
      ps_json_raw(json, "null");
      break;
    case PS_VALUE_BOOLEAN:
      ps_json_raw(json, value->boolean ? "true" : "false");
      break;
    case PS_VALUE_NUMBER:
      json_number(json, value->number);
      break;
    case PS_VALUE_TEXT:
      ps_json_text(json, value->content, value->content_bytes);
      break;
    case PS_VALUE_BYTES:
      snprintf(text, sizeof text, "%zu bytes", value->content_bytes);
      ps_json_text(json, text, strlen(text));
      break;
    case PS_VALUE_LIST:
      append_list(json, value);
      break;
    case PS_VALUE_MAP:
      append_map(json, value);
      break;
  }
}
