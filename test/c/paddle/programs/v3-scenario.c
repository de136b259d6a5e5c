/* What PaddlePaddle's own test of its client did, through revision 3, and with values. Argument: the
 * broker's address. */
#include <paddle_pserver_client.h>

#include "expect.h"
#include "optimizer.h"

#define FLOATS PADDLE_ELEMENT_TYPE_FLOAT32
#define INTS PADDLE_ELEMENT_TYPE_INT32

static paddle_parameter parameter(const char *name, float *content, int count) {
  return (paddle_parameter){(char *)name, FLOATS, (unsigned char *)content,
                            count * (int)sizeof(float)};
}

static void expect_both(paddle_pserver_client client, const float *a, const float *b) {
  float got_a[3];
  float got_b[3];
  paddle_parameter param_a = parameter("param_a", got_a, 3);
  paddle_parameter param_b = parameter("param_b", got_b, 3);
  paddle_parameter *params[2] = {&param_a, &param_b};
  param_a.element_type = INTS;
  EXPECT(paddle_get_params(client, params, 2) == 0);
  EXPECT(param_a.element_type == FLOATS && param_b.content_len == 12);
  EXPECT(are_near(got_a, a, 3));
  EXPECT(are_near(got_b, b, 3));
}

static void initialize(paddle_pserver_client client) {
  float a[3] = {0.1f, 0.2f, 0.3f};
  float b[3] = {0.4f, 0.5f, 0.6f};
  int counts[2] = {3, -3};
  float rated = 1;
  paddle_parameter ints = {(char *)"counts", INTS, (unsigned char *)counts, sizeof counts};
  EXPECT(paddle_begin_init_params(client) == 1);
  EXPECT(paddle_init_param(client, parameter("param_a", a, 3), optimizer, sizeof optimizer) == 0);
  EXPECT(paddle_init_param(client, parameter("param_b", b, 3), optimizer, sizeof optimizer) == 0);
  EXPECT(paddle_init_param(client, parameter("rated", &rated, 1), NULL, 0) == 0);
  EXPECT(paddle_init_param(client, ints, NULL, 0) == 0);
  EXPECT_ERROR("BAD_CONFIG", paddle_init_param(client, parameter("bad", b, 3), optimizer, 5));
  EXPECT(paddle_finish_init_params(client) == 0);
}

/* Gradients of floats that are declared as integers, as in that test, are refused: see
 * docs/reference/compatibility.md. */
static void integers(paddle_pserver_client client) {
  float floats[2] = {0.4f, 0.5f};
  int counts[2] = {0, 0};
  paddle_parameter wanted = {(char *)"counts", INTS, (unsigned char *)counts, sizeof counts};
  paddle_parameter *list[1] = {&wanted};
  paddle_gradient grad = {(char *)"counts", INTS, (unsigned char *)floats, sizeof floats};
  EXPECT_ERROR("UNSUPPORTED", paddle_send_grads(client, &grad, 1));
  EXPECT(paddle_get_params(client, list, 1) == 0);
  EXPECT(wanted.element_type == INTS && counts[0] == 3 && counts[1] == -3);
}

static void allocate(paddle_pserver_client client, float expected) {
  paddle_parameter wanted = {(char *)"rated", INTS, NULL, 0};
  paddle_parameter *list[1] = {&wanted};
  EXPECT(paddle_get_params(client, list, 1) == 0);
  EXPECT(wanted.element_type == FLOATS && wanted.content_len == 4);
  EXPECT(are_near(wanted.content, &expected, 1));
  paddle_release_param_content(&wanted);
  EXPECT(wanted.content == NULL);
}

int main(int argc, char **argv) {
  paddle_pserver_client client = paddle_new_pserver_client(argv[argc - 1], 1);
  EXPECT(client == 0);
  initialize(client);
  expect_both(client, (float[]){0.1f, 0.2f, 0.3f}, (float[]){0.4f, 0.5f, 0.6f});
  float a[3] = {0.01f, 0.02f, 0.03f};
  float b[3] = {0.04f, 0.05f, 0.06f};
  paddle_gradient grads[2] = {parameter("param_a", a, 3), parameter("param_b", b, 3)};
  EXPECT(paddle_send_grads(client, grads, 2) == 0);
  expect_both(client, (float[]){0.099f, 0.198f, 0.297f}, (float[]){0.396f, 0.495f, 0.594f});
  paddle_gradient *pointers[2] = {&grads[1], &grads[0]};
  EXPECT(paddle_send_grads_v(client, pointers, 2) == 0);
  expect_both(client, (float[]){0.098f, 0.196f, 0.294f}, (float[]){0.392f, 0.49f, 0.588f});
  /* Without a configuration the rate is 1. */
  float quarter = 0.25f;
  paddle_gradient grad = parameter("rated", &quarter, 1);
  EXPECT(paddle_send_grads(client, &grad, 1) == 0);
  allocate(client, 0.75f);
  integers(client);
  paddle_parameter unknown[2] = {parameter("param_1", a, 3), parameter("param_2", b, 3)};
  paddle_parameter *wanted[2] = {&unknown[0], &unknown[1]};
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_get_params(client, wanted, 2));
  expect_both(client, (float[]){0.098f, 0.196f, 0.294f}, (float[]){0.392f, 0.49f, 0.588f});
  EXPECT(paddle_save_model(client, "v3-scenario") == 0);
  paddle_pserver_client_release(client);
  return 0;
}
