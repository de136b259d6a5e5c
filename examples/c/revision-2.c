/* Learns the fuel consumption of cars through revision 2 of the Paddle client library, with a
 * learning rate in every call. Broker and job: PSERVER_URL, PSERVER_JOB. */
#include <paddle_pserver_client.h>
#include <stdio.h>

#include "cars.h"

#define ROUNDS 300
#define LEARNING_RATE 0.05
#define PARAMETERS 2

struct model {
  float weights[FEATURES];
  float bias;
};

static const char *names[PARAMETERS] = {"weights", "bias"};

/** The parameters of a model, which stay where they are. */
static void list(struct model *model, paddle_parameter parameters[PARAMETERS]) {
  parameters[0] = (paddle_parameter){(char *)names[0], PADDLE_ELEMENT_TYPE_FLOAT32, model->weights,
                                     sizeof model->weights};
  parameters[1] = (paddle_parameter){(char *)names[1], PADDLE_ELEMENT_TYPE_FLOAT32, &model->bias,
                                     sizeof model->bias};
}

static int initialize(paddle_pserver_client *client) {
  static struct model zero;
  paddle_parameter parameters[PARAMETERS];
  list(&zero, parameters);
  int selected = paddle_begin_init_params(client, "{\"optimizer\": \"sgd\"}");
  if (selected != 1) return selected;
  for (int i = 0; i < PARAMETERS; i++) {
    if (paddle_init_param(client, parameters[i]) != 0) return -1;
  }
  return paddle_finish_init_params(client);
}

static int train(paddle_pserver_client *client, const struct cars *cars, struct part part) {
  struct model model;
  struct model step;
  paddle_parameter values[PARAMETERS];
  paddle_gradient gradients[PARAMETERS];
  list(&model, values);
  list(&step, gradients);
  if (initialize(client) != 0) return -1;
  for (int round = 0; round < ROUNDS; round++) {
    if (paddle_get_params(client, names, values, PARAMETERS) != 0) return -1;
    gradient(cars, part, model.weights, model.bias, step.weights, &step.bias);
    if (paddle_send_grads(client, gradients, PARAMETERS, LEARNING_RATE) != 0) return -1;
  }
  if (paddle_get_params(client, names, values, PARAMETERS) != 0) return -1;
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
