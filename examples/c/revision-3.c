/* Learns the fuel consumption of cars through revision 3 of the Paddle client library, as trainers of
 * PaddlePaddle did. With ETCD set, broker and job are found there; else they are PSERVER_URL and
 * PSERVER_JOB, and the trainer of rank 0 initializes. */
#include <paddle_pserver_client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cars.h"

#define ROUNDS 300
#define LEARNING_RATE 0.05
#define PARAMETERS 2

struct model {
  float weights[FEATURES];
  float bias;
};

/** The parameters of a model, which stay where they are. */
static void list(struct model *model, paddle_parameter parameters[PARAMETERS]) {
  parameters[0] = (paddle_parameter){(char *)"weights", PADDLE_ELEMENT_TYPE_FLOAT32,
                                     (unsigned char *)model->weights, sizeof model->weights};
  parameters[1] = (paddle_parameter){(char *)"bias", PADDLE_ELEMENT_TYPE_FLOAT32,
                                     (unsigned char *)&model->bias, sizeof model->bias};
}

/** A serialized OptimizerConfig: optimizer SGD, lr_policy Const, const_lr. */
struct optimizer {
  unsigned char bytes[15];
};

static struct optimizer make_optimizer(double learning_rate) {
  struct optimizer optimizer = {{0x08, 1, 0x58, 0, 0x62, 9, 0x09}};
  memcpy(optimizer.bytes + 7, &learning_rate, sizeof learning_rate);
  return optimizer;
}

static int initialize(paddle_pserver_client client) {
  static struct model zero;
  struct optimizer optimizer = make_optimizer(LEARNING_RATE);
  paddle_parameter parameters[PARAMETERS];
  list(&zero, parameters);
  int selected = paddle_begin_init_params(client);
  if (selected != 1) return selected;
  for (int i = 0; i < PARAMETERS; i++) {
    if (paddle_init_param(client, parameters[i], optimizer.bytes, sizeof optimizer.bytes) != 0) {
      return -1;
    }
  }
  return paddle_finish_init_params(client);
}

static int train(paddle_pserver_client client, const struct cars *cars, struct part part) {
  struct model model;
  struct model step;
  paddle_parameter values[PARAMETERS];
  paddle_parameter *wanted[PARAMETERS] = {&values[0], &values[1]};
  paddle_gradient gradients[PARAMETERS];
  list(&model, values);
  list(&step, gradients);
  if (initialize(client) != 0) return -1;
  for (int round = 0; round < ROUNDS; round++) {
    if (paddle_get_params(client, wanted, PARAMETERS) != 0) return -1;
    gradient(cars, part, model.weights, model.bias, step.weights, &step.bias);
    if (paddle_send_grads(client, gradients, PARAMETERS) != 0) return -1;
  }
  if (paddle_get_params(client, wanted, PARAMETERS) != 0) return -1;
  return report(cars, model.weights, model.bias);
}

int main(int argc, char **argv) {
  static struct cars cars;
  struct part part;
  if (read_cars(argc, argv, &cars, &part) != 0) return 2;
  char *etcd = getenv("ETCD");
  paddle_pserver_client client = etcd != NULL ? paddle_new_etcd_pserver_client(etcd)
                                              : paddle_new_pserver_client(NULL, part.rank == 0);
  if (client < 0) return 1;
  int result = train(client, &cars, part);
  if (result < 0) fprintf(stderr, "%s\n", paddle_pserver_last_error());
  paddle_pserver_client_release(client);
  return result == 0 ? 0 : 1;
}
