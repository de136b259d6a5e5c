/*
 * One of two trainers of a job that is synchronized by steps, mean of the gradients: after each step
 * both see it whole, and nothing of the next. Arguments: URL, job, trainer, rounds.
 */
#include <pserver.h>
#include <string.h>

#include "expect.h"

#define WIDE ((size_t)2 * 1024 * 1024)
#define RETRY_MS 60000

static void initialize(pserver_client *client) {
  bool selected = false;
  float zero = 0;
  float *zeros = calloc(WIDE, sizeof(float));
  pserver_config config = {.text = "{\"learningRate\": 1}"};
  pserver_tensor one = {PSERVER_FLOAT32, 1, {1}, &zero, sizeof zero};
  pserver_tensor wide = {PSERVER_FLOAT32, 1, {WIDE}, zeros, WIDE * sizeof(float)};
  EXPECT_OK(pserver_begin_init(client, true, RETRY_MS, &selected));
  if (selected) {
    EXPECT_OK(pserver_init_param(client, "one", &one, &config, RETRY_MS));
    EXPECT_OK(pserver_init_param(client, "wide", &wide, &config, RETRY_MS));
    EXPECT_OK(pserver_finish_init(client, RETRY_MS));
  }
  free(zeros);
}

/** Checks that every element of both has its value after so many steps. */
static void expect_steps(pserver_client *client, int steps, float *read) {
  const char *names[2] = {"one", "wide"};
  float one = 0;
  pserver_tensor got[2] = {{PSERVER_FLOAT32, 0, {0}, &one, sizeof one},
                           {PSERVER_FLOAT32, 0, {0}, read, WIDE * sizeof(float)}};
  EXPECT_OK(pserver_get(client, names, got, 2, PSERVER_AS_IS, RETRY_MS));
  EXPECT(one == (float)-steps);
  for (size_t i = 0; i < WIDE; i++) EXPECT(read[i] == (float)-steps);
}

int main(int argc, char **argv) {
  EXPECT(argc == 5);
  pserver_options options;
  pserver_grad_options later;
  pserver_client *client = NULL;
  size_t late = 1;
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = argv[3];
  EXPECT_OK(pserver_connect(&options, &client));
  initialize(client);
  pserver_grad_options_init(&later);
  later.end_step = false;
  later.late_blocks = &late;
  float one = 1;
  float *ones = malloc(WIDE * sizeof(float));
  float *read = malloc(WIDE * sizeof(float));
  for (size_t i = 0; i < WIDE; i++) ones[i] = 1;
  pserver_gradient grads[2] = {
      {"one", {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, &one, sizeof one}, NULL, 0},
      {"wide", {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, ones, WIDE * sizeof(float)}, NULL, 0}};
  for (int round = 1; round <= atoi(argv[4]); round++) {
    if (round % 2 == 0) {
      /* Sends them in one call, or in two calls and one that ends the step. */
      EXPECT_OK(pserver_send_grads(client, grads, 2, NULL, RETRY_MS));
    } else {
      EXPECT_OK(pserver_send_grads(client, &grads[0], 1, &later, RETRY_MS));
      EXPECT_OK(pserver_send_grads(client, &grads[1], 1, &later, RETRY_MS));
      EXPECT(late == 0);
      EXPECT_OK(pserver_end_step(client, RETRY_MS));
    }
    expect_steps(client, round, read);
  }
  EXPECT_OK(pserver_exit_steps(client, RETRY_MS));
  EXPECT_OK(pserver_close(client, -1));
  free(ones);
  free(read);
  return 0;
}
