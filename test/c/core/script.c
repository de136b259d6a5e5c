/* Lines of scripts. */
#include "script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors/errors.h"
#include "failing-memory.h"
#include "pserver.h"

void stop(const char *why, const char *what) {
  fprintf(stderr, "%s: %s\n", why, what);
  exit(2);
}

void split_words(struct words *words, const char *line) {
  if (strlen(line) >= LINE_BYTES) stop("a line is too long", line);
  strcpy(words->text, line);
  words->count = 0;
  words->next = 0;
  char *rest = NULL;
  for (char *word = strtok_r(words->text, " ", &rest); word != NULL;
       word = strtok_r(NULL, " ", &rest)) {
    if (words->count == WORDS_MAX) stop("a line has too many words", line);
    words->items[words->count++] = word;
  }
}

bool has_more_words(const struct words *words) { return words->next < words->count; }

const char *take_word(struct words *words) {
  if (!has_more_words(words)) stop("a line is too short", words->text);
  return words->items[words->next++];
}

static uint64_t to_whole(const char *text) {
  char *end = NULL;
  int64_t number = strtoll(text, &end, 10);
  if (*text == '\0' || *end != '\0') stop("not a number", text);
  return number < 0 ? 0 : (uint64_t)number;
}

uint64_t take_whole(struct words *words) { return to_whole(take_word(words)); }
int64_t take_ms(struct words *words) { return (int64_t)take_whole(words); }
bool take_boolean(struct words *words) { return take_whole(words) != 0; }

void take_parts(struct words *words, const char **parts, size_t count) {
  static char text[128];
  char *rest = NULL;
  snprintf(text, sizeof text, "%s", take_word(words));
  for (size_t i = 0; i < count; i++) {
    parts[i] = strtok_r(i == 0 ? text : NULL, ":", &rest);
    if (parts[i] == NULL) stop("a word has too few parts", text);
  }
}

struct ps_failure *make_failure(const char *code) {
  if (is_same(code, "-")) return NULL;
  /* Memory of the I/O layer, which is available also within an event that has none. */
  allow_allocations(-1);
  struct ps_failure *failure = ps_failure_new(ps_status_from_name(code, strlen(code)), code, "");
  if (failure == NULL) stop("no memory", code);
  return failure;
}

struct ps_failure *take_failure(struct words *words) { return make_failure(take_word(words)); }

const char *code_of(const struct ps_failure *failure) {
  return failure == NULL ? "-" : pserver_status_name(failure->code);
}

bool is_same(const char *a, const char *b) { return strcmp(a, b) == 0; }

const char *tell(const struct listener *listener, const char *format, ...) {
  char line[LINE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return listener->heard(listener->context, line);
}
