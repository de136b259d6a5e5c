/*
 * Adds ones to parameters until it has sent every round, whatever happens to host and broker; tells
 * each round. Arguments: URL, job, trainer, rounds, threads. Each thread pushes `rounds` times one to
 * "steps" (one element) and to "wide" (several blocks), and checks that reads never go back.
 */
#include <pserver.h>
#include <pthread.h>
#include <string.h>

#include "expect.h"

#define WIDE ((size_t)5 * 1024 * 1024 / sizeof(float))
#define PATIENCE_MS 60000

struct work {
  pserver_client *client;
  int rounds;
  int number;
};

static void initialize(pserver_client *client) {
  bool selected = false;
  float zero = 0;
  float *zeros = calloc(WIDE, sizeof(float));
  pserver_tensor steps = {PSERVER_FLOAT32, 1, {1}, &zero, sizeof zero};
  pserver_tensor wide = {PSERVER_FLOAT32, 1, {WIDE}, zeros, WIDE * sizeof(float)};
  EXPECT_OK(pserver_begin_init(client, true, PATIENCE_MS, &selected));
  if (selected) {
    EXPECT_OK(pserver_init_param(client, "steps", &steps, NULL, PATIENCE_MS));
    EXPECT_OK(pserver_init_param(client, "wide", &wide, NULL, PATIENCE_MS));
    EXPECT_OK(pserver_finish_init(client, PATIENCE_MS));
  }
  free(zeros);
}

static void *work(void *argument) {
  struct work *mine = argument;
  float one = 1;
  float *ones = malloc(WIDE * sizeof(float));
  float *read = malloc(WIDE * sizeof(float));
  for (size_t i = 0; i < WIDE; i++) ones[i] = 1;
  pserver_tensor steps = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, &one, sizeof one};
  pserver_tensor wide = {
      PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, ones, WIDE * sizeof(float)};
  float before = 0;
  for (int round = 1; round <= mine->rounds; round++) {
    const char *name = "wide";
    pserver_tensor got = {PSERVER_FLOAT32, 0, {0}, read, WIDE * sizeof(float)};
    EXPECT_OK(pserver_push(mine->client, "steps", &steps, 1, 1, PSERVER_AS_IS, PATIENCE_MS));
    EXPECT_OK(pserver_push(mine->client, "wide", &wide, 1, 1, PSERVER_AS_IS, PATIENCE_MS));
    EXPECT_OK(pserver_get(mine->client, &name, &got, 1, PSERVER_AS_IS, PATIENCE_MS));
    EXPECT(read[WIDE - 1] >= before + 1 || round == 1);
    before = read[WIDE - 1];
    printf("round %d %d\n", mine->number, round);
    fflush(stdout);
  }
  free(ones);
  free(read);
  return NULL;
}

int main(int argc, char **argv) {
  EXPECT(argc == 6);
  pserver_options options;
  pserver_client *client = NULL;
  pthread_t threads[8];
  struct work works[8];
  int count = atoi(argv[5]);
  EXPECT(count > 0 && count <= 8);
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = argv[3];
  options.connect_timeout_ms = PATIENCE_MS;
  EXPECT_OK(pserver_connect(&options, &client));
  initialize(client);
  printf("ready\n");
  fflush(stdout);
  for (int i = 0; i < count; i++) {
    works[i] = (struct work){client, atoi(argv[4]), i};
    EXPECT(pthread_create(&threads[i], NULL, work, &works[i]) == 0);
  }
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  EXPECT_OK(pserver_close(client, -1));
  printf("done\n");
  return 0;
}
