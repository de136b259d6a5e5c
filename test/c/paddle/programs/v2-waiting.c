/* Revision 2: trainers that are not selected wait, and one takes over from a trainer that dies. */
#include "waiting.h"

static float first = 42;
static const char *names[1] = {"w"};

static int begin(paddle_pserver_client *client) { return paddle_begin_init_params(client, NULL); }

static void give(paddle_pserver_client *client) {
  paddle_parameter value = {(char *)"w", PADDLE_ELEMENT_TYPE_FLOAT32, &first, sizeof first};
  EXPECT(paddle_init_param(client, value) == 0);
}

static void expect_first(paddle_pserver_client *client) {
  paddle_parameter got = {0};
  EXPECT(paddle_get_params(client, names, &got, 1) == 0);
  EXPECT(got.content_len == 4 && are_near(got.content, &first, 1));
  paddle_release_params(&got, 1);
}

int main(int argc, char **argv) {
  const struct revision revision = {begin, give, paddle_finish_init_params, expect_first};
  return run_waiting(&revision, argc, argv);
}
