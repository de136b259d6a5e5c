/*
 * One of two trainers of a synchronized job that send gradients of many rows: in each step every element
 * of the named rows gets its number in the gradient, modulo 128, times the trainer's factor. The first
 * row is named twice. Arguments: URL, job, trainer, rows of "table", elements of a row, named rows, factor,
 * steps.
 */
#include <pserver.h>

#include "expect.h"

#define RETRY_MS 60000

static void initialize(pserver_client *client, size_t rows, size_t width) {
  bool selected = false;
  float *zeros = calloc(rows * width, sizeof(float));
  pserver_config config = {.text = "{\"learningRate\": 1, \"sparse\": true}"};
  pserver_tensor table = {PSERVER_FLOAT32, 2, {rows, width}, zeros, rows * width * sizeof(float)};
  EXPECT_OK(pserver_begin_init(client, true, RETRY_MS, &selected));
  if (selected) {
    EXPECT_OK(pserver_init_param(client, "table", &table, &config, RETRY_MS));
    EXPECT_OK(pserver_finish_init(client, RETRY_MS));
  }
  free(zeros);
}

int main(int argc, char **argv) {
  EXPECT(argc == 9);
  size_t rows = (size_t)atoi(argv[4]);
  size_t width = (size_t)atoi(argv[5]);
  size_t named = (size_t)atoi(argv[6]);
  float factor = (float)atof(argv[7]);
  pserver_options options;
  pserver_grad_options grad_options;
  pserver_client *client = NULL;
  size_t late = 1;
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = argv[3];
  EXPECT_OK(pserver_connect(&options, &client));
  initialize(client, rows, width);
  /* The last row comes first, and the first row again at the end. */
  int64_t *numbers = malloc((named + 1) * sizeof(int64_t));
  float *values = malloc((named + 1) * width * sizeof(float));
  for (size_t i = 0; i <= named; i++) numbers[i] = i == named ? 0 : (int64_t)(named - 1 - i);
  for (size_t i = 0; i < (named + 1) * width; i++) values[i] = factor * (float)(i % 128);
  pserver_tensor tensor = {
      PSERVER_FLOAT32, 2, {named + 1, width}, values, (named + 1) * width * sizeof(float)};
  pserver_gradient grad = {"table", tensor, numbers, named + 1};
  pserver_grad_options_init(&grad_options);
  grad_options.late_blocks = &late;
  for (int step = 1; step <= atoi(argv[8]); step++) {
    EXPECT_OK(pserver_send_grads(client, &grad, 1, &grad_options, RETRY_MS));
    EXPECT(late == 0);
  }
  EXPECT_OK(pserver_exit_steps(client, RETRY_MS));
  EXPECT_OK(pserver_close(client, -1));
  free(numbers);
  free(values);
  return 0;
}
