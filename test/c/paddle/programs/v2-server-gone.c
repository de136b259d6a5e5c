/* Revision 2: trains until the server is gone, and prints the codes with which calls then end. */
#include <paddle_pserver_client.h>
#include <pthread.h>

#include "expect.h"

static const char *names[1] = {"w"};
static float zeros[1000];
static paddle_parameter w = {(char *)"w", PADDLE_ELEMENT_TYPE_FLOAT32, zeros, sizeof zeros};

static void print_failure(const char *what) {
  printf("%s %s\n", what, paddle_pserver_last_error());
  fflush(stdout);
}

static void *read_and_save(void *closure) {
  paddle_pserver_client *client = closure;
  static float room[1000];
  paddle_parameter got = {NULL, 0, room, sizeof room};
  while (paddle_get_params(client, names, &got, 1) == 0) continue;
  print_failure("get");
  EXPECT(paddle_save_model(client, "gone") == -1);
  print_failure("save");
  return NULL;
}

int main(void) {
  pthread_t thread;
  paddle_pserver_client *client = paddle_new_pserver_client();
  EXPECT(client != NULL);
  EXPECT(paddle_begin_init_params(client, NULL) == 1);
  EXPECT(paddle_init_param(client, w) == 0);
  EXPECT(paddle_finish_init_params(client) == 0);
  EXPECT(pthread_create(&thread, NULL, read_and_save, client) == 0);
  for (int round = 0; paddle_send_grads(client, &w, 1, 0.1) == 0; round++) {
    if (round % 10 == 0) printf("round %d\n", round);
    fflush(stdout);
  }
  print_failure("send");
  /* The thread is still waiting, and each of these calls takes its whole timeout. */
  EXPECT(paddle_new_pserver_client() == NULL);
  print_failure("new");
  EXPECT(pthread_join(thread, NULL) == 0);
  paddle_pserver_client_release(client);
  return 0;
}
