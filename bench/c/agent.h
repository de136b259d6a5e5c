#ifndef AGENT_H
#define AGENT_H

#include <nats/nats.h>
#include <stdbool.h>
#include <stddef.h>

#define ANSWER_BYTES 512
#define ARGUMENTS_MAX 8

/** The answer to a command: values with blanks between them, or why it failed. */
struct answer {
  char text[ANSWER_BYTES];
};

struct command {
  const char *name;
  /** How many it takes. */
  int arguments;
  /** Runs it and fills in the answer; false if it failed. */
  bool (*run)(char **arguments, struct answer *answer);
};

/**
 * Runs the commands on standard input until it ends. Each is a line, its name and arguments with blanks
 * between them, and is answered by a line: "ok" or "error", and the answer.
 */
void serve_agent(const struct command *commands, size_t count);

/** Makes the text the answer. Returns false, so that a command can return the call. */
bool refuse(struct answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Whether a call of NATS's client succeeded; if not, answers with `what` and the status. */
bool nats_is_ok(natsStatus status, const char *what, struct answer *answer);

/** The machine's monotonic clock in milliseconds; the same for all processes. */
double machine_ms(void);

#endif
