/*
 * Makes every call of test/vectors/refusals.json on a job that has its parameters, and prints the name of the
 * status and the details of the error for each. Arguments: URL, job.
 */
#include <math.h>
#include <pserver.h>
#include <string.h>

#include "expect.h"

#define COUNT(table) (sizeof table / sizeof table[0])
#define TENSOR_BYTES 256

struct refusal_call {
  const char *what, *call, *name, *path, *config;
  pserver_dtype dtype;
  int32_t rank;
  uint64_t shape[4];
  /* Numbers of `dtype`, whatever it is. */
  const double *values;
  size_t count;
  double alpha, beta;
  bool has_rate;
  double rate;
  pserver_encoding encoding;
  const int64_t *rows;
  size_t row_count;
  size_t lists;
  pserver_indices indices[4];
};

#include "refusals.h"

/** Writes the numbers as elements of the type; returns their bytes. */
static size_t convert(const struct refusal_call *call, unsigned char *data) {
  unsigned char *to = data;
  for (size_t i = 0; i < call->count; i++) {
    double number = call->values[i];
    float narrow = (float)number;
    int32_t whole = call->dtype == PSERVER_INT32 ? (int32_t)number : 0;
    int64_t wide = call->dtype == PSERVER_INT64 ? (int64_t)number : 0;
    const void *from = call->dtype == PSERVER_FLOAT32   ? (const void *)&narrow
                       : call->dtype == PSERVER_FLOAT64 ? (const void *)&number
                       : call->dtype == PSERVER_INT32   ? (const void *)&whole
                                                        : (const void *)&wide;
    size_t bytes = call->dtype == PSERVER_FLOAT32 || call->dtype == PSERVER_INT32 ? 4 : 8;
    memcpy(to, from, bytes);
    to += bytes;
  }
  return (size_t)(to - data);
}

static pserver_status update(pserver_client *client, const struct refusal_call *call,
                             const pserver_tensor *tensor) {
  pserver_update_options options;
  pserver_update_options_init(&options);
  options.encoding = call->encoding;
  if (strcmp(call->call, "push") == 0) {
    return pserver_push_with(client, call->name, tensor, call->alpha, call->beta, &options, -1);
  }
  if (strcmp(call->call, "set") == 0) return pserver_set(client, &call->name, tensor, 1, -1);
  EXPECT(strcmp(call->call, "pushPart") == 0);
  return pserver_push_part_with(client, call->name, tensor, call->indices, call->lists, call->alpha,
                                call->beta, &options, -1);
}

static pserver_status send_grads(pserver_client *client, const struct refusal_call *call,
                                 const pserver_tensor *tensor) {
  pserver_gradient gradient = {call->name, *tensor, call->rows, call->row_count};
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = call->has_rate;
  options.learning_rate = call->rate;
  options.encoding = call->encoding;
  return pserver_send_grads(client, &gradient, 1, &options, -1);
}

static pserver_status make(pserver_client *client, const struct refusal_call *call) {
  unsigned char data[TENSOR_BYTES];
  EXPECT(call->count <= TENSOR_BYTES / 8);
  pserver_tensor tensor = {.dtype = call->dtype, .rank = call->rank, .data = data};
  memcpy(tensor.shape, call->shape, sizeof call->shape);
  tensor.bytes = convert(call, data);
  pserver_config config = {.text = call->config};
  pserver_tensor got = {0};
  if (strcmp(call->call, "pull") == 0) {
    return pserver_get(client, &call->name, &got, 1, call->encoding, -1);
  }
  if (strcmp(call->call, "pullPart") == 0) {
    return pserver_pull_part(client, call->name, call->indices, call->lists, &got, -1);
  }
  if (strcmp(call->call, "create") == 0) {
    return pserver_create(client, call->name, &tensor, &config, -1, NULL);
  }
  if (strcmp(call->call, "initParam") == 0) {
    return pserver_init_param(client, call->name, &tensor, &config, -1);
  }
  if (strcmp(call->call, "save") == 0) return pserver_save(client, call->path, -1);
  if (strcmp(call->call, "sendGrads") == 0) return send_grads(client, call, &tensor);
  return update(client, call, &tensor);
}

int main(int argc, char **argv) {
  EXPECT(argc == 3);
  pserver_options options;
  pserver_client *client = NULL;
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = "refused";
  EXPECT_OK(pserver_connect(&options, &client));
  for (size_t i = 0; i < COUNT(calls); i++) {
    pserver_status status = make(client, &calls[i]);
    const char *message = "";
    pserver_last_error(&message);
    printf("%s %s\t%s\n", pserver_status_name(status), pserver_last_error_details(), message);
  }
  EXPECT_OK(pserver_close(client, -1));
  return 0;
}
