/*
 * Does what each line of standard input says on one client, and prints the name of the status and the
 * message of what came of it. Arguments: URL, job, trainer, timeout of a call in ms, and, if it is not the
 * default, that of connecting. Lines: `create` and `push` work on a parameter "p" of one element, `get`
 * prints it; `large` pushes 40 MB to "large"; `grad` sends a gradient of 1 to "p" at rate 1; `fallbacks`
 * prints what shards have lost, as shard:generation:from-to.
 */
#include <pserver.h>
#include <string.h>

#include "expect.h"

#define LARGE ((size_t)10 * 1024 * 1024)

static float one = 1;
static float *large;

static pserver_tensor tensor_of(float *data, uint64_t elements) {
  return (pserver_tensor){PSERVER_FLOAT32, 1, {elements}, data, elements * sizeof(float)};
}

static pserver_status obey(pserver_client *client, const char *line) {
  pserver_tensor value = tensor_of(&one, 1);
  pserver_tensor many = tensor_of(large, LARGE);
  const char *name = "p";
  if (strcmp(line, "create\n") == 0) {
    pserver_status status = pserver_create(client, name, &value, NULL, -1, NULL);
    return status == PSERVER_OK ? pserver_create(client, "large", &many, NULL, -1, NULL) : status;
  }
  if (strcmp(line, "push\n") == 0) {
    return pserver_push(client, name, &value, 1, 1, PSERVER_AS_IS, -1);
  }
  if (strcmp(line, "fallbacks\n") == 0) {
    pserver_fallback *lost = NULL;
    size_t count = 0;
    pserver_status status = pserver_fallbacks(client, &lost, &count, -1);
    for (size_t i = 0; i < count; i++) {
      printf("%u:%llu:%llu-%llu ", lost[i].shard, (unsigned long long)lost[i].generation,
             (unsigned long long)lost[i].from, (unsigned long long)lost[i].to);
    }
    pserver_fallbacks_release(lost);
    return status;
  }
  if (strcmp(line, "grad\n") == 0) {
    pserver_grad_options options;
    pserver_grad_options_init(&options);
    options.has_learning_rate = true;
    options.learning_rate = 1;
    pserver_gradient gradient = {name, value, NULL, 0};
    return pserver_send_grads(client, &gradient, 1, &options, -1);
  }
  if (strcmp(line, "large\n") == 0) {
    return pserver_push(client, "large", &many, 1, 1, PSERVER_AS_IS, -1);
  }
  pserver_tensor got = {0};
  pserver_status status = pserver_get(client, &name, &got, 1, PSERVER_AS_IS, -1);
  if (status == PSERVER_OK) printf("%g ", (double)*(float *)got.data);
  pserver_tensor_release(&got);
  return status;
}

int main(int argc, char **argv) {
  EXPECT(argc == 5 || argc == 6);
  pserver_options options;
  pserver_client *client = NULL;
  char line[64];
  const char *message = "";
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = argv[3];
  options.call_timeout_ms = atoi(argv[4]);
  if (argc == 6) options.connect_timeout_ms = atoi(argv[5]);
  large = calloc(LARGE, sizeof(float));
  pserver_status status = pserver_connect(&options, &client);
  do {
    if (status != PSERVER_OK) pserver_last_error(&message);
    printf("%s %s\n", pserver_status_name(status), status == PSERVER_OK ? "" : message);
    fflush(stdout);
    if (client == NULL || fgets(line, sizeof line, stdin) == NULL) break;
    status = obey(client, line);
  } while (true);
  if (client != NULL) EXPECT_OK(pserver_close(client, 1000));
  free(large);
  return 0;
}
