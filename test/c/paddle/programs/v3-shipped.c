/* The test of the library that PaddlePaddle shipped, in its terms: its header, gradients as pointers,
 * 100 rounds of 2,000 and 3,000 bytes. Argument: the broker's address. */
#include <libpaddle_pserver_cclient.h>

#include "expect.h"
#include "optimizer.h"

#define BYTES_A 2000
#define BYTES_B 3000
#define ROUNDS 100

static unsigned char content_a[BYTES_A] = {1};
static unsigned char content_b[BYTES_B];
static unsigned char grad_content_a[BYTES_A] = {2};
static unsigned char grad_content_b[BYTES_B] = {3};

static paddle_parameter parameter(const char *name, unsigned char *content, int bytes) {
  return (paddle_parameter){(char *)name, PADDLE_ELEMENT_TYPE_FLOAT32, content, bytes};
}

static void initialize(paddle_pserver_client client) {
  for (;;) {
    if (!paddle_begin_init_params(client)) return;
    if (paddle_init_param(client, parameter("param_a", content_a, BYTES_A), optimizer,
                          sizeof optimizer) == PSERVER_OK &&
        paddle_init_param(client, parameter("param_b", content_b, BYTES_B), optimizer,
                          sizeof optimizer) == PSERVER_OK &&
        paddle_finish_init_params(client) == PSERVER_OK) {
      return;
    }
  }
}

int main(int argc, char **argv) {
  paddle_pserver_client client = paddle_new_pserver_client(argv[argc - 1], 1);
  EXPECT(client != PSERVER_ERROR);
  initialize(client);
  unsigned char got_a[BYTES_A];
  unsigned char got_b[BYTES_B];
  paddle_gradient grad_a = parameter("param_a", grad_content_a, BYTES_A);
  paddle_gradient grad_b = parameter("param_b", grad_content_b, BYTES_B);
  paddle_gradient *grads[2] = {&grad_a, &grad_b};
  paddle_parameter param_a = parameter("param_a", got_a, BYTES_A);
  paddle_parameter param_b = parameter("param_b", got_b, BYTES_B);
  paddle_parameter *params[2] = {&param_a, &param_b};
  for (int round = 0; round < ROUNDS; round++) {
    EXPECT(paddle_send_grads(client, grads, 2) == PSERVER_OK);
    EXPECT(paddle_get_params(client, params, 2) == PSERVER_OK);
  }
  /* The bytes are the smallest of floats: one step of a tenth of them rounds to nothing. */
  EXPECT(memcmp(got_a, content_a, BYTES_A) == 0);
  EXPECT(memcmp(got_b, content_b, BYTES_B) == 0);
  paddle_pserver_client_release(client);
  return 0;
}
