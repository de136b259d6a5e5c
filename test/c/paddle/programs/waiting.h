#ifndef PADDLE_WAITING_H
#define PADDLE_WAITING_H

/* Trainers that are not selected wait, and one takes over from a trainer that dies: for the revisions whose
 * clients are pointers. */
#include <paddle_pserver_client.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "expect.h"

/** The calls of one revision; those without a result end the program if they fail. */
struct revision {
  /** Returns 1 for the selected trainer; 0 for others, once the parameters are initialized. */
  int (*begin)(paddle_pserver_client *client);
  /** Stores the first value of the parameter. */
  void (*give)(paddle_pserver_client *client);
  int (*finish)(paddle_pserver_client *client);
  /** Checks that the parameter has its first value. */
  void (*expect_first)(paddle_pserver_client *client);
};

static const struct revision *tested;
static atomic_bool may_return;

static void initialize(paddle_pserver_client *client) {
  tested->give(client);
  atomic_store(&may_return, true);
  EXPECT(tested->finish(client) == 0);
}

static void *wait_for_others(void *closure) {
  paddle_pserver_client *client = closure;
  int selected = tested->begin(client);
  EXPECT(selected >= 0);
  EXPECT(atomic_load(&may_return));
  if (selected == 1) initialize(client);
  tested->expect_first(client);
  return selected == 1 ? closure : NULL;
}

/** One trainer is selected and initializes, or dies if the argument is "dies", while two wait. */
static int run_waiting(const struct revision *revision, int argc, char **argv) {
  int dies = argc > 1 && strcmp(argv[1], "dies") == 0;
  pthread_t threads[2];
  paddle_pserver_client *clients[3];
  tested = revision;
  for (int i = 0; i < 3; i++) EXPECT((clients[i] = paddle_new_pserver_client()) != NULL);
  EXPECT(tested->begin(clients[2]) == 1);
  for (int i = 0; i < 2; i++) {
    EXPECT(pthread_create(&threads[i], NULL, wait_for_others, clients[i]) == 0);
  }
  if (dies) {
    atomic_store(&may_return, true);
    paddle_pserver_client_release(clients[2]);
  } else {
    initialize(clients[2]);
  }
  int taken_over = 0;
  for (int i = 0; i < 2; i++) {
    void *result;
    EXPECT(pthread_join(threads[i], &result) == 0);
    if (result != NULL) taken_over++;
  }
  EXPECT(taken_over == (dies ? 1 : 0));
  for (int i = 0; i < 3; i++) paddle_pserver_client_release(clients[i]);
  return 0;
}

#endif
