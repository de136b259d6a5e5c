/* Revision 1: trainers that are not selected wait, and one takes over from a trainer that dies. */
#include "waiting.h"

#define FLOATS PADDLE_ELEMENT_TYPE_FLOAT32

static const float first = 42;

static void give(paddle_pserver_client *client) {
  EXPECT(paddle_declare_param(client, "w", FLOATS, 1) == 0);
  EXPECT(paddle_init_param(client, "w", FLOATS, &first) == 0);
}

static void expect_first(paddle_pserver_client *client) {
  void *content = NULL;
  int bytes = 0;
  EXPECT(paddle_get_param(client, "w", &content, &bytes) == 0);
  EXPECT(bytes == 4 && are_near(content, &first, 1));
  paddle_release_param(&content);
}

int main(int argc, char **argv) {
  const struct revision revision = {paddle_begin_init_param, give, paddle_finish_init_param,
                                    expect_first};
  return run_waiting(&revision, argc, argv);
}
