/* Misuses revision 2 in all ways: each call fails with the right error, and the client still works. */
#include <limits.h>
#include <paddle_pserver_client.h>

#include "expect.h"
#include "forked.h"

#define FLOATS PADDLE_ELEMENT_TYPE_FLOAT32

static paddle_pserver_client *client;
static float values[3] = {1, 2, 3};
static const char *w[1] = {"w"};

static paddle_parameter parameter(const char *name, int type, void *content, int bytes) {
  return (paddle_parameter){(char *)name, type, content, bytes};
}

static void expect_refused(const char *code, paddle_pserver_client *wrong) {
  paddle_parameter good = parameter("w", FLOATS, values, sizeof values);
  EXPECT(paddle_begin_init_params(wrong, NULL) == -1);
  EXPECT(strstr(paddle_pserver_last_error(), code) != NULL);
  EXPECT(paddle_begin_init_params_with_config(wrong, "", 0) == -1);
  EXPECT(paddle_init_param(wrong, good) == -1);
  EXPECT(paddle_finish_init_params(wrong) == -1);
  EXPECT(paddle_send_grads(wrong, &good, 1, 0.1) == -1);
  EXPECT(paddle_set_params(wrong, &good, 1) == -1);
  EXPECT(paddle_get_params(wrong, w, &good, 1) == -1);
  EXPECT(paddle_save_model(wrong, "x") == -1);
  EXPECT(strstr(paddle_pserver_last_error(), code) != NULL);
  paddle_pserver_client_release(wrong);
}

static void in_child(void) {
  expect_refused("CLOSED", client);
  EXPECT(paddle_new_pserver_client() == NULL);
}

/* What no call takes as a parameter. */
static const struct {
  const char *code;
  paddle_parameter value;
} wrong[] = {
    {"BAD_NAME", {NULL, FLOATS, values, 12}},       {"BAD_NAME", {(char *)"", FLOATS, values, 12}},
    {"BAD_NAME", {(char *)"\xff", FLOATS, values, 12}}, {"BAD_DTYPE", {(char *)"w", 6, values, 12}},
    {"BAD_DTYPE", {(char *)"w", INT_MIN, values, 12}}, {"BAD_VALUE", {(char *)"w", FLOATS, NULL, 12}},
    {"BAD_LENGTH", {(char *)"w", FLOATS, values, 0}}, {"BAD_LENGTH", {(char *)"w", FLOATS, values, -4}},
    {"BAD_LENGTH", {(char *)"w", FLOATS, values, 11}},
};
#define WRONG (sizeof wrong / sizeof wrong[0])

static void initialization(void) {
  EXPECT_ERROR("NOT_SELECTED",
               paddle_init_param(client, parameter("w", FLOATS, values, sizeof values)));
  EXPECT_ERROR("BAD_VALUE", paddle_begin_init_params_with_config(client, NULL, 5));
  EXPECT_ERROR("BAD_VALUE", paddle_begin_init_params_with_config(client, "x", -1));
  EXPECT(paddle_begin_init_params_with_config(client, NULL, 0) == 1);
  for (size_t i = 0; i < WRONG; i++) {
    EXPECT_ERROR(wrong[i].code, paddle_init_param(client, wrong[i].value));
  }
  EXPECT_ERROR("EMPTY", paddle_finish_init_params(client));
  EXPECT(paddle_init_param(client, parameter("w", FLOATS, values, sizeof values)) == 0);
  EXPECT(paddle_finish_init_params(client) == 0);
}

static void updates(void) {
  paddle_parameter list[2] = {parameter("w", FLOATS, values, 12)};
  EXPECT_ERROR("EMPTY", paddle_send_grads(client, list, 0, 0.1));
  EXPECT_ERROR("EMPTY", paddle_send_grads(client, list, -1, 0.1));
  EXPECT_ERROR("EMPTY", paddle_set_params(client, list, 0));
  EXPECT_ERROR("BAD_VALUE", paddle_send_grads(client, NULL, 1, 0.1));
  EXPECT_ERROR("BAD_VALUE", paddle_set_params(client, NULL, 1));
  EXPECT(paddle_send_grads(client, list, 1, NAN) == -1);
  EXPECT(paddle_send_grads(client, list, 1, INFINITY) == -1);
  for (size_t i = 0; i < WRONG; i++) {
    list[1] = wrong[i].value;
    EXPECT_ERROR(wrong[i].code, paddle_send_grads(client, list, 2, 0.1));
    EXPECT_ERROR(wrong[i].code, paddle_set_params(client, list, 2));
  }
  list[1] = parameter("v", FLOATS, values, 12);
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_send_grads(client, list, 2, 0.1));
  list[1] = parameter("w", FLOATS, values, 8);
  EXPECT_ERROR("BAD_LENGTH", paddle_send_grads(client, list, 2, 0.1));
  list[1] = parameter("w", PADDLE_ELEMENT_TYPE_INT32, values, 12);
  EXPECT_ERROR("BAD_DTYPE", paddle_set_params(client, list, 2));
}

/* `knows`: whether the client has read the parameter before, and knows its length. */
static void reading(int knows) {
  const char *none[1] = {NULL};
  const char *unknown[1] = {"v"};
  float room[4] = {7, 7, 7, 7};
  paddle_parameter got = parameter("other", 0, room, 16);
  EXPECT_ERROR("EMPTY", paddle_get_params(client, w, &got, 0));
  EXPECT_ERROR("BAD_VALUE", paddle_get_params(client, NULL, &got, 1));
  EXPECT_ERROR("BAD_VALUE", paddle_get_params(client, w, NULL, 1));
  EXPECT_ERROR("BAD_NAME", paddle_get_params(client, none, &got, 1));
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_get_params(client, unknown, &got, 1));
  EXPECT_ERROR("BAD_LENGTH", paddle_get_params(client, w, &got, 1));
  got.content_len = 8;
  EXPECT_ERROR("BAD_LENGTH", paddle_get_params(client, w, &got, 1));
  got.content_len = -12;
  EXPECT_ERROR("BAD_LENGTH", paddle_get_params(client, w, &got, 1));
  EXPECT(knows || room[0] == 7);
  got.content_len = 12;
  EXPECT(paddle_get_params(client, w, &got, 1) == 0);
  EXPECT(are_near(room, values, 3) && room[3] == 7);
  EXPECT(got.element_type == FLOATS && got.content_len == 12 && strcmp(got.name, "other") == 0);
  paddle_release_params(NULL, 5);
  paddle_release_params(&got, 0);
  paddle_release_params(&got, -1);
  EXPECT(got.content == room);
}

int main(void) {
  expect_refused("CLOSED", NULL);
  expect_refused("CLOSED", (paddle_pserver_client *)values);
  client = paddle_new_pserver_client();
  paddle_pserver_client *second = paddle_new_pserver_client();
  EXPECT(client != NULL && second != NULL);
  initialization();
  updates();
  reading(0);
  reading(1);
  EXPECT_ERROR("BAD_PATH", paddle_save_model(client, NULL));
  EXPECT(holds_in_child(in_child));
  paddle_pserver_client_release(second);
  expect_refused("CLOSED", second);
  reading(1);
  paddle_pserver_client_release(client);
  expect_refused("CLOSED", client);
  return 0;
}
