/* Misuses revision 1 in all ways: each call fails with the right error, and the client still works. */
#include <limits.h>
#include <paddle_pserver_client.h>

#include "expect.h"
#include "forked.h"

#define FLOATS PADDLE_ELEMENT_TYPE_FLOAT32

static paddle_pserver_client *client;
static const float values[3] = {1, 2, 3};

static void expect_refused(const char *code, paddle_pserver_client *wrong) {
  void *content = NULL;
  int bytes = 0;
  EXPECT(paddle_begin_init_param(wrong) == -1);
  EXPECT(strstr(paddle_pserver_last_error(), code) != NULL);
  EXPECT(paddle_declare_param(wrong, "w", FLOATS, 3) == -1);
  EXPECT(paddle_init_param(wrong, "w", FLOATS, values) == -1);
  EXPECT(paddle_finish_init_param(wrong) == -1);
  EXPECT(paddle_send_grad(wrong, "w", FLOATS, values) == -1);
  EXPECT(paddle_set_param(wrong, "w", FLOATS, values) == -1);
  EXPECT(paddle_get_param(wrong, "w", &content, &bytes) == -1);
  EXPECT(paddle_save_model(wrong, "x") == -1);
  EXPECT(strstr(paddle_pserver_last_error(), code) != NULL);
  paddle_pserver_client_release(wrong);
}

static void in_child(void) {
  expect_refused("CLOSED", client);
  EXPECT(paddle_new_pserver_client() == NULL);
  EXPECT(strstr(paddle_pserver_last_error(), "forked") != NULL);
}

static void declarations(void) {
  EXPECT_ERROR("BAD_NAME", paddle_declare_param(client, NULL, FLOATS, 3));
  EXPECT_ERROR("BAD_DTYPE", paddle_declare_param(client, "w", 6, 3));
  EXPECT_ERROR("BAD_DTYPE", paddle_declare_param(client, "w", -1, 3));
  EXPECT_ERROR("BAD_LENGTH", paddle_declare_param(client, "w", FLOATS, 0));
  EXPECT_ERROR("BAD_LENGTH", paddle_declare_param(client, "w", FLOATS, -1));
  EXPECT_ERROR("BAD_LENGTH", paddle_declare_param(client, "w", FLOATS, LLONG_MAX));
}

static void initialization(void) {
  EXPECT(paddle_declare_param(client, "w", FLOATS, 3) == 0);
  EXPECT(paddle_declare_param(client, "", FLOATS, 3) == 0);
  EXPECT_ERROR("NOT_SELECTED", paddle_init_param(client, "w", FLOATS, values));
  EXPECT_ERROR("NOT_SELECTED", paddle_finish_init_param(client));
  EXPECT(paddle_begin_init_param(client) == 1);
  EXPECT_ERROR("EMPTY", paddle_finish_init_param(client));
  EXPECT_ERROR("BAD_NAME", paddle_init_param(client, NULL, FLOATS, values));
  EXPECT_ERROR("BAD_NAME", paddle_init_param(client, "", FLOATS, values));
  EXPECT_ERROR("BAD_DTYPE", paddle_init_param(client, "w", PADDLE_ELEMENT_TYPE_FLOAT64, values));
  EXPECT_ERROR("BAD_VALUE", paddle_init_param(client, "w", FLOATS, NULL));
  EXPECT_ERROR("NON_FINITE", paddle_init_param(client, "w", FLOATS, (float[]){NAN, 1, 2}));
  EXPECT_ERROR("NOT_INITIALIZED", paddle_send_grad(client, "w", FLOATS, values));
  EXPECT(paddle_init_param(client, "w", FLOATS, values) == 0);
  EXPECT(paddle_finish_init_param(client) == 0);
}

static void reading(void) {
  float room[4];
  void *content = room;
  void *none = NULL;
  int bytes = 11;
  EXPECT_ERROR("BAD_NAME", paddle_get_param(client, NULL, &content, &bytes));
  EXPECT_ERROR("BAD_VALUE", paddle_get_param(client, "w", NULL, &bytes));
  EXPECT_ERROR("BAD_VALUE", paddle_get_param(client, "w", &content, NULL));
  EXPECT_ERROR("BAD_LENGTH", paddle_get_param(client, "w", &content, &bytes));
  bytes = 0;
  EXPECT_ERROR("BAD_LENGTH", paddle_get_param(client, "w", &content, &bytes));
  bytes = -5;
  EXPECT_ERROR("BAD_LENGTH", paddle_get_param(client, "w", &content, &bytes));
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_get_param(client, "v", &content, &bytes));
  EXPECT(content == room && bytes == -5);
  bytes = sizeof room;
  EXPECT(paddle_get_param(client, "w", &content, &bytes) == 0);
  EXPECT(content == room && bytes == 12 && are_near(room, values, 3));
  paddle_release_param(&none);
  paddle_release_param(NULL);
}

static void updates(void) {
  EXPECT_ERROR("BAD_NAME", paddle_send_grad(client, NULL, FLOATS, values));
  EXPECT_ERROR("BAD_VALUE", paddle_send_grad(client, "w", FLOATS, NULL));
  EXPECT_ERROR("BAD_DTYPE", paddle_send_grad(client, "w", 99, values));
  EXPECT_ERROR("BAD_DTYPE", paddle_set_param(client, "w", PADDLE_ELEMENT_TYPE_INT32, values));
  EXPECT_ERROR("NON_FINITE", paddle_set_param(client, "w", FLOATS, (float[]){INFINITY, 1, 2}));
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_send_grad(client, "v", FLOATS, values));
  /* Declared with a length that is not the one the job has. */
  EXPECT(paddle_declare_param(client, "w", FLOATS, 2) == 0);
  EXPECT_ERROR("BAD_LENGTH", paddle_send_grad(client, "w", FLOATS, values));
  EXPECT(paddle_declare_param(client, "w", FLOATS, 3) == 0);
  EXPECT_ERROR("BAD_PATH", paddle_save_model(client, NULL));
  EXPECT_ERROR("BAD_PATH", paddle_save_model(client, ""));
}

int main(void) {
  EXPECT(strcmp(paddle_pserver_last_error(), "") == 0);
  expect_refused("CLOSED", NULL);
  expect_refused("CLOSED", (paddle_pserver_client *)values);
  expect_refused("CLOSED", (paddle_pserver_client *)1);
  client = paddle_new_pserver_client();
  paddle_pserver_client *second = paddle_new_pserver_client();
  EXPECT(client != NULL && second != NULL && client != second);
  declarations();
  initialization();
  reading();
  updates();
  EXPECT(holds_in_child(in_child));
  paddle_pserver_client_release(second);
  expect_refused("CLOSED", second);
  reading();
  paddle_pserver_client_release(client);
  expect_refused("CLOSED", client);
  setenv("PSERVER_TIMEOUT_MS", "soon", 1);
  EXPECT(paddle_new_pserver_client() == NULL);
  EXPECT(strstr(paddle_pserver_last_error(), "PSERVER_TIMEOUT_MS") != NULL);
  return 0;
}
