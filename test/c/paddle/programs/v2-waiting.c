/* Trainers that are not selected wait, and take over from one that dies: revision 2. */
#include <paddle_pserver_client.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "expect.h"

#define FLOATS PADDLE_ELEMENT_TYPE_FLOAT32

static atomic_bool may_return;
static float first = 42;
static const char *names[1] = {"w"};

static void initialize(paddle_pserver_client *client) {
  paddle_parameter value = {(char *)"w", FLOATS, &first, sizeof first};
  EXPECT(paddle_init_param(client, value) == 0);
  atomic_store(&may_return, true);
  EXPECT(paddle_finish_init_params(client) == 0);
}

static void *wait_for_others(void *closure) {
  paddle_pserver_client *client = closure;
  int selected = paddle_begin_init_params(client, NULL);
  EXPECT(selected >= 0);
  EXPECT(atomic_load(&may_return));
  if (selected == 1) initialize(client);
  paddle_parameter got = {0};
  EXPECT(paddle_get_params(client, names, &got, 1) == 0);
  EXPECT(got.content_len == 4 && are_near(got.content, &first, 1));
  paddle_release_params(&got, 1);
  return selected == 1 ? closure : NULL;
}

int main(int argc, char **argv) {
  int dies = argc > 1 && strcmp(argv[1], "dies") == 0;
  pthread_t threads[2];
  paddle_pserver_client *clients[3];
  for (int i = 0; i < 3; i++) EXPECT((clients[i] = paddle_new_pserver_client()) != NULL);
  EXPECT(paddle_begin_init_params(clients[2], NULL) == 1);
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
