/* Reads commands of the benchmark and writes their answers. */
#include "agent.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LINE_BYTES 4096

static bool run_line(const struct command *commands, size_t count, char *line,
                     struct answer *answer) {
  char *arguments[ARGUMENTS_MAX];
  char *rest = NULL;
  const char *name = strtok_r(line, " \n", &rest);
  int given = 0;
  if (name == NULL) return refuse(answer, "expected a command; received none");
  char *word = strtok_r(NULL, " \n", &rest);
  for (; word != NULL; word = strtok_r(NULL, " \n", &rest)) {
    if (given < ARGUMENTS_MAX) arguments[given] = word;
    given++;
  }
  for (size_t i = 0; i < count; i++) {
    if (strcmp(commands[i].name, name) != 0) continue;
    if (commands[i].arguments == given) return commands[i].run(arguments, answer);
    return refuse(answer, "%s: expected %d arguments; received %d", name, commands[i].arguments,
                  given);
  }
  return refuse(answer, "no such command: %s", name);
}

void serve_agent(const struct command *commands, size_t count) {
  char line[LINE_BYTES];
  while (fgets(line, sizeof line, stdin) != NULL) {
    struct answer answer = {""};
    bool is_ok = run_line(commands, count, line, &answer);
    printf("%s %s\n", is_ok ? "ok" : "error", answer.text);
    fflush(stdout);
  }
}

bool refuse(struct answer *answer, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(answer->text, sizeof answer->text, format, values);
  va_end(values);
  return false;
}

double machine_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}
