#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANSWER_BYTES 512
#define ARGUMENTS_MAX 8

/** The answer to a command: values separated by blanks, or the reason why it failed. */
struct answer {
  char text[ANSWER_BYTES];
};

struct command {
  const char *name;
  /** The number of its arguments. */
  int arguments;
  /** Runs the command and fills in the answer; false if it failed. */
  bool (*run)(char **arguments, struct answer *answer);
};

/** Runs the commands on standard input until its end. A command is a line with its name and arguments,
 * separated by blanks; it is answered by a line with "ok" or "error", and the answer. */
void serve_agent(const struct command *commands, size_t count);

/** Makes the text the answer. Returns false, so that a command can end with `return refuse(…)`. */
bool refuse(struct answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Returns the milliseconds of the machine's monotonic clock, which all processes share. */
double machine_ms(void);

#ifdef __cplusplus
}
#endif

#endif
