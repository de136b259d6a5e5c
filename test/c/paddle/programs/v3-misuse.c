/* Misuses revision 3 in all ways: each call fails with the right error, and the client still works.
 * Argument: the broker's address. */
#include <limits.h>
#include <paddle_pserver_client.h>

#include "expect.h"
#include "forked.h"

#define FLOATS PADDLE_ELEMENT_TYPE_FLOAT32

static char *address;
static paddle_pserver_client client;
static float values[3] = {1, 2, 3};

static paddle_parameter parameter(const char *name, int type, void *content, int bytes) {
  return (paddle_parameter){(char *)name, (paddle_element_type)type, content, bytes};
}

static void expect_refused(const char *code, paddle_pserver_client wrong) {
  paddle_parameter good = parameter("w", FLOATS, values, sizeof values);
  paddle_parameter *list[1] = {&good};
  EXPECT(paddle_begin_init_params(wrong) == -1);
  EXPECT(strstr(paddle_pserver_last_error(), code) != NULL);
  EXPECT(paddle_init_param(wrong, good, NULL, 0) == -1);
  EXPECT(paddle_finish_init_params(wrong) == -1);
  EXPECT(paddle_send_grads(wrong, &good, 1) == -1);
  EXPECT(paddle_send_grads_v(wrong, list, 1) == -1);
  EXPECT(paddle_get_params(wrong, list, 1) == -1);
  EXPECT(paddle_save_model(wrong, "x") == -1);
  EXPECT(strstr(paddle_pserver_last_error(), code) != NULL);
  paddle_pserver_client_release(wrong);
}

static void in_child(void) {
  expect_refused("CLOSED", client);
  EXPECT(paddle_new_pserver_client(address, 1) == -1);
  EXPECT(strstr(paddle_pserver_last_error(), "forked") != NULL);
}

/* What no call takes as a parameter. */
static const struct {
  const char *code;
  paddle_parameter value;
} wrong[] = {
    {"BAD_NAME", {NULL, FLOATS, (unsigned char *)values, 12}},
    {"BAD_NAME", {(char *)"", FLOATS, (unsigned char *)values, 12}},
    {"BAD_DTYPE", {(char *)"w", (paddle_element_type)6, (unsigned char *)values, 12}},
    {"BAD_VALUE", {(char *)"w", FLOATS, NULL, 12}},
    {"BAD_LENGTH", {(char *)"w", FLOATS, (unsigned char *)values, 0}},
    {"BAD_LENGTH", {(char *)"w", FLOATS, (unsigned char *)values, -4}},
    {"BAD_LENGTH", {(char *)"w", FLOATS, (unsigned char *)values, 11}},
};
#define WRONG (sizeof wrong / sizeof wrong[0])

static void making(void) {
  EXPECT(paddle_new_pserver_client((char *)"not an address at all", 1) == -1);
  EXPECT(paddle_new_pserver_client((char *)",", 1) == -1);
  EXPECT(paddle_new_etcd_pserver_client(NULL) == -1);
  EXPECT(strstr(paddle_pserver_last_error(), "BAD_VALUE") != NULL);
  EXPECT(paddle_new_etcd_pserver_client((char *)" , ") == -1);
}

static void initialization(void) {
  paddle_parameter good = parameter("w", FLOATS, values, sizeof values);
  EXPECT_ERROR("NOT_SELECTED", paddle_init_param(client, good, NULL, 0));
  EXPECT_ERROR("NOT_SELECTED", paddle_finish_init_params(client));
  EXPECT(paddle_begin_init_params(client) == 1);
  EXPECT(paddle_begin_init_params(client) == 1);
  EXPECT_ERROR("BAD_VALUE", paddle_init_param(client, good, NULL, 5));
  EXPECT_ERROR("BAD_VALUE", paddle_init_param(client, good, (const unsigned char *)"x", -1));
  EXPECT_ERROR("BAD_CONFIG", paddle_init_param(client, good, (const unsigned char *)"\377\377", 2));
  for (size_t i = 0; i < WRONG; i++) {
    EXPECT_ERROR(wrong[i].code, paddle_init_param(client, wrong[i].value, NULL, 0));
  }
  EXPECT_ERROR("EMPTY", paddle_finish_init_params(client));
  EXPECT_ERROR("NOT_INITIALIZED", paddle_send_grads(client, &good, 1));
  EXPECT(paddle_init_param(client, good, NULL, 0) == 0);
  EXPECT(paddle_finish_init_params(client) == 0);
}

