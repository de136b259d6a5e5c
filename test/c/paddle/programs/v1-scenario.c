/* What PaddlePaddle's own test of its client did, through revision 1, and with values. */
#include <paddle_pserver_client.h>

#include "expect.h"

#define FLOATS PADDLE_ELEMENT_TYPE_FLOAT32
#define ROUNDS 100

static void expect_values(paddle_pserver_client *client, const char *name, const float *expected) {
  void *content = NULL;
  int bytes = 0;
  EXPECT(paddle_get_param(client, name, &content, &bytes) == 0);
  EXPECT(bytes == 3 * (int)sizeof(float));
  EXPECT(are_near(content, expected, 3));
  paddle_release_param(&content);
  EXPECT(content == NULL);
}

static void initialize(paddle_pserver_client *client) {
  float a[3] = {0.1f, 0.2f, 0.3f};
  float b[3] = {0.4f, 0.5f, 0.6f};
  static float wide[750];
  EXPECT(paddle_begin_init_param(client) == 1);
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_init_param(client, "param_a", FLOATS, a));
  EXPECT(strstr(paddle_pserver_last_error(), "paddle_declare_param") != NULL);
  EXPECT(paddle_declare_param(client, "param_a", FLOATS, 3) == 0);
  EXPECT(paddle_declare_param(client, "param_b", FLOATS, 3) == 0);
  EXPECT(paddle_declare_param(client, "wide_a", FLOATS, 500) == 0);
  EXPECT(paddle_declare_param(client, "wide_b", FLOATS, 750) == 0);
  EXPECT(paddle_declare_param(client, "count", PADDLE_ELEMENT_TYPE_INT32, 2) == 0);
  EXPECT(paddle_init_param(client, "param_a", FLOATS, a) == 0);
  EXPECT(paddle_init_param(client, "param_b", FLOATS, b) == 0);
  EXPECT(paddle_init_param(client, "wide_a", FLOATS, wide) == 0);
  EXPECT(paddle_init_param(client, "wide_b", FLOATS, wide) == 0);
  EXPECT(paddle_init_param(client, "count", PADDLE_ELEMENT_TYPE_INT32, "\1\0\0\0\377\377\377\377") == 0);
  EXPECT(paddle_finish_init_param(client) == 0);
}

/* The learning rate is 1.0, so the gradient is multiplied by the rate of 0.1 here. */
static void step(paddle_pserver_client *client) {
  float a[3] = {0.001f, 0.002f, 0.003f};
  float b[3] = {0.004f, 0.005f, 0.006f};
  EXPECT(paddle_send_grad(client, "param_a", FLOATS, a) == 0);
  EXPECT(paddle_send_grad(client, "param_b", FLOATS, b) == 0);
  expect_values(client, "param_a", (float[]){0.099f, 0.198f, 0.297f});
  expect_values(client, "param_b", (float[]){0.396f, 0.495f, 0.594f});
}

static void many_rounds(paddle_pserver_client *client) {
  static float grad_a[500] = {1};
  static float grad_b[750] = {0, 2};
  float got_a[500];
  float got_b[800];
  for (int round = 1; round <= ROUNDS; round++) {
    void *to_a = got_a;
    void *to_b = got_b;
    int bytes_a = sizeof got_a;
    int bytes_b = sizeof got_b;
    EXPECT(paddle_send_grad(client, "wide_a", FLOATS, grad_a) == 0);
    EXPECT(paddle_send_grad(client, "wide_b", FLOATS, grad_b) == 0);
    EXPECT(paddle_get_param(client, "wide_a", &to_a, &bytes_a) == 0);
    EXPECT(paddle_get_param(client, "wide_b", &to_b, &bytes_b) == 0);
    EXPECT(to_a == got_a && bytes_a == 2000 && bytes_b == 3000);
    EXPECT(got_a[0] == (float)-round && got_a[499] == 0);
    EXPECT(got_b[0] == 0 && got_b[1] == (float)(-2 * round));
  }
}

/* A client that has declared nothing knows the lengths of the job's parameters. */
static void meet(void) {
  paddle_pserver_client *other = paddle_new_pserver_client();
  EXPECT(other != NULL);
  EXPECT(paddle_begin_init_param(other) == 0);
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_set_param(other, "param_1", FLOATS, "1234"));
  EXPECT(paddle_set_param(other, "param_b", FLOATS, (float[]){1, 2, 3}) == 0);
  EXPECT(paddle_send_grad(other, "param_b", FLOATS, (float[]){1, 1, 1}) == 0);
  expect_values(other, "param_b", (float[]){0, 1, 2});
  int count[2] = {7, -7};
  EXPECT(paddle_set_param(other, "count", PADDLE_ELEMENT_TYPE_INT32, count) == 0);
  EXPECT_ERROR("UNSUPPORTED", paddle_send_grad(other, "count", PADDLE_ELEMENT_TYPE_INT32, count));
  EXPECT_ERROR("BAD_DTYPE", paddle_send_grad(other, "param_b", PADDLE_ELEMENT_TYPE_FLOAT64, count));
  void *content = NULL;
  int bytes = 0;
  EXPECT(paddle_get_param(other, "count", &content, &bytes) == 0);
  EXPECT(bytes == 8 && memcmp(content, count, 8) == 0);
  paddle_release_param(&content);
  paddle_pserver_client_release(other);
}

int main(void) {
  void *content = NULL;
  int bytes = 0;
  paddle_pserver_client *client = paddle_new_pserver_client();
  EXPECT(client != NULL);
  initialize(client);
  expect_values(client, "param_a", (float[]){0.1f, 0.2f, 0.3f});
  expect_values(client, "param_b", (float[]){0.4f, 0.5f, 0.6f});
  step(client);
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_get_param(client, "param_1", &content, &bytes));
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_get_param(client, "param_2", &content, &bytes));
  EXPECT(content == NULL);
  expect_values(client, "param_a", (float[]){0.099f, 0.198f, 0.297f});
  many_rounds(client);
  meet();
  expect_values(client, "param_b", (float[]){0, 1, 2});
  EXPECT(paddle_save_model(client, "v1-scenario") == 0);
  EXPECT_ERROR("BAD_PATH", paddle_save_model(client, "../outside"));
  paddle_pserver_client_release(client);
  return 0;
}
