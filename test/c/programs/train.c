/*
 * Adds ones to parameters until it has sent every round, whatever happens to host and broker; tells each
 * round. Arguments: URL, job, trainer, rounds, threads. Each thread pushes `rounds` times one to "steps"
 * (one element) and to "wide" (several blocks), and checks that reads never go back; and sends gradients
 * that add one to "small.0" to "small.23" and to row 1 of "table", and two to row 3, which go in batches if
 * the job takes them.
 */
#include <pserver.h>
#include <pthread.h>
#include <string.h>

#include "expect.h"

#define WIDE ((size_t)5 * 1024 * 1024 / sizeof(float))
#define SMALL 24
#define SMALL_ELEMENTS 8
#define ROWS 400
#define ROW_ELEMENTS 2
#define RETRY_MS 60000

struct work {
  pserver_client *client;
  int rounds;
  int number;
};

static void small_name(char name[24], int i) { snprintf(name, 24, "small.%d", i); }

static void initialize_small(pserver_client *client) {
  char name[24];
  float zeros[ROWS * ROW_ELEMENTS] = {0};
  pserver_config plain = {.text = "{\"learningRate\": 1}"};
  pserver_config sparse = {.text = "{\"learningRate\": 1, \"sparse\": true}"};
  pserver_tensor small = {PSERVER_FLOAT32, 1, {SMALL_ELEMENTS}, zeros, SMALL_ELEMENTS * sizeof(float)};
  pserver_tensor table = {PSERVER_FLOAT32, 2, {ROWS, ROW_ELEMENTS}, zeros, sizeof zeros};
  for (int i = 0; i < SMALL; i++) {
    small_name(name, i);
    EXPECT_OK(pserver_init_param(client, name, &small, &plain, RETRY_MS));
  }
  EXPECT_OK(pserver_init_param(client, "table", &table, &sparse, RETRY_MS));
}

static void send_small_grads(pserver_client *client) {
  static const int64_t rows[] = {3, 1, 3};
  char names[SMALL][24];
  float ones[SMALL_ELEMENTS];
  pserver_gradient grads[SMALL + 1];
  for (int i = 0; i < SMALL_ELEMENTS; i++) ones[i] = -1;
  pserver_tensor small = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, ones, sizeof ones};
  for (int i = 0; i < SMALL; i++) {
    small_name(names[i], i);
    grads[i] = (pserver_gradient){names[i], small, NULL, 0};
  }
  pserver_tensor named = {PSERVER_FLOAT32, 2, {3, ROW_ELEMENTS}, ones, 3 * ROW_ELEMENTS * sizeof(float)};
  grads[SMALL] = (pserver_gradient){"table", named, rows, 3};
  EXPECT_OK(pserver_send_grads(client, grads, SMALL + 1, NULL, RETRY_MS));
}

static void initialize(pserver_client *client) {
  bool selected = false;
  float zero = 0;
  float *zeros = calloc(WIDE, sizeof(float));
  pserver_tensor steps = {PSERVER_FLOAT32, 1, {1}, &zero, sizeof zero};
  pserver_tensor wide = {PSERVER_FLOAT32, 1, {WIDE}, zeros, WIDE * sizeof(float)};
  EXPECT_OK(pserver_begin_init(client, true, RETRY_MS, &selected));
  if (selected) {
    EXPECT_OK(pserver_init_param(client, "steps", &steps, NULL, RETRY_MS));
    EXPECT_OK(pserver_init_param(client, "wide", &wide, NULL, RETRY_MS));
    initialize_small(client);
    EXPECT_OK(pserver_finish_init(client, RETRY_MS));
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
    EXPECT_OK(pserver_push(mine->client, "steps", &steps, 1, 1, PSERVER_AS_IS, RETRY_MS));
    EXPECT_OK(pserver_push(mine->client, "wide", &wide, 1, 1, PSERVER_AS_IS, RETRY_MS));
    send_small_grads(mine->client);
    EXPECT_OK(pserver_get(mine->client, &name, &got, 1, PSERVER_AS_IS, RETRY_MS));
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
  options.connect_timeout_ms = RETRY_MS;
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
