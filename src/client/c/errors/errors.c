#include "errors/errors.h"

#include <inttypes.h>
#include <math.h>
#include <pserver.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The last error of each thread, the table of codes, and the reactions to them. */

static _Thread_local struct ps_error last;

struct row {
  pserver_status code;
  const char *name;
  bool retryable;
};

#define ROW(code, name, retryable) {code, name, retryable},
static const struct row rows[] = {{PSERVER_OK, "OK", false}, PSERVER_ERROR_TABLE(ROW)};
#undef ROW

static const struct row *find_row(pserver_status status) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].code == status) return &rows[i];
  }
  return NULL;
}

/** Formats into another buffer first, because the arguments may include the text that is replaced. */
static void write_text(char target[PS_ERROR_TEXT_BYTES], const char *format, va_list arguments) {
  char text[PS_ERROR_TEXT_BYTES];
  vsnprintf(text, sizeof text, format, arguments);
  ps_make_utf8(text);
  memcpy(target, text, strlen(text) + 1);
}

pserver_status ps_fail(pserver_status code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  last.code = code;
  write_text(last.text, format, arguments);
  last.details[0] = '\0';
  va_end(arguments);
  return code;
}

pserver_status ps_fail_reworded(pserver_status code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  last.code = code;
  write_text(last.text, format, arguments);
  va_end(arguments);
  return code;
}

pserver_status ps_fail_with(const struct ps_error *error) {
  if (error != &last) last = *error;
  return last.code;
}

const struct ps_error *ps_last_error(void) { return &last; }

pserver_status ps_fail_prefixed(const char *format, ...) {
  char text[PS_ERROR_TEXT_BYTES];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof text) length = (int)sizeof text - 1;
  size_t kept = strnlen(last.text, sizeof last.text - 1 - (size_t)length);
  memmove(last.text + length, last.text, kept);
  memcpy(last.text, text, (size_t)length);
  last.text[(size_t)length + kept] = '\0';
  ps_make_utf8(last.text);
  return last.code;
}

void ps_error_set(struct ps_error *error, pserver_status code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error->code = code;
  write_text(error->text, format, arguments);
  error->details[0] = '\0';
  va_end(arguments);
}

pserver_status ps_status_from_name(const char *name, size_t bytes) {
  for (size_t i = 1; i < sizeof rows / sizeof rows[0]; i++) {
    if (strlen(rows[i].name) == bytes && memcmp(rows[i].name, name, bytes) == 0) {
      return rows[i].code;
    }
  }
  return PSERVER_ERR_INTERNAL;
}

pserver_status pserver_last_error(const char **message) {
  if (message != NULL) *message = last.text;
  return last.code;
}

const char *pserver_status_name(pserver_status status) {
  const struct row *row = find_row(status);
  return row == NULL ? "UNKNOWN" : row->name;
}

bool pserver_is_retryable(pserver_status status) {
  const struct row *row = find_row(status);
  return row != NULL && row->retryable;
}

#define CASE(code, reaction) \
  case code:                 \
    return reaction;

enum ps_reaction ps_reaction_to(pserver_status status) {
  switch (status) {
    PS_REACTION_TABLE(CASE)
    default:
      return PS_REACTION_FAIL;
  }
}

enum ps_rejection ps_reaction_to_rejection(pserver_status status) {
  switch (status) {
    PS_REJECTION_TABLE(CASE)
    default:
      return PS_REJECTION_FAIL;
  }
}

bool ps_ends_session(pserver_status status) {
  enum ps_reaction reaction = ps_reaction_to(status);
  return reaction == PS_REACTION_REJOIN || reaction == PS_REACTION_END;
}

bool ps_yields_init(pserver_status status) {
  enum ps_reaction reaction = ps_reaction_to(status);
  return reaction == PS_REACTION_YIELD_INIT || reaction == PS_REACTION_LOOK_UP;
}

const char *pserver_version(void) { return PSERVER_VERSION; }

/* The details of a thread's last error: one JSON object of bounded size. */

/** Begins an entry; end_entry() removes it if it does not fit. */
static struct ps_json begin_entry(const void *key, size_t bytes) {
  size_t used = strlen(last.details);
  struct ps_json json = {.bytes = last.details, .used = used, .size = sizeof last.details};
  if (used == 0) ps_json_raw(&json, "{");
  else json.used--;
  ps_json_key(&json, used == 0, key, bytes);
  return json;
}

static pserver_status end_entry(struct ps_json *json, size_t used_before) {
  ps_json_raw(json, "}");
  if (json->is_full && used_before > 0) memcpy(last.details + used_before - 1, "}", 2);
  else if (json->is_full) last.details[0] = '\0';
  return last.code;
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
  snprintf(last.details, sizeof last.details, "%s", json);
  return last.code;
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

pserver_status ps_check_struct_size(const char *what, size_t expected, size_t received, const char *init) {
  if (expected == received) return PSERVER_OK;
  ps_fail(PSERVER_ERR_BAD_VALUE, "%s: struct_size: expected %zu; received %zu%s%s", what, expected,
          received, init == NULL ? "" : ": fill the options with ", init == NULL ? "" : init);
  return ps_detail_numbers(expected, received);
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
