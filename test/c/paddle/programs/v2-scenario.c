/* What PaddlePaddle's own test of its client did, through revision 2, and with values. */
#include <paddle_pserver_client.h>

#include "expect.h"
#include "optimizer.h"

#define FLOATS PADDLE_ELEMENT_TYPE_FLOAT32
#define ROUNDS 100

static const char *const both[2] = {"param_a", "param_b"};

static paddle_parameter parameter(const char *name, float *content, int count) {
  return (paddle_parameter){(char *)name, FLOATS, content, count * (int)sizeof(float)};
}

static void expect_both(paddle_pserver_client *client, const float *a, const float *b) {
  paddle_parameter got[2] = {{0}, {0}};
  EXPECT(paddle_get_params(client, (const char **)both, got, 2) == 0);
  EXPECT(strcmp(got[0].name, "param_a") == 0 && strcmp(got[1].name, "param_b") == 0);
  EXPECT(got[0].element_type == FLOATS && got[0].content_len == 12 && got[1].content_len == 12);
  EXPECT(are_near(got[0].content, a, 3));
  EXPECT(are_near(got[1].content, b, 3));
  paddle_release_params(got, 2);
  EXPECT(got[0].content == NULL && got[1].content == NULL && got[0].content_len == 0);
}

static void initialize(paddle_pserver_client *client) {
  float a[3] = {0.1f, 0.2f, 0.3f};
  float b[3] = {0.4f, 0.5f, 0.6f};
  static float wide[750];
  /* These bytes contain zeros, which end the text that the published function takes, and cause an error. */
  EXPECT(paddle_begin_init_params(client, (const char *)optimizer) == 1);
  EXPECT_ERROR("BAD_CONFIG", paddle_init_param(client, parameter("param_a", a, 3)));
  EXPECT(paddle_begin_init_params(client, "not: {closed") == 1);
  EXPECT_ERROR("BAD_CONFIG", paddle_init_param(client, parameter("param_a", a, 3)));
  EXPECT(paddle_begin_init_params_with_config(client, optimizer, sizeof optimizer) == 1);
  EXPECT(paddle_init_param(client, parameter("param_a", a, 3)) == 0);
  EXPECT(paddle_init_param(client, parameter("param_b", b, 3)) == 0);
  EXPECT(paddle_begin_init_params(client, NULL) == 1);
  EXPECT(paddle_init_param(client, parameter("wide_a", wide, 500)) == 0);
  const char *text = "{\"optimizer\": {\"name\": \"momentum\", \"momentum\": 0.5}}";
  EXPECT(paddle_begin_init_params(client, text) == 1);
  EXPECT(paddle_init_param(client, parameter("wide_b", wide, 750)) == 0);
  EXPECT(paddle_finish_init_params(client) == 0);
  EXPECT_ERROR("NOT_SELECTED", paddle_init_param(client, parameter("param_c", a, 3)));
}

static void step(paddle_pserver_client *client, double rate) {
  float a[3] = {0.01f, 0.02f, 0.03f};
  float b[3] = {0.04f, 0.05f, 0.06f};
  paddle_gradient grads[2] = {parameter("param_a", a, 3), parameter("param_b", b, 3)};
  EXPECT(paddle_send_grads(client, grads, 2, rate) == 0);
}

static void many_rounds(paddle_pserver_client *client) {
  static float grad_a[500] = {1};
  static float grad_b[750] = {0, 1};
  static const char *names[2] = {"wide_a", "wide_b"};
  paddle_gradient grads[2] = {parameter("wide_a", grad_a, 500), parameter("wide_b", grad_b, 750)};
  float got_a[500];
  float got_b[750];
  paddle_parameter got[2] = {parameter("a", got_a, 500), parameter("b", got_b, 750)};
  float momentum = 0;
  float value = 0;
  for (int round = 1; round <= ROUNDS; round++) {
    EXPECT(paddle_send_grads(client, grads, 2, 0.25) == 0);
    momentum = 0.5f * momentum - 0.25f;
    value += momentum;
    EXPECT(paddle_get_params(client, names, got, 2) == 0);
    EXPECT(got[0].content == got_a && strcmp(got[0].name, "a") == 0 && got[0].content_len == 2000);
    EXPECT(got_a[0] == -0.25f * (float)round && got_a[499] == 0);
    EXPECT(got_b[0] == 0 && fabsf(got_b[1] - value) < 1e-3f);
  }
}

int main(void) {
  const char *unknown[2] = {"param_1", "param_2"};
  paddle_parameter got[2] = {{0}, {0}};
  paddle_pserver_client *client = paddle_new_pserver_client();
  EXPECT(client != NULL);
  initialize(client);
  expect_both(client, (float[]){0.1f, 0.2f, 0.3f}, (float[]){0.4f, 0.5f, 0.6f});
  step(client, 0.1);
  expect_both(client, (float[]){0.099f, 0.198f, 0.297f}, (float[]){0.396f, 0.495f, 0.594f});
  /* The rate of the call overrides that of the configuration. */
  step(client, 1.0);
  expect_both(client, (float[]){0.089f, 0.178f, 0.267f}, (float[]){0.356f, 0.445f, 0.534f});
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_get_params(client, unknown, got, 2));
  EXPECT(got[0].content == NULL && got[1].content == NULL);
  float a[3] = {1, 2, 3};
  float b[3] = {4, 5, 6};
  paddle_parameter values[2] = {parameter("param_a", a, 3), parameter("param_b", b, 3)};
  EXPECT(paddle_set_params(client, values, 2) == 0);
  expect_both(client, a, b);
  many_rounds(client);
  EXPECT(paddle_save_model(client, "v2-scenario") == 0);
  paddle_pserver_client_release(client);
  return 0;
}
