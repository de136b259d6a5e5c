#ifndef AGENT_H
#define AGENT_H

#include <nats/nats.h>
#include <stdbool.h>
#include <stddef.h>

#define ANSWER_BYTES 512
#define ARGUMENTS_MAX 8

/** What a command answers: values with blanks between them, or why it failed. */
struct answer {
  char text[ANSWER_BYTES];
};

struct command {
  const char *name;
  int arguments;
  /** Whether it succeeded. */
  bool (*run)(char **arguments, struct answer *answer);
};

/**
 * Runs the commands that come on standard input, one a line, the name and its arguments with blanks
 * between them, and writes a line for each, "ok" or "error" and the answer, until the input ends.
 */
void serve_agent(const struct command *commands, size_t count);

/** Always false, so that a command can return it. */
bool refuse(struct answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** What a call of cnats returned: refuses unless it is NATS_OK. */
bool nats_is_ok(natsStatus status, const char *what, struct answer *answer);

/** Milliseconds on the machine's monotonic clock, which all its processes share. */
double machine_ms(void);

#endif
