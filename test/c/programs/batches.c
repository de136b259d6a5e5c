/*
 * One of several trainers that send gradients of many small parameters in each step: of "p.0", "p.1", … of
 * four elements each, of "table", of which three rows come, one of them twice, and of "counts", of
 * integers. Every element that comes gets the trainer's number as its gradient, negative, so that with the
 * learning rate 1 it is added. Before the first step, and after each, it says so and waits for a line.
 * Arguments: URL, job, trainer, number, parameters, steps.
 */
#include <pserver.h>

#include "expect.h"

#define RETRY_MS 60000
#define PARAMETERS_MAX 3000
#define ELEMENTS 4
#define NAME_BYTES 24

static char names[PARAMETERS_MAX][NAME_BYTES];
static pserver_gradient grads[PARAMETERS_MAX + 2];

static void wait_for_line(const char *what) {
  char line[16];
  printf("%s\n", what);
  fflush(stdout);
  EXPECT(fgets(line, sizeof line, stdin) != NULL);
}

/** Fills the gradients that all steps share; returns how many there are. */
static size_t fill_grads(float number, size_t parameters) {
  static float values[ELEMENTS * 2];
  static int64_t counts[2];
  static const int64_t rows[] = {5, 0, 5, 7};
  for (size_t i = 0; i < ELEMENTS * 2; i++) values[i] = -number;
  for (size_t i = 0; i < 2; i++) counts[i] = (int64_t)number;
  pserver_tensor small = {PSERVER_FLOAT32, 1, {ELEMENTS}, values, ELEMENTS * sizeof(float)};
  for (size_t i = 0; i < parameters; i++) {
    snprintf(names[i], NAME_BYTES, "p.%zu", i);
    grads[i] = (pserver_gradient){names[i], small, NULL, 0};
  }
  pserver_tensor named = {PSERVER_FLOAT32, 2, {4, 2}, values, sizeof values};
  grads[parameters] = (pserver_gradient){"table", named, rows, 4};
  pserver_tensor whole = {PSERVER_INT64, 1, {2}, counts, sizeof counts};
  grads[parameters + 1] = (pserver_gradient){"counts", whole, NULL, 0};
  return parameters + 2;
}

int main(int argc, char **argv) {
  EXPECT(argc == 7);
  size_t parameters = strtoull(argv[5], NULL, 10);
  EXPECT(parameters <= PARAMETERS_MAX);
  size_t late = 1;
  pserver_options options;
  pserver_grad_options grad_options;
  pserver_client *client = NULL;
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = argv[3];
  EXPECT_OK(pserver_connect(&options, &client));
  size_t count = fill_grads((float)atof(argv[4]), parameters);
  pserver_grad_options_init(&grad_options);
  grad_options.late_blocks = &late;
  wait_for_line("ready");
  for (int step = 1; step <= atoi(argv[6]); step++) {
    EXPECT_OK(pserver_send_grads(client, grads, count, &grad_options, RETRY_MS));
    EXPECT(late == 0);
    wait_for_line("step");
  }
  EXPECT_OK(pserver_exit_steps(client, RETRY_MS));
  EXPECT_OK(pserver_close(client, -1));
  return 0;
}
