#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names as subject tokens: letters, digits, _ and - stay, any other byte becomes =HH. */

/** The maximum length of a name in an error text. */
#define SHOWN_CHARACTERS 60
#define SHOWN_BYTES (4 * SHOWN_CHARACTERS)

static bool is_plain(uint8_t byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
         byte == '_' || byte == '-';
}

/** Whether a name is UTF-8, in which C0 80 stands for a NUL. */
static bool is_text(const char *name, size_t bytes) {
  while (bytes > 0) {
    size_t taken = ps_is_nul_of_name(name, bytes) ? 2 : ps_utf8_sequence(name, bytes);
    if (taken == 0) return false;
    name += taken;
    bytes -= taken;
  }
  return true;
}

/** Bytes of a quoted name: a byte that is not UTF-8 becomes three. */
#define QUOTED_SIZE (3 * SHOWN_BYTES + sizeof "\"…\"")

/** Returns the bytes of the characters that an error text shows. */
static size_t shown_bytes(const char *name, size_t bytes) {
  size_t characters = 0;
  for (size_t i = 0; i < bytes && i < SHOWN_BYTES; i++) {
    bool begins = ((uint8_t)name[i] & 0xc0) != 0x80;
    if (begins && ++characters > SHOWN_CHARACTERS) return i;
  }
  return bytes < SHOWN_BYTES ? bytes : SHOWN_BYTES;
}

/** Quotes a name for an error text, as JSON does; a long one is cut and ends with an ellipsis. */
static void quote_name(char quoted[QUOTED_SIZE], const char *name, size_t bytes) {
  char shown[SHOWN_BYTES + sizeof "…"];
  struct ps_json json = {.bytes = quoted, .size = QUOTED_SIZE};
  if (name == NULL) {
    memcpy(quoted, "NULL", sizeof "NULL");
    return;
  }
  size_t used = shown_bytes(name, bytes);
  memcpy(shown, name, used);
  if (used < bytes) {
    memcpy(shown + used, "…", strlen("…"));
    used += strlen("…");
  }
  ps_json_text(&json, shown, used);
}

/** Fails with BAD_NAME for a name. */
static pserver_status bad_name(const char *what, const char *expected, const char *name, size_t bytes) {
  char quoted[QUOTED_SIZE];
  quote_name(quoted, name, bytes);
  ps_fail(PSERVER_ERR_BAD_NAME, "%s: expected %s; received %s", what, expected, quoted);
  ps_detail_text("expected", expected);
  return ps_detail_text("received", quoted);
}

static pserver_status escape(const char *what, const char *name, size_t bytes, size_t bytes_max,
                             char *token) {
  static const char digits[] = "0123456789ABCDEF";
  if (name == NULL || bytes == 0 || !is_text(name, bytes)) {
    return bad_name(what, "well-formed text that is not empty", name, bytes);
  }
  size_t used = 0;
  for (size_t i = 0; i < bytes; i++) {
    uint8_t byte = (uint8_t)name[i];
    if (ps_is_nul_of_name(name + i, bytes - i)) {
      byte = 0;
      i++;
    }
    if (used + (is_plain(byte) ? 1 : 3) > bytes_max) {
      char expected[64];
      snprintf(expected, sizeof expected, "at most %zu bytes once escaped", bytes_max);
      return bad_name(what, expected, name, bytes);
    }
    if (is_plain(byte)) {
      token[used++] = (char)byte;
      continue;
    }
    token[used++] = '=';
    token[used++] = digits[byte >> 4];
    token[used++] = digits[byte & 15];
  }
  token[used] = '\0';
  return PSERVER_OK;
}

pserver_status ps_escape_name(const char *name, size_t bytes, char token[PS_TOKEN_SIZE]) {
  return escape("parameter name", name, bytes, PS_NAME_BYTES_MAX, token);
}

pserver_status ps_escape_id(const char *id, char token[PS_ID_SIZE]) {
  return escape("trainer id", id, id == NULL ? 0 : strlen(id), PS_ID_BYTES_MAX, token);
}

pserver_status ps_check_job_name(const char *job) {
  size_t bytes = job == NULL ? 0 : strlen(job);
  bool is_valid = bytes > 0 && bytes <= PS_JOB_BYTES_MAX;
  for (size_t i = 0; i < bytes && is_valid; i++) {
    is_valid = is_plain((uint8_t)job[i]) && job[i] != '_';
  }
  if (is_valid) return PSERVER_OK;
  return bad_name("job name", "1 to 40 characters of A-Z a-z 0-9 -", job, bytes);
}

void ps_pack_name(struct ps_draft *draft, const char *name) {
  char plain[PS_NAME_BYTES_MAX];
  size_t bytes = 0;
  for (; *name != '\0' && bytes < sizeof plain; name++) {
    bool is_nul = ps_is_nul_of_name(name, 2);
    plain[bytes++] = is_nul ? '\0' : *name;
    if (is_nul) name++;
  }
  ps_pack_text(draft, plain, bytes);
}

char *ps_name_of_text(const void *text, size_t bytes) {
  const char *from = text;
  char *name = malloc(2 * bytes + 1);
  char *to = name;
  for (size_t i = 0; i < bytes && name != NULL; i++) {
    if (from[i] != '\0') {
      *to++ = from[i];
      continue;
    }
    *to++ = '\xc0';
    *to++ = '\x80';
  }
  if (name != NULL) *to = '\0';
  return name;
}

uint32_t ps_name_hash(const char *name, size_t bytes) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ (uint8_t)name[i]) * 16777619u;
  return hash;
}
