/*
 * A trainer of many parameters: initializes them by one call, and then changes all and reads all in rounds,
 * whatever happens to hosts and broker. Arguments: URL, job, trainer, parameters, elements of each, rounds.
 * Each gradient adds one to every element; a round reads what has changed of all parameters, and some
 * rows of each by parts, and checks that no read is older than what it has seen. Tells each round.
 */
#include <pserver.h>
#include <string.h>

#include "expect.h"

#define PATIENCE_MS 60000
#define ROW 4
#define NAME_BYTES 24

static size_t count;
static size_t elements;
static char (*names)[NAME_BYTES];
static const char **listed;

static pserver_tensor tensor_of(float *values) {
  return (pserver_tensor){
      PSERVER_FLOAT32, 2, {elements / ROW, ROW}, values, elements * sizeof(float)};
}

static void initialize(pserver_client *client) {
  bool selected = false;
  float *zeros = calloc(elements, sizeof(float));
  pserver_config config = {.text = "learningRate: 1"};
  pserver_new_parameter *parameters = calloc(count, sizeof *parameters);
  for (size_t i = 0; i < count; i++) {
    parameters[i] = (pserver_new_parameter){names[i], tensor_of(zeros), &config};
  }
  EXPECT_OK(pserver_begin_init(client, true, PATIENCE_MS, &selected));
  if (selected) {
    EXPECT_ERROR(EMPTY, pserver_init_params(client, parameters, 0, -1));
    EXPECT_ERROR(BAD_VALUE, pserver_init_params(client, NULL, 1, -1));
    parameters[1].name = names[0];
    EXPECT_ERROR(BAD_VALUE, pserver_init_params(client, parameters, count, -1));
    parameters[1].name = "";
    EXPECT_ERROR(BAD_NAME, pserver_init_params(client, parameters, count, -1));
    parameters[1].name = names[1];
    EXPECT_OK(pserver_init_params(client, parameters, count, PATIENCE_MS));
    EXPECT_OK(pserver_finish_init(client, PATIENCE_MS));
  } else {
    EXPECT_ERROR(NOT_SELECTED, pserver_init_params(client, parameters, count, -1));
  }
  free(parameters);
  free(zeros);
}

static void add_ones(pserver_client *client, float *ones) {
  pserver_gradient *grads = calloc(count, sizeof *grads);
  for (size_t i = 0; i < count; i++) grads[i] = (pserver_gradient){.name = names[i], .values = tensor_of(ones)};
  EXPECT_OK(pserver_send_grads(client, grads, count, NULL, PATIENCE_MS));
  free(grads);
}

/** Every element of a tensor is the same, and at least as large as before. */
static void expect_counter(const float *values, size_t number, float least) {
  for (size_t i = 0; i < number; i++) EXPECT(values[i] == values[0]);
  EXPECT(values[0] >= least);
}

/** Some rows of a parameter. */
static void read_part(pserver_client *client, const char *name, float least) {
  static const int64_t columns[ROW] = {0, 1, 2, 3};
  int64_t rows[3] = {-1, 0, 0};
  pserver_indices indices[2] = {{rows, 3}, {columns, ROW}};
  pserver_tensor part = {0};
  EXPECT_OK(pserver_pull_part(client, name, indices, 2, &part, PATIENCE_MS));
  expect_counter(part.data, 3 * ROW, least);
  pserver_tensor_release(&part);
}

/** Reads what has changed of all since the last round, in place. */
static void read_all(pserver_client *client, float *values, pserver_origins **origins, float least) {
  pserver_tensor *tensors = calloc(count, sizeof *tensors);
  pserver_known *known = calloc(count, sizeof *known);
  pserver_origins *read = NULL;
  for (size_t i = 0; i < count; i++) {
    tensors[i] = tensor_of(values + i * elements);
    known[i] = (pserver_known){tensors[i].data, *origins, i};
  }
  EXPECT_OK(pserver_get_known(client, listed, tensors, count, known, &read, NULL, PATIENCE_MS));
  for (size_t i = 0; i < count; i++) expect_counter(values + i * elements, elements, least);
  pserver_origins_free(*origins);
  *origins = read;
  free(known);
  free(tensors);
}

int main(int argc, char **argv) {
  EXPECT(argc == 7);
  count = (size_t)atoi(argv[4]);
  elements = (size_t)atoi(argv[5]);
  pserver_options options;
  pserver_client *client = NULL;
  pserver_origins *origins = NULL;
  names = calloc(count, sizeof *names);
  listed = calloc(count, sizeof *listed);
  for (size_t i = 0; i < count; i++) {
    snprintf(names[i], sizeof names[i], "p%zu", i);
    listed[i] = names[i];
  }
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = argv[3];
  options.connect_timeout_ms = PATIENCE_MS;
  EXPECT_OK(pserver_connect(&options, &client));
  initialize(client);
  float *ones = malloc(elements * sizeof(float));
  float *values = calloc(count * elements, sizeof(float));
  for (size_t i = 0; i < elements; i++) ones[i] = -1;
  for (int round = 1; round <= atoi(argv[6]); round++) {
    add_ones(client, ones);
    read_all(client, values, &origins, (float)round);
    read_part(client, names[(size_t)round % count], (float)round);
    printf("round %d\n", round);
    fflush(stdout);
  }
  EXPECT_OK(pserver_close(client, -1));
  pserver_origins_free(origins);
  free(ones);
  free(values);
  free(names);
  free(listed);
  return 0;
}
