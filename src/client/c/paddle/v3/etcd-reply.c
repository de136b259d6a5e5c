#include "etcd.h"

#include <stdint.h>
#include <string.h>

/* Reads replies of etcd's HTTP gateway: JSON whose keys and values are base64. The entries are flat objects
 * of strings and numbers, so only that subset of JSON is supported. */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool ps_base64_encode(const char *text, char *target, size_t size) {
  size_t length = strlen(text);
  if (size < (length + 2) / 3 * 4 + 1) return false;
  for (size_t i = 0; i < length; i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; k++) bits = bits << 8 | (i + k < length ? (unsigned char)text[i + k] : 0);
    for (size_t k = 0; k < 4; k++) {
      *target++ = i + k > length ? '=' : digits[bits >> (18 - 6 * k) & 63];
    }
  }
  *target = '\0';
  return true;
}

/** Decodes base64 to text; "" if it is invalid, does not fit, or contains a zero byte. */
static void decode(const char *from, size_t length, char target[PS_ETCD_TEXT_SIZE]) {
  size_t used = 0;
  uint32_t bits = 0;
  size_t i = 0;
  target[0] = '\0';
  for (; i < length && from[i] != '='; i++) {
    const char *digit = strchr(digits, from[i]);
    if (digit == NULL || used + 1 >= PS_ETCD_TEXT_SIZE) break;
    bits = bits << 6 | (uint32_t)(digit - digits);
    if (i % 4 > 0) target[used++] = (char)(bits >> (6 - 2 * (i % 4)) & 0xff);
  }
  bool is_whole = i + strspn(from + i, "=") >= length && memchr(target, '\0', used) == NULL;
  target[is_whole ? used : 0] = '\0';
}

static const char *skip_blanks(const char *at) { return at + strspn(at, " \t\r\n"); }

/** Reads a string without escapes; returns where it ends, NULL if there is none. */
static const char *read_string(const char *at, const char **text, size_t *length) {
  at = skip_blanks(at);
  if (*at != '"') return NULL;
  *text = ++at;
  *length = strcspn(at, "\"\\");
  return at[*length] == '"' ? at + *length + 1 : NULL;
}

static bool is_named(const char *text, size_t length, const char *name) {
  return length == strlen(name) && memcmp(text, name, length) == 0;
}

/** Reads `"name": "value"`, or a number as value; returns where it ends, NULL if there is none. */
static const char *read_member(const char *at, char key[PS_ETCD_TEXT_SIZE],
                               char value[PS_ETCD_TEXT_SIZE]) {
  const char *name;
  size_t name_length;
  at = read_string(at, &name, &name_length);
  if (at == NULL) return NULL;
  at = skip_blanks(at);
  if (*at != ':') return NULL;
  at = skip_blanks(at + 1);
  if (*at != '"') return at + strspn(at, "-0123456789");
  const char *text;
  size_t length;
  at = read_string(at, &text, &length);
  if (at == NULL) return NULL;
  if (is_named(name, name_length, "key")) decode(text, length, key);
  if (is_named(name, name_length, "value")) decode(text, length, value);
  return at;
}

/** Whether the text is one whole object, and not a reply that was cut off. */
static bool is_whole_object(const char *json) {
  int depth = 0;
  json = skip_blanks(json);
  if (*json != '{') return false;
  do {
    if (*json == '"') {
      for (json++; *json != '"' && *json != '\0'; json++) {
        if (*json == '\\' && json[1] != '\0') json++;
      }
    }
    if (*json == '\0') return false;
    if (*json == '{' || *json == '[') depth++;
    if (*json == '}' || *json == ']') depth--;
    json++;
  } while (depth > 0);
  return *skip_blanks(json) == '\0';
}

bool ps_etcd_reply_open(struct ps_etcd_reply *reply, const char *json) {
  if (!is_whole_object(json) || strstr(json, "\"header\"") == NULL) return false;
  const char *list = strstr(json, "\"kvs\"");
  reply->at = list == NULL ? "]" : strchr(list, '[');
  if (reply->at == NULL) return false;
  if (*reply->at == '[') reply->at++;
  return true;
}

bool ps_etcd_reply_next(struct ps_etcd_reply *reply, char key[PS_ETCD_TEXT_SIZE],
                        char value[PS_ETCD_TEXT_SIZE]) {
  key[0] = value[0] = '\0';
  const char *at = skip_blanks(reply->at);
  if (*at == ',') at = skip_blanks(at + 1);
  if (*at != '{') return false;
  do {
    at = read_member(at + 1, key, value);
    if (at == NULL) return false;
    at = skip_blanks(at);
  } while (*at == ',');
  if (*at != '}') return false;
  reply->at = at + 1;
  return true;
}
