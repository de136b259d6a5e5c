/*
 * One of several trainers of a job, in whatever language the others are: every round it reads "w" and sends
 * the gradient of half the squared distance to its own target, so that together they come to the mean of
 * their targets, and counts the round in "rounds". After the last it waits for a line, then writes the
 * bytes it reads to a file. Arguments: URL, job, trainer, target, rounds, file.
 */
#include <pserver.h>
#include <string.h>

#include "expect.h"

#define ELEMENTS ((size_t)1024 * 1024)
#define RETRY_MS 60000

static void initialize(pserver_client *client, float *values) {
  bool selected = false;
  pserver_config config = {.text = "{\"learningRate\": 0.1}"};
  pserver_tensor w = {PSERVER_FLOAT32, 1, {ELEMENTS}, values, ELEMENTS * sizeof(float)};
  EXPECT_OK(pserver_begin_init(client, true, RETRY_MS, &selected));
  if (!selected) return;
  EXPECT_OK(pserver_init_param(client, "w", &w, &config, RETRY_MS));
  float none = 0;
  pserver_tensor rounds = {PSERVER_FLOAT32, 1, {1}, &none, sizeof none};
  EXPECT_OK(pserver_init_param(client, "rounds", &rounds, NULL, RETRY_MS));
  EXPECT_OK(pserver_finish_init(client, RETRY_MS));
}

static void read_values(pserver_client *client, float *values) {
  const char *name = "w";
  pserver_tensor got = {PSERVER_FLOAT32, 0, {0}, values, ELEMENTS * sizeof(float)};
  EXPECT_OK(pserver_get(client, &name, &got, 1, PSERVER_AS_IS, RETRY_MS));
}

static void train(pserver_client *client, float target, int rounds, float *values) {
  pserver_tensor gradient = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, values,
                             ELEMENTS * sizeof(float)};
  pserver_gradient sent = {"w", gradient, NULL, 0};
  float one = 1;
  pserver_tensor counted = {PSERVER_FLOAT32, 1, {1}, &one, sizeof one};
  for (int round = 1; round <= rounds; round++) {
    read_values(client, values);
    for (size_t i = 0; i < ELEMENTS; i++) values[i] -= target;
    EXPECT_OK(pserver_send_grads(client, &sent, 1, NULL, RETRY_MS));
    EXPECT_OK(pserver_push(client, "rounds", &counted, 1, 1, PSERVER_AS_IS, RETRY_MS));
    printf("round %d\n", round);
    fflush(stdout);
  }
}

static void write_file(const char *path, const float *values) {
  FILE *file = fopen(path, "wb");
  EXPECT(file != NULL);
  EXPECT(fwrite(values, sizeof(float), ELEMENTS, file) == ELEMENTS);
  EXPECT(fclose(file) == 0);
}

int main(int argc, char **argv) {
  EXPECT(argc == 7);
  char line[16];
  pserver_options options;
  pserver_client *client = NULL;
  float *values = calloc(ELEMENTS, sizeof(float));
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = argv[3];
  EXPECT_OK(pserver_connect(&options, &client));
  initialize(client, values);
  train(client, (float)atof(argv[4]), atoi(argv[5]), values);
  EXPECT_OK(pserver_exit_steps(client, RETRY_MS));
  printf("trained\n");
  fflush(stdout);
  EXPECT(fgets(line, sizeof line, stdin) != NULL);
  read_values(client, values);
  write_file(argv[6], values);
  EXPECT_OK(pserver_close(client, -1));
  free(values);
  return 0;
}
