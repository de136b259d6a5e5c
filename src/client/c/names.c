/* Names as subject tokens: letters, digits, _ and - stay, any other byte becomes =HH. */
#include "names.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "errors.h"
#include "utf8.h"

/** What a message shows of a name at most. */
#define SHOWN_BYTES 60

static bool is_plain(uint8_t byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
}

static pserver_status escape(const char *what, const char *name, size_t bytes, size_t bytes_max,
                             char *token) {
  static const char digits[] = "0123456789ABCDEF";
  if (name == NULL || bytes == 0 || !is_utf8(name, bytes)) {
    return fail(PSERVER_ERR_BAD_NAME, "%s: expected text in UTF-8 that is not empty; received %s",
                what, name == NULL ? "NULL" : bytes == 0 ? "\"\"" : "other bytes");
  }
  size_t used = 0;
  for (size_t i = 0; i < bytes; i++) {
    uint8_t byte = (uint8_t)name[i];
    if (used + (is_plain(byte) ? 1 : 3) > bytes_max) {
      int shown = bytes < SHOWN_BYTES ? (int)bytes : SHOWN_BYTES;
      return fail(PSERVER_ERR_BAD_NAME,
                  "%s: expected at most %zu bytes once escaped; received \"%.*s\"…", what, bytes_max,
                  shown, name);
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

pserver_status escape_name(const char *name, size_t bytes, char token[TOKEN_ROOM]) {
  return escape("parameter name", name, bytes, NAME_BYTES_MAX, token);
}

pserver_status escape_id(const char *id, char token[ID_ROOM]) {
  return escape("trainer id", id, id == NULL ? 0 : strlen(id), ID_BYTES_MAX, token);
}

pserver_status check_job_name(const char *job) {
  size_t bytes = job == NULL ? 0 : strlen(job);
  bool is_valid = bytes > 0 && bytes <= JOB_BYTES_MAX;
  for (size_t i = 0; i < bytes && is_valid; i++) {
    is_valid = is_plain((uint8_t)job[i]) && job[i] != '_';
  }
  if (is_valid) return PSERVER_OK;
  return fail(PSERVER_ERR_BAD_NAME,
              "job name: expected 1 to 40 characters of A-Z a-z 0-9 -; received %s%.60s%s",
              job == NULL ? "NULL" : "\"", job == NULL ? "" : job, job == NULL ? "" : "\"");
}
