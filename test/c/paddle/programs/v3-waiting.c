/* Revision 3: begin returns at once, get waits; trainers restart, and trainers die. Arguments: what to do,
 * the broker's address (with "etcd" before it, that of etcd). */
#include <paddle_pserver_client.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "expect.h"

static atomic_bool may_return;
static atomic_bool is_started;
static float first = 42;

static paddle_parameter parameter(float *content) {
  return (paddle_parameter){(char *)"w", PADDLE_ELEMENT_TYPE_FLOAT32, (unsigned char *)content,
                            sizeof *content};
}

static int get(paddle_pserver_client client, float *value) {
  paddle_parameter wanted = parameter(value);
  paddle_parameter *list[1] = {&wanted};
  return paddle_get_params(client, list, 1);
}

static void expect_first(paddle_pserver_client client) {
  float value = 0;
  EXPECT(get(client, &value) == 0);
  EXPECT(value == first);
}

static void initialize(paddle_pserver_client client) {
  EXPECT(paddle_init_param(client, parameter(&first), NULL, 0) == 0);
  atomic_store(&may_return, true);
  EXPECT(paddle_finish_init_params(client) == 0);
}

static void *get_first(void *client) {
  expect_first(*(paddle_pserver_client *)client);
  EXPECT(atomic_load(&may_return));
  return NULL;
}

/* The selected trainer, other trainers, and a restart of the selected one after it has finished. */
static void restart(paddle_pserver_client clients[4]) {
  pthread_t threads[2];
  EXPECT(paddle_begin_init_params(clients[0]) == 1);
  EXPECT(paddle_begin_init_params(clients[1]) == 0);
  EXPECT(paddle_begin_init_params(clients[2]) == 0);
  for (int i = 0; i < 2; i++) {
    EXPECT(pthread_create(&threads[i], NULL, get_first, &clients[i + 1]) == 0);
  }
  initialize(clients[0]);
  for (int i = 0; i < 2; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
  paddle_pserver_client_release(clients[0]);
  EXPECT(paddle_begin_init_params(clients[3]) == 0);
  float own = 7;
  EXPECT(paddle_init_param(clients[3], parameter(&own), NULL, 0) == 0);
  EXPECT(paddle_finish_init_params(clients[3]) == 0);
  expect_first(clients[3]);
}

static void *get_until_selected(void *client) {
  float value = 0;
  EXPECT_ERROR("NOT_INITIALIZED", get(*(paddle_pserver_client *)client, &value));
  EXPECT(strstr(paddle_pserver_last_error(), "paddle_begin_init_params") != NULL);
  return NULL;
}

/* The selected trainer dies, and one that gets parameters is told that it is selected. */
static void take_over(paddle_pserver_client clients[4]) {
  pthread_t thread;
  float value = 0;
  EXPECT(paddle_begin_init_params(clients[0]) == 1);
  EXPECT(paddle_begin_init_params(clients[1]) == 0);
  EXPECT(pthread_create(&thread, NULL, get_until_selected, &clients[1]) == 0);
  paddle_pserver_client_release(clients[0]);
  EXPECT(pthread_join(thread, NULL) == 0);
  EXPECT_ERROR("NOT_INITIALIZED", get(clients[1], &value));
  EXPECT(paddle_begin_init_params(clients[1]) == 1);
  initialize(clients[1]);
  expect_first(clients[1]);
  expect_first(clients[2]);
}

static void *get_until_released(void *client) {
  float value = 0;
  atomic_store(&is_started, true);
  EXPECT_ERROR("CLOSED", get(*(paddle_pserver_client *)client, &value));
  return NULL;
}

static void *begin_often(void *client) {
  while (paddle_begin_init_params(*(paddle_pserver_client *)client) >= 0) continue;
  EXPECT(strstr(paddle_pserver_last_error(), "CLOSED") != NULL);
  return NULL;
}

/* Releasing a client ends its calls under way. */
static void release(paddle_pserver_client clients[4]) {
  pthread_t threads[2];
  EXPECT(pthread_create(&threads[0], NULL, begin_often, &clients[0]) == 0);
  EXPECT(pthread_create(&threads[1], NULL, get_until_released, &clients[2]) == 0);
  while (!atomic_load(&is_started)) sched_yield();
  paddle_pserver_client_release(clients[2]);
  paddle_pserver_client_release(clients[0]);
  for (int i = 0; i < 2; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
  EXPECT(paddle_begin_init_params(clients[0]) == -1);
}

int main(int argc, char **argv) {
  int is_etcd = argc > 3 && strcmp(argv[2], "etcd") == 0;
  char *address = argv[argc - 1];
  paddle_pserver_client clients[4];
  EXPECT(argc > 2);
  for (int i = 0; i < 4; i++) {
    clients[i] = is_etcd ? paddle_new_etcd_pserver_client(address)
                         : paddle_new_pserver_client(address, i != 2);
    EXPECT(clients[i] == i);
  }
  if (strcmp(argv[1], "restart") == 0) restart(clients);
  if (strcmp(argv[1], "take-over") == 0) take_over(clients);
  if (strcmp(argv[1], "release") == 0) release(clients);
  for (int i = 0; i < 4; i++) paddle_pserver_client_release(clients[i]);
  return 0;
}
