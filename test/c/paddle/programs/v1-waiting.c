/* Trainers that are not selected wait, and take over from one that dies: revision 1. */
#include <paddle_pserver_client.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "expect.h"

#define FLOATS PADDLE_ELEMENT_TYPE_FLOAT32

static atomic_bool may_return;
static const float first = 42;

static void initialize(paddle_pserver_client *client) {
  EXPECT(paddle_declare_param(client, "w", FLOATS, 1) == 0);
  EXPECT(paddle_init_param(client, "w", FLOATS, &first) == 0);
  atomic_store(&may_return, true);
  EXPECT(paddle_finish_init_param(client) == 0);
}

static void *wait_for_others(void *closure) {
  paddle_pserver_client *client = closure;
  int selected = paddle_begin_init_param(client);
  EXPECT(selected >= 0);
  EXPECT(atomic_load(&may_return));
  if (selected == 1) initialize(client);
  void *content = NULL;
  int bytes = 0;
  EXPECT(paddle_get_param(client, "w", &content, &bytes) == 0);
  EXPECT(bytes == 4 && are_near(content, &first, 1));
  paddle_release_param(&content);
  return selected == 1 ? closure : NULL;
}

int main(int argc, char **argv) {
  int dies = argc > 1 && strcmp(argv[1], "dies") == 0;
  pthread_t threads[2];
  paddle_pserver_client *clients[3];
  for (int i = 0; i < 3; i++) EXPECT((clients[i] = paddle_new_pserver_client()) != NULL);
  EXPECT(paddle_begin_init_param(clients[2]) == 1);
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
