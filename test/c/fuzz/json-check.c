/* The grammar of JSON, by recursive descent. */
#include "json-check.h"

#include <ctype.h>
#include <string.h>

#include "formats/formats.h"

static bool take_value(const char **at);

static bool take(const char **at, const char *text) {
  size_t length = strlen(text);
  if (strncmp(*at, text, length) != 0) return false;
  *at += length;
  return true;
}

static bool take_escape(const char **at) {
  if (**at == 'u') {
    for (int i = 1; i <= 4; i++) {
      if (!isxdigit((unsigned char)(*at)[i])) return false;
    }
    *at += 5;
    return true;
  }
  if (**at == '\0' || strchr("\"\\/bfnrt", **at) == NULL) return false;
  (*at)++;
  return true;
}

static bool take_text(const char **at) {
  if (!take(at, "\"")) return false;
  while (**at != '"') {
    if ((unsigned char)**at < 0x20) return false;
    bool is_escape = *(*at)++ == '\\';
    if (is_escape && !take_escape(at)) return false;
  }
  (*at)++;
  return true;
}

static bool take_digits(const char **at) {
  if (!isdigit((unsigned char)**at)) return false;
  while (isdigit((unsigned char)**at)) (*at)++;
  return true;
}

static bool take_number(const char **at) {
  take(at, "-");
  if (!take(at, "0") && !take_digits(at)) return false;
  if (take(at, ".") && !take_digits(at)) return false;
  if (!take(at, "e") && !take(at, "E")) return true;
  if (!take(at, "+")) take(at, "-");
  return take_digits(at);
}

static bool take_members(const char **at, bool has_keys, const char *end) {
  if (take(at, end)) return true;
  do {
    if (has_keys && (!take_text(at) || !take(at, ":"))) return false;
    if (!take_value(at)) return false;
  } while (take(at, ","));
  return take(at, end);
}

static bool take_value(const char **at) {
  if (take(at, "{")) return take_members(at, true, "}");
  if (take(at, "[")) return take_members(at, false, "]");
  if (**at == '"') return take_text(at);
  return take(at, "null") || take(at, "true") || take(at, "false") || take_number(at);
}

bool is_json_object(const char *text) {
  const char *at = text;
  return ps_is_utf8(text, strlen(text)) && *text == '{' && take_value(&at) && *at == '\0';
}
