#include "errors/errors.h"
#include "formats/formats.h"

#include <inttypes.h>
#include <math.h>
#include <pserver.h>
#include <stdio.h>
#include <string.h>

/* The details of a thread's last error: one JSON object of bounded size. */

/** Begins an entry; end_entry() removes it if it does not fit. */
static struct ps_json begin_entry(const void *key, size_t bytes) {
  struct ps_error *last = ps_last_error_to_detail();
  size_t used = strlen(last->details);
  struct ps_json json = {.bytes = last->details, .used = used, .size = sizeof last->details};
  if (used == 0) ps_json_raw(&json, "{");
  else json.used--;
  ps_json_key(&json, used == 0, key, bytes);
  return json;
}

static pserver_status end_entry(struct ps_json *json, size_t used_before) {
  struct ps_error *last = ps_last_error_to_detail();
  ps_json_raw(json, "}");
  if (json->is_full && used_before > 0) memcpy(last->details + used_before - 1, "}", 2);
  else if (json->is_full) last->details[0] = '\0';
  return last->code;
}

static size_t used_so_far(void) { return strlen(ps_last_error()->details); }

pserver_status ps_detail_bytes(const char *key, const void *text, size_t bytes) {
  size_t used = used_so_far();
  struct ps_json json = begin_entry(key, strlen(key));
  ps_json_text(&json, text, bytes);
  return end_entry(&json, used);
}

pserver_status ps_detail_text(const char *key, const char *text) {
  return ps_detail_bytes(key, text, strlen(text));
}

pserver_status ps_detail_json(const char *key, const char *text) {
  size_t used = used_so_far();
  struct ps_json json = begin_entry(key, strlen(key));
  ps_json_raw(&json, text);
  return end_entry(&json, used);
}

pserver_status ps_detail_all(const char *json) {
  struct ps_error *last = ps_last_error_to_detail();
  snprintf(last->details, sizeof last->details, "%s", json);
  return last->code;
}

pserver_status ps_detail_whole(const char *key, uint64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%" PRIu64, number);
  return ps_detail_json(key, text);
}

pserver_status ps_detail_signed(const char *key, int64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, number);
  return ps_detail_json(key, text);
}

pserver_status ps_detail_number(const char *key, double number) {
  char text[40];
  if (isnan(number)) return ps_detail_text(key, "NaN");
  if (isinf(number)) return ps_detail_text(key, number > 0 ? "Infinity" : "-Infinity");
  snprintf(text, sizeof text, "%.17g", number);
  return ps_detail_text(key, text);
}

pserver_status ps_detail_shape(const char *key, const uint64_t *shape, int32_t rank) {
  size_t used = used_so_far();
  struct ps_json json = begin_entry(key, strlen(key));
  ps_json_raw(&json, "[");
  for (int32_t axis = 0; axis < rank; axis++) {
    if (axis > 0) ps_json_raw(&json, ",");
    ps_json_whole(&json, shape[axis]);
  }
  ps_json_raw(&json, "]");
  return end_entry(&json, used);
}

pserver_status ps_detail_mismatch(const char *parameter, const char *expected, const char *received) {
  ps_detail_text("parameter", parameter);
  ps_detail_text("expected", expected);
  return ps_detail_text("received", received);
}

pserver_status ps_detail_numbers(size_t expected, size_t received) {
  ps_detail_whole("expected", expected);
  return ps_detail_whole("received", received);
}

pserver_status ps_detail_entries(const struct ps_value *map) {
  struct ps_value key;
  struct ps_value entry;
  const uint8_t *at = NULL;
  while (ps_map_next(map, &at, &key, &entry)) {
    size_t used = used_so_far();
    struct ps_json json = begin_entry(key.content, key.content_bytes);
    ps_json_value(&json, &entry);
    end_entry(&json, used);
  }
  return ps_last_error()->code;
}

const char *pserver_last_error_details(void) {
  const char *details = ps_last_error()->details;
  return details[0] == '\0' ? "{}" : details;
}
