#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"

/** The maximum number of bytes of a line, including the final zero, and of its words. */
#define LINE_BYTES (1 << 14)
#define WORDS_MAX 1024

/** The words of a line, to be taken in order. */
struct words {
  char text[LINE_BYTES];
  const char *items[WORDS_MAX];
  size_t count;
  size_t next;
};

void split_words(struct words *words, const char *line);

bool has_more_words(const struct words *words);

/** Takes the next word. Ends the program if there is none, as the following functions do. */
const char *take_word(struct words *words);

/** Takes the next word as a whole number; 0 for a negative one. */
uint64_t take_whole(struct words *words);

int64_t take_ms(struct words *words);

bool take_boolean(struct words *words);

/** Takes the next word, `a:b:c`, as so many parts, which are valid until the next call. */
void take_parts(struct words *words, const char **parts, size_t count);

/** Returns a failure with this code; NULL for `-`. */
struct ps_failure *make_failure(const char *code);

/** Takes the next word as a failure. */
struct ps_failure *take_failure(struct words *words);

/** Returns the code of a failure; `-` for NULL. */
const char *code_of(const struct ps_failure *failure);

/** Whether two texts are the same. */
bool is_same(const char *a, const char *b);

/** Ends the program. */
void stop(const char *why, const char *what);

/** Receives the commands. */
struct listener {
  void *context;
  /** Receives the line of a command, without `< `. Returns the event, without `> `, that the command is to
   * raise; NULL for none. */
  const char *(*heard)(void *context, const char *line);
};

/** Passes a command to the listener. */
const char *tell(const struct listener *listener, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** A part of the core that handles the events of a script; each exists once. */
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
