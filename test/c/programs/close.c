/* Repeatedly closes a client while other threads use it; a second client of the process is not affected.
 * Arguments: URL, job, times. */
#include <pserver.h>
#include <pthread.h>
#include <string.h>

#include "expect.h"

#define THREADS 3
#define ELEMENTS ((size_t)512 * 1024)

struct user {
  pserver_client *client;
  pthread_t thread;
  float *values;
  size_t calls;
};

static pserver_client *connect_to(char **argv, const char *trainer) {
  pserver_options options;
  pserver_client *client = NULL;
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = trainer;
  EXPECT_OK(pserver_connect(&options, &client));
  return client;
}

/** Pushes and pulls until the client is closed; nothing else may go wrong. */
static void *use(void *argument) {
  struct user *user = argument;
  const char *name = "shared";
  pserver_tensor mine = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, user->values,
                         ELEMENTS * sizeof(float)};
  while (true) {
    pserver_tensor got = {0};
    pserver_status status = pserver_push(user->client, name, &mine, 1, 0, PSERVER_AS_IS, -1);
    if (status == PSERVER_OK) {
      status = pserver_get(user->client, &name, &got, 1, PSERVER_AS_IS, -1);
      pserver_tensor_release(&got);
    }
    if (status == PSERVER_ERR_CLOSED) return NULL;
    EXPECT(status == PSERVER_OK);
    user->calls++;
  }
}

static void round_of(char **argv) {
  struct user users[THREADS];
  pserver_client *client = connect_to(argv, NULL);
  for (int i = 0; i < THREADS; i++) {
    users[i] = (struct user){.client = client, .values = calloc(ELEMENTS, sizeof(float))};
    EXPECT(pthread_create(&users[i].thread, NULL, use, &users[i]) == 0);
  }
  pserver_job_info info;
  EXPECT_OK(pserver_job_status(client, &info, -1));
  /* Without time for the calls under way, they are ended. */
  EXPECT_OK(pserver_close(client, 0));
  EXPECT_ERROR(CLOSED, pserver_close(client, 0));
  for (int i = 0; i < THREADS; i++) {
    pthread_join(users[i].thread, NULL);
    free(users[i].values);
  }
}

int main(int argc, char **argv) {
  EXPECT(argc == 4);
  pserver_client *other = connect_to(argv, "other");
  float *zeros = calloc(ELEMENTS, sizeof(float));
  pserver_tensor value = {PSERVER_FLOAT32, 1, {ELEMENTS}, zeros, ELEMENTS * sizeof(float)};
  EXPECT_OK(pserver_create(other, "shared", &value, NULL, -1, NULL));
  for (int i = 0; i < atoi(argv[3]); i++) {
    round_of(argv);
    EXPECT_OK(pserver_push(other, "shared", &value, 1, 1, PSERVER_AS_IS, -1));
  }
  EXPECT_OK(pserver_close(other, -1));
  free(zeros);
  return 0;
}
