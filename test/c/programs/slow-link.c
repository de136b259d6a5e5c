/*
 * A trainer that does what it is told by lines: "init NAME VALUE" initializes a parameter, "finish" ends the
 * initialization, "push NAME VALUE" sends a gradient whose elements all have this value, "pull NAME" tells the value
 * that all elements have, "torn" if they differ. No call has a timeout of its own. Each line is answered with what came
 * of it, and the number of the session. Arguments: URL, job, trainer, elements, bytes in flight (0: the default).
 */
#include <inttypes.h>
#include <pserver.h>
#include <string.h>

#include "expect.h"

static float *values;
static size_t elements;

static pserver_tensor filled(float value) {
  for (size_t i = 0; i < elements; i++) values[i] = value;
  return (pserver_tensor){PSERVER_FLOAT32, 1, {elements}, values, elements * sizeof(float)};
}

static void initialize(pserver_client *client, const char *name, float value) {
  pserver_tensor tensor = filled(value);
  pserver_config config = {.text = "{\"learningRate\": 1}"};
  pserver_status status =
      pserver_init_param(client, name, &tensor, &config, PSERVER_TIMEOUT_DEFAULT);
  printf("%s", pserver_status_name(status));
}

static void push(pserver_client *client, const char *name, float value) {
  size_t late = 0;
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.late_blocks = &late;
  pserver_gradient gradient = {.name = name, .values = filled(value)};
  pserver_status status =
      pserver_send_grads(client, &gradient, 1, &options, PSERVER_TIMEOUT_DEFAULT);
  printf("%s late %zu", pserver_status_name(status), late);
}

static void pull(pserver_client *client, const char *name) {
  pserver_tensor tensor = filled(0);
  pserver_status status =
      pserver_get(client, &name, &tensor, 1, PSERVER_AS_IS, PSERVER_TIMEOUT_DEFAULT);
  bool is_torn = false;
  for (size_t i = 1; i < elements; i++) is_torn = is_torn || values[i] != values[0];
  if (status != PSERVER_OK) printf("%s", pserver_status_name(status));
  else if (is_torn) printf("torn");
  else printf("%g", (double)values[0]);
}

static void obey(pserver_client *client, const char *line) {
  char verb[8] = "";
  char name[16] = "";
  float value = 0;
  EXPECT(sscanf(line, "%7s %15s %f", verb, name, &value) >= 1);
  if (strcmp(verb, "init") == 0) initialize(client, name, value);
  else if (strcmp(verb, "push") == 0) push(client, name, value);
  else if (strcmp(verb, "pull") == 0) pull(client, name);
  else printf("%s", pserver_status_name(pserver_finish_init(client, PSERVER_TIMEOUT_DEFAULT)));
}

int main(int argc, char **argv) {
  EXPECT(argc == 6);
  char line[64];
  bool selected = false;
  pserver_options options;
  pserver_client_info info = {.struct_size = sizeof info};
  pserver_client *client = NULL;
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = argv[3];
  options.connect_timeout_ms = 400000;
  elements = strtoull(argv[4], NULL, 10);
  if (strcmp(argv[5], "0") != 0) options.in_flight_bytes = strtoull(argv[5], NULL, 10);
  values = malloc(elements * sizeof(float));
  EXPECT(values != NULL);
  EXPECT_OK(pserver_connect(&options, &client));
  EXPECT_OK(pserver_begin_init(client, true, 400000, &selected));
  while (fgets(line, sizeof line, stdin) != NULL) {
    obey(client, line);
    EXPECT_OK(pserver_describe(client, &info));
    printf(" session %" PRIu64 "\n", info.session);
    fflush(stdout);
  }
  EXPECT_OK(pserver_close(client, -1));
  free(values);
  return 0;
}
