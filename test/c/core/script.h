#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/failure.h"

/** Bytes of a line at most, the final zero included, and words of one. */
#define LINE_BYTES (1 << 14)
#define WORDS_MAX 1024

/** The words of a line, which are taken in order. */
struct words {
  char text[LINE_BYTES];
  const char *items[WORDS_MAX];
  size_t count;
  size_t next;
};

void split_words(struct words *words, const char *line);

bool has_more_words(const struct words *words);

/** The next word. Ends the program if there is none, as the following do. */
const char *take_word(struct words *words);

/** The next word as a whole number; 0 for a negative one. */
uint64_t take_whole(struct words *words);

int64_t take_ms(struct words *words);

bool take_boolean(struct words *words);

/** The next word, `a:b:c`, as so many parts, which stay until the next call. */
void take_parts(struct words *words, const char **parts, size_t count);

/** A failure with this code; NULL for `-`. */
struct ps_failure *make_failure(const char *code);

/** The next word as a failure. */
struct ps_failure *take_failure(struct words *words);

/** The code of a failure; `-` for none. */
const char *code_of(const struct ps_failure *failure);

/** Whether two texts are the same. */
bool is_same(const char *a, const char *b);

/** Ends the program. */
void stop(const char *why, const char *what);

/** Who hears of commands. */
struct listener {
  void *context;
  /**
   * Takes the line of a command, without `< `. Returns the event, without `> `, to be raised inside the
   * command; NULL for none.
   */
  const char *(*heard)(void *context, const char *line);
};

/** Has the listener hear of a command. */
const char *tell(const struct listener *listener, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Part of the core that takes events of scripts; there is one of each at a time. */
struct machine {
  /** The first word of its settings. */
  const char *name;
  void (*begin)(const struct listener *listener, struct words *settings);
  void (*take)(const char *event, struct words *words);
  void (*release)(void);
};

extern const struct machine outbox_machine;
extern const struct machine session_machine;
extern const struct machine steps_machine;

#endif
