/*
 * Scripts of the trainer core. `play` reads scripts from standard input, takes their events and ends with an
 * error at the first command that differs; it prints how many lines it has read. `random FIRST COUNT EVENTS`
 * writes scripts of random events of the outbox, one for each seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random-script.h"
#include "script.h"

/** The script being read: the next line, "" at the end. */
struct reader {
  char line[LINE_BYTES];
  size_t lines;
};

static const struct machine *const machines[] = {&outbox_machine, &session_machine,
                                                 &steps_machine};

/** Reads up to the next line that is not empty. */
static void read_line(struct reader *reader) {
  do {
    if (fgets(reader->line, sizeof reader->line, stdin) == NULL) {
      reader->line[0] = '\0';
      return;
    }
    reader->lines++;
    reader->line[strcspn(reader->line, "\n")] = '\0';
  } while (reader->line[0] == '\0');
}

static void differ(const struct reader *reader, const char *line) {
  fprintf(stderr, "line %zu: expected %s; received %s\n", reader->lines, reader->line, line);
  exit(1);
}

static const char *compare(void *context, const char *line) {
  static char event[256];
  struct reader *reader = context;
  if (strncmp(reader->line, "< ", 2) != 0 || !is_same(reader->line + 2, line)) {
    differ(reader, line);
  }
  read_line(reader);
  if (strncmp(reader->line, "> not-published ", 16) != 0) return NULL;
  snprintf(event, sizeof event, "%s", reader->line + 2);
  read_line(reader);
  return event;
}

/** Begins the machine that a line `# <settings>` names. */
static const struct machine *begin(const struct listener *listener, const char *line) {
  struct words words;
  split_words(&words, line + 1);
  const char *name = take_word(&words);
  for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
    if (!is_same(machines[i]->name, name)) continue;
    machines[i]->begin(listener, &words);
    return machines[i];
  }
  stop("no such machine", name);
  return NULL;
}

static void play(void) {
  struct reader reader = {.lines = 0};
  struct listener listener = {&reader, compare};
  const struct machine *machine = NULL;
  read_line(&reader);
  while (reader.line[0] != '\0') {
    char line[LINE_BYTES];
    struct words words;
    memcpy(line, reader.line, sizeof line);
    bool is_event = strncmp(line, "> ", 2) == 0;
    if (line[0] != '#' && (!is_event || machine == NULL)) differ(&reader, "no command");
    read_line(&reader);
    if (is_event) {
      split_words(&words, line + 2);
      const char *event = take_word(&words);
      machine->take(event, &words);
    } else {
      if (machine != NULL) machine->release();
      machine = begin(&listener, line);
    }
  }
  if (machine != NULL) machine->release();
  printf("%zu\n", reader.lines);
}

int main(int argc, char **argv) {
  if (argc == 2 && is_same(argv[1], "play")) {
    play();
    return 0;
  }
  if (argc != 5 || !is_same(argv[1], "random")) return 2;
  uint64_t first = strtoull(argv[2], NULL, 10);
  uint64_t count = strtoull(argv[3], NULL, 10);
  size_t events = strtoull(argv[4], NULL, 10);
  for (uint64_t seed = first; seed < first + count; seed++) write_random_script(seed, events);
  return 0;
}
