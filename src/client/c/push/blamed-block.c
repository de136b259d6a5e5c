/* Finds the block of a batch that a rejection is about. */
#include "push/blamed-block.h"

#include <stdio.h>
#include <string.h>

#include "push/parameter-update.h"
#include "formats/json.h"

/** UTF-16 units of a name that hosts quote in error texts. */
#define QUOTED_UNITS_MAX 60
/** A unit takes up to six bytes. */
#define QUOTED_BYTES (6 * QUOTED_UNITS_MAX + 16)

/** Appends a byte of a name, escaped as JSON.stringify() of JavaScript does. */
static void append_byte(struct ps_json *json, uint8_t byte) {
  static const char escaped[] = "\b\f\n\r\t\"\\";
  static const char letters[] = "bfnrt\"\\";
  char text[8] = {(char)byte, '\0'};
  const char *found = byte == '\0' ? NULL : strchr(escaped, byte);
  if (found != NULL) snprintf(text, sizeof text, "\\%c", letters[found - escaped]);
  else if (byte < 0x20) snprintf(text, sizeof text, "\\u%04x", byte);
  ps_json_raw(json, text);
}

/** Quotes a name as hosts do in error texts: a long one is cut. */
static void quote(struct ps_json *json, const char *name, size_t bytes) {
  size_t units = 0;
  ps_json_raw(json, "\"");
  for (size_t i = 0; i < bytes; i++) {
    uint8_t byte = (uint8_t)name[i];
    bool is_first = (byte & 0xc0) != 0x80;
    if (is_first && units >= QUOTED_UNITS_MAX) {
      ps_json_raw(json, "\u2026");
      break;
    }
    if (is_first) units += byte >= 0xf0 ? 2 : 1;
    /* The bytes C0 80 stand for a NUL. */
    bool is_nul = byte == 0xc0;
    if (is_nul) ps_json_raw(json, "\\u0000");
    else append_byte(json, byte);
    i += is_nul;
  }
  ps_json_raw(json, "\"");
}

static bool begins_with(const char *text, const struct ps_update_source *source) {
  char quoted[QUOTED_BYTES];
  char rest[32];
  const struct ps_parameter *parameter = source->update->parameter;
  struct ps_json json = {.bytes = quoted, .size = sizeof quoted};
  quote(&json, parameter->name, parameter->name_bytes);
  int rest_bytes = snprintf(rest, sizeof rest, " block %u: ", (unsigned)source->index);
  return !json.is_full && strncmp(text, quoted, json.used) == 0 &&
         strncmp(text + json.used, rest, (size_t)rest_bytes) == 0;
}

const struct ps_update_source *ps_blamed_block(const struct ps_update_record *record, const char *text) {
  const struct ps_update_source *source = record->first;
  if (record->blocks == 1) return source;
  while (source != NULL && !begins_with(text, source)) source = source->next;
  return source;
}
