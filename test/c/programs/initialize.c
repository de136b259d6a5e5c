/*
 * Initializes parameters of several blocks as it is told: a line is "init" or "create", a parameter, the
 * value of all elements, and the milliseconds that the call has; "finish" ends the initialization. Each
 * is answered with what came of it. Arguments: URL, job.
 */
#include <pserver.h>
#include <string.h>

#include "expect.h"

#define WIDE ((size_t)2 * 1024 * 1024)

static float values[WIDE];

static pserver_status obey(pserver_client *client, const char *line) {
  char verb[8];
  char name[16];
  float value = 0;
  int timeout_ms = 0;
  if (strncmp(line, "finish", 6) == 0) return pserver_finish_init(client, -1);
  EXPECT(sscanf(line, "%7s %15s %f %d", verb, name, &value, &timeout_ms) == 4);
  for (size_t i = 0; i < WIDE; i++) values[i] = value;
  pserver_tensor tensor = {PSERVER_FLOAT32, 1, {WIDE}, values, sizeof values};
  if (strcmp(verb, "init") == 0) return pserver_init_param(client, name, &tensor, NULL, timeout_ms);
  return pserver_create(client, name, &tensor, NULL, timeout_ms, NULL);
}

int main(int argc, char **argv) {
  EXPECT(argc == 3);
  char line[64];
  bool selected = false;
  pserver_options options;
  pserver_client *client = NULL;
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = "c";
  options.connect_timeout_ms = 400000;
  EXPECT_OK(pserver_connect(&options, &client));
  EXPECT_OK(pserver_begin_init(client, true, -1, &selected));
  EXPECT(selected);
  while (fgets(line, sizeof line, stdin) != NULL) {
    printf("%s\n", pserver_status_name(obey(client, line)));
    fflush(stdout);
  }
  EXPECT_OK(pserver_close(client, -1));
  return 0;
}
