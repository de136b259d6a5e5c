/* Reads the JSON of PubAcks: the entries that matter; all others are skipped. */
#include "wire/pub-ack.h"

#include <string.h>

#define DEPTH_MAX 8
#define KEY_SIZE 32

struct text {
  const char *at;
  const char *end;
};

typedef bool (*read_entry)(struct text *text, const char *key, struct ps_pub_ack *ack);

static void skip_space(struct text *text) {
  while (text->at < text->end && memchr(" \t\r\n", *text->at, 4) != NULL) text->at++;
}

static bool take(struct text *text, char character) {
  skip_space(text);
  if (text->at >= text->end || *text->at != character) return false;
  text->at++;
  return true;
}

/** Reads a string, cut to `size` bytes; Unicode escapes become a question mark. */
static bool take_string(struct text *text, char *target, size_t size) {
  if (!take(text, '"')) return false;
  size_t used = 0;
  while (text->at < text->end && *text->at != '"') {
    char character = *text->at++;
    if (character == '\\') {
      if (text->at >= text->end) return false;
      character = *text->at++;
      if (character == 'u') {
        if (text->end - text->at < 4) return false;
        text->at += 4;
        character = '?';
      } else if (strchr("bfnrt", character) != NULL) {
        character = ' ';
      }
    }
    if (used + 1 < size) target[used++] = character;
  }
  target[used] = '\0';
  return take(text, '"');
}

static bool take_whole(struct text *text, uint64_t *number) {
  skip_space(text);
  const char *start = text->at;
  *number = 0;
  while (text->at < text->end && *text->at >= '0' && *text->at <= '9') {
    if (text->at - start >= 16) return false;
    *number = *number * 10 + (uint64_t)(*text->at++ - '0');
  }
  return text->at > start;
}

static bool skip_value(struct text *text, int depth);

static bool skip_entry(struct text *text, int depth, bool has_key) {
  char ignored[KEY_SIZE];
  if (has_key && (!take_string(text, ignored, sizeof ignored) || !take(text, ':'))) return false;
  return skip_value(text, depth + 1);
}

static bool skip_value(struct text *text, int depth) {
  char ignored[KEY_SIZE];
  skip_space(text);
  if (text->at >= text->end || depth > DEPTH_MAX) return false;
  if (*text->at == '"') return take_string(text, ignored, sizeof ignored);
  if (*text->at == '{' || *text->at == '[') {
    bool has_keys = *text->at++ == '{';
    char close = has_keys ? '}' : ']';
    if (take(text, close)) return true;
    do {
      if (!skip_entry(text, depth, has_keys)) return false;
    } while (take(text, ','));
    return take(text, close);
  }
  const char *start = text->at;
  while (text->at < text->end && memchr(",}] \t\r\n", *text->at, 7) == NULL) text->at++;
  return text->at > start;
}

static bool take_object(struct text *text, read_entry read, struct ps_pub_ack *ack) {
  char key[KEY_SIZE];
  if (!take(text, '{')) return false;
  if (take(text, '}')) return true;
  do {
    if (!take_string(text, key, sizeof key) || !take(text, ':')) return false;
    if (!read(text, key, ack)) return false;
  } while (take(text, ','));
  return take(text, '}');
}

static bool read_error_entry(struct text *text, const char *key, struct ps_pub_ack *ack) {
  uint64_t number = 0;
  if (strcmp(key, "description") == 0) {
    return take_string(text, ack->description, sizeof ack->description);
  }
  bool is_code = strcmp(key, "code") == 0;
  if (!is_code && strcmp(key, "err_code") != 0) return skip_value(text, 0);
  if (!take_whole(text, &number)) return false;
  if (is_code) ack->code = (uint32_t)number;
  else ack->error_code = (uint32_t)number;
  return true;
}

static bool read_ack_entry(struct text *text, const char *key, struct ps_pub_ack *ack) {
  if (strcmp(key, "error") == 0) {
    ack->is_error = true;
    return take_object(text, read_error_entry, ack);
  }
  if (strcmp(key, "stream") == 0) return take_string(text, ack->stream, sizeof ack->stream);
  if (strcmp(key, "seq") == 0) return take_whole(text, &ack->seq);
  return skip_value(text, 0);
}

bool ps_read_pub_ack(const char *json, size_t bytes, struct ps_pub_ack *ack) {
  struct text text = {json, json + bytes};
  *ack = (struct ps_pub_ack){0};
  if (!take_object(&text, read_ack_entry, ack)) return false;
  skip_space(&text);
  if (text.at != text.end) return false;
  return ack->is_error || (ack->stream[0] != '\0' && ack->seq > 0);
}