static void updates(void) {
  paddle_parameter list[2] = {parameter("w", FLOATS, values, 12)};
  paddle_gradient *pointers[2] = {&list[0], NULL};
  EXPECT_ERROR("EMPTY", paddle_send_grads(client, list, 0));
  EXPECT_ERROR("EMPTY", paddle_send_grads_v(client, pointers, INT_MIN));
  EXPECT_ERROR("BAD_VALUE", paddle_send_grads(client, NULL, 1));
  EXPECT_ERROR("BAD_VALUE", paddle_send_grads_v(client, NULL, 1));
  EXPECT_ERROR("BAD_VALUE", paddle_send_grads_v(client, pointers, 2));
  pointers[1] = &list[1];
  for (size_t i = 0; i < WRONG; i++) {
    list[1] = wrong[i].value;
    EXPECT_ERROR(wrong[i].code, paddle_send_grads(client, list, 2));
    EXPECT_ERROR(wrong[i].code, paddle_send_grads_v(client, pointers, 2));
  }
  list[1] = parameter("v", FLOATS, values, 12);
  EXPECT_ERROR("UNKNOWN_PARAMETER", paddle_send_grads(client, list, 2));
  list[1] = parameter("w", PADDLE_ELEMENT_TYPE_FLOAT64, values, 8);
  EXPECT_ERROR("BAD_DTYPE", paddle_send_grads(client, list, 2));
  list[1] = parameter("w", FLOATS, (float[]){NAN, 0, 0}, 12);
  EXPECT_ERROR("NON_FINITE", paddle_send_grads(client, list, 2));
}

static void reading(void) {
  float room[4] = {7, 7, 7, 7};
  paddle_parameter got = parameter("w", 0, room, 16);
  paddle_parameter *list[2] = {&got, NULL};
  EXPECT_ERROR("EMPTY", paddle_get_params(client, list, 0));
  EXPECT_ERROR("BAD_VALUE", paddle_get_params(client, NULL, 1));
  EXPECT_ERROR("BAD_VALUE", paddle_get_params(client, list, 2));
  EXPECT_ERROR("BAD_LENGTH", paddle_get_params(client, list, 1));
  got.content_len = 8;
  EXPECT_ERROR("BAD_LENGTH", paddle_get_params(client, list, 1));
  got.content_len = 0;
  EXPECT_ERROR("BAD_LENGTH", paddle_get_params(client, list, 1));
  got.name = NULL;
  EXPECT_ERROR("BAD_NAME", paddle_get_params(client, list, 1));
  got.name = (char *)"w";
  got.content_len = 12;
  EXPECT(paddle_get_params(client, list, 1) == 0);
  EXPECT(are_near(room, values, 3) && room[3] == 7 && got.element_type == FLOATS);
  paddle_release_param_content(NULL);
}

int main(int argc, char **argv) {
  address = argv[argc - 1];
  expect_refused("CLOSED", 0);
  expect_refused("CLOSED", -1);
  making();
  client = paddle_new_pserver_client(address, 1);
  EXPECT(client == 0);
  paddle_pserver_client second = paddle_new_pserver_client(address, 0);
  EXPECT(second == 1);
  expect_refused("CLOSED", 2);
  expect_refused("CLOSED", INT_MAX);
  expect_refused("CLOSED", INT_MIN);
  initialization();
  updates();
  reading();
  EXPECT_ERROR("BAD_PATH", paddle_save_model(client, NULL));
  EXPECT(holds_in_child(in_child));
  paddle_pserver_client_release(second);
  expect_refused("CLOSED", second);
  /* The number of a client is never used again. */
  second = paddle_new_pserver_client(address, 0);
  EXPECT(second == 2);
  reading();
  paddle_pserver_client_release(second);
  paddle_pserver_client_release(client);
  expect_refused("CLOSED", client);
  return 0;
}
