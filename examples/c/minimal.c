// Learns the line y = 2 x + 1. Its argument is the name of the job, "default" if there is none.
#include <pserver.h>
#include <stdio.h>
#include <stdlib.h>

static void check(pserver_status status) {
  const char *message;
  if (status == PSERVER_OK) return;
  pserver_last_error(&message);
  fprintf(stderr, "%s: %s\n", pserver_status_name(status), message);
  exit(1);
}

int main(int argc, char **argv) {
  float line[2] = {0, 0};
  pserver_tensor value = {PSERVER_FLOAT32, 1, {2}, line, sizeof line};
  pserver_config config = {.text = "{\"learningRate\": 0.1}"};
  const char *names[] = {"line"};

  pserver_options options;
  pserver_options_init(&options);
  options.job = argc > 1 ? argv[1] : "default";
  pserver_client *ps;
  check(pserver_connect(&options, &ps));

  // Of all trainers that begin, exactly one is selected to initialize; the others wait.
  bool selected;
  check(pserver_begin_init(ps, true, PSERVER_TIMEOUT_DEFAULT, &selected));
  if (selected) {
    check(pserver_init_param(ps, "line", &value, &config, PSERVER_TIMEOUT_DEFAULT));
    check(pserver_finish_init(ps, PSERVER_TIMEOUT_DEFAULT));
  }

  for (int step = 0; step < 200; step++) {
    check(pserver_get(ps, names, &value, 1, PSERVER_AS_IS, PSERVER_TIMEOUT_DEFAULT));
    float steps[2] = {0, 0};
    for (int i = 0; i < 32; i++) {
      float x = (float)rand() / (float)RAND_MAX;
      float error = line[0] * x + line[1] - (2 * x + 1);
      steps[0] += 2 * error * x / 32;
      steps[1] += 2 * error / 32;
    }
    pserver_gradient gradient = {.name = "line", .values = value};
    gradient.values.data = steps;
    check(pserver_send_grads(ps, &gradient, 1, NULL, PSERVER_TIMEOUT_DEFAULT));
  }
  printf("y = %.3f x + %.3f\n", line[0], line[1]);
  check(pserver_close(ps, PSERVER_TIMEOUT_DEFAULT));
  return 0;
}
