/* Learns the fuel consumption of cars through revision 1 of the Paddle client library, which sends
 * one parameter at a time. Broker and job: PSERVER_URL, PSERVER_JOB. */
#include <paddle_pserver_client.h>
#include <stdio.h>

#include "cars.h"

#define ROUNDS 300
/* The server subtracts gradients as they are, so the trainer multiplies them by the rate. */
#define LEARNING_RATE 0.05f
#define FLOATS PADDLE_ELEMENT_TYPE_FLOAT32

struct model {
  float weights[FEATURES];
  float bias;
};

static int initialize(paddle_pserver_client *client) {
  static const struct model zero;
  if (paddle_declare_param(client, "weights", FLOATS, FEATURES) != 0) return -1;
  if (paddle_declare_param(client, "bias", FLOATS, 1) != 0) return -1;
  int selected = paddle_begin_init_param(client);
  if (selected != 1) return selected;
  if (paddle_init_param(client, "weights", FLOATS, zero.weights) != 0) return -1;
  if (paddle_init_param(client, "bias", FLOATS, &zero.bias) != 0) return -1;
  return paddle_finish_init_param(client);
}

static int pull(paddle_pserver_client *client, struct model *model) {
  void *weights = model->weights;
  void *bias = &model->bias;
  int weight_bytes = sizeof model->weights;
  int bias_bytes = sizeof model->bias;
  if (paddle_get_param(client, "weights", &weights, &weight_bytes) != 0) return -1;
  return paddle_get_param(client, "bias", &bias, &bias_bytes);
}

static int push(paddle_pserver_client *client, struct model *step) {
  for (int k = 0; k < FEATURES; k++) step->weights[k] *= LEARNING_RATE;
  step->bias *= LEARNING_RATE;
  if (paddle_send_grad(client, "weights", FLOATS, step->weights) != 0) return -1;
  return paddle_send_grad(client, "bias", FLOATS, &step->bias);
}

static int train(paddle_pserver_client *client, const struct cars *cars, struct part part) {
  struct model model;
  struct model step;
  if (initialize(client) != 0) return -1;
  for (int round = 0; round < ROUNDS; round++) {
    if (pull(client, &model) != 0) return -1;
    gradient(cars, part, model.weights, model.bias, step.weights, &step.bias);
    if (push(client, &step) != 0) return -1;
  }
  if (pull(client, &model) != 0) return -1;
  return report(cars, model.weights, model.bias);
}

int main(int argc, char **argv) {
  static struct cars cars;
  struct part part;
  if (read_cars(argc, argv, &cars, &part) != 0) return 2;
  paddle_pserver_client *client = paddle_new_pserver_client();
  if (client == NULL) return 1;
  int result = train(client, &cars, part);
  if (result < 0) fprintf(stderr, "%s\n", paddle_pserver_last_error());
  paddle_pserver_client_release(client);
  return result == 0 ? 0 : 1;
}
