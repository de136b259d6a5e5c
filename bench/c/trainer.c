/* Trains with the C library: pushes gradients of a whole model, or pulls it. */
#include <pserver.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"

#define PARAMETERS_MAX 256
#define NAME_BYTES 64
/** Passes over the model at one time: none waits for the end of another. */
#define PASSES 2
#define TIMEOUT_MS 100000

/** Parameters of one shape, as a model is benchmarked. */
struct model {
  size_t parameters;
  char names[PARAMETERS_MAX][NAME_BYTES];
  /** Small values of both signs, none of them denormal. */
  pserver_tensor value;
  /** What is read into, pull after pull, as a training loop does. */
  uint8_t *targets[PASSES];
};

/** What one thread does, and how often it has done it. */
struct work {
  /** NULL: pushes. */
  uint8_t *target;
  double start_ms;
  double duration_ms;
  uint64_t passes;
  bool is_ok;
  struct answer answer;
};

static pserver_client *client;
/** Made once, not for each run: filling it takes time, too. */
static struct model model;

static bool is_done(pserver_status status, const char *what, struct answer *answer) {
  const char *text = "";
  if (status == PSERVER_OK) return true;
  pserver_last_error(&text);
  return refuse(answer, "%s: %s: %s", what, pserver_status_name(status), text);
}

static bool read_shape(const char *text, pserver_tensor *tensor) {
  uint64_t elements = 1;
  *tensor = (pserver_tensor){.dtype = PSERVER_FLOAT32};
  while (*text != '\0' && tensor->rank < PSERVER_RANK_MAX) {
    char *end = NULL;
    uint64_t size = strtoull(text, &end, 10);
    if (end == text || size == 0) return false;
    tensor->shape[tensor->rank++] = size;
    elements *= size;
    text = *end == ',' ? end + 1 : end;
  }
  tensor->bytes = elements * sizeof(float);
  return true;
}

static void release_model(void) {
  free(model.value.data);
  for (int i = 0; i < PASSES; i++) free(model.targets[i]);
  model = (struct model){0};
}

/** Filled: pages that nobody has written to are all one page. */
static bool allocate_model(struct answer *answer) {
  size_t bytes = model.parameters * model.value.bytes;
  float *values = model.value.data = malloc(model.value.bytes);
  if (values == NULL) return refuse(answer, "no memory");
  for (uint64_t i = 0; i < model.value.bytes / sizeof(float); i++) {
    values[i] = ((float)(i * 2654435761 % 2001) - 1000.5F) / 1e6F;
  }
  for (int i = 0; i < PASSES; i++) {
    model.targets[i] = malloc(bytes);
    if (model.targets[i] == NULL) return refuse(answer, "no memory");
    memset(model.targets[i], 1, bytes);
  }
  return true;
}

/** Prefix of the names, number of parameters, shape. */
static bool read_model(char **arguments, struct answer *answer) {
  release_model();
  size_t parameters = strtoull(arguments[1], NULL, 10);
  if (parameters == 0 || parameters > PARAMETERS_MAX || !read_shape(arguments[2], &model.value)) {
    return refuse(answer, "expected a model; received %s %s", arguments[1], arguments[2]);
  }
  model.parameters = parameters;
  for (size_t i = 0; i < parameters; i++) {
    snprintf(model.names[i], NAME_BYTES, "%s.%zu", arguments[0], i);
  }
  return allocate_model(answer);
}

/** URL, job, trainer. */
static bool open_trainer(char **arguments, struct answer *answer) {
  pserver_options options;
  pserver_options_init(&options);
  options.url = arguments[0];
  options.job = arguments[1];
  options.trainer = arguments[2];
  options.connect_timeout_ms = TIMEOUT_MS;
  return is_done(pserver_connect(&options, &client), "open", answer);
}

/** Creates the parameters of a model unless they exist, for the runs to come. */
static bool create(char **arguments, struct answer *answer) {
  const pserver_config config = {.text = "{\"learningRate\":0.001}"};
  bool is_ok = read_model(arguments, answer);
  for (size_t i = 0; i < model.parameters && is_ok; i++) {
    pserver_status status =
        pserver_create(client, model.names[i], &model.value, &config, TIMEOUT_MS, NULL);
    is_ok = is_done(status, "create", answer);
  }
  return is_ok;
}

static void push_passes(struct work *work) {
  pserver_gradient gradients[PARAMETERS_MAX];
  for (size_t i = 0; i < model.parameters; i++) {
    gradients[i] = (pserver_gradient){.name = model.names[i], .values = model.value};
  }
  do {
    pserver_status status =
        pserver_send_grads(client, gradients, model.parameters, NULL, TIMEOUT_MS);
    work->is_ok = is_done(status, "push", &work->answer);
    work->passes++;
  } while (work->is_ok && machine_ms() - work->start_ms < work->duration_ms);
}

static void pull_passes(struct work *work) {
  const char *names[PARAMETERS_MAX];
  pserver_tensor targets[PARAMETERS_MAX];
  for (size_t i = 0; i < model.parameters; i++) {
    names[i] = model.names[i];
    targets[i] = model.value;
    targets[i].data = work->target + i * model.value.bytes;
  }
  do {
    pserver_status status =
        pserver_get(client, names, targets, model.parameters, PSERVER_AS_IS, TIMEOUT_MS);
    work->is_ok = is_done(status, "pull", &work->answer);
    work->passes++;
  } while (work->is_ok && machine_ms() - work->start_ms < work->duration_ms);
}

static void *make_passes(void *argument) {
  struct work *work = argument;
  if (work->target == NULL) push_passes(work);
  else pull_passes(work);
  return NULL;
}

static bool run_passes(bool is_pull, double duration_ms, struct answer *answer) {
  struct work works[PASSES];
  pthread_t threads[PASSES];
  double start_ms = machine_ms();
  uint64_t passes = 0;
  int started = 0;
  for (; started < PASSES; started++) {
    works[started] = (struct work){.target = is_pull ? model.targets[started] : NULL,
                                   .start_ms = start_ms,
                                   .duration_ms = duration_ms};
    if (pthread_create(&threads[started], NULL, make_passes, &works[started]) != 0) break;
  }
  bool is_ok = started == PASSES || refuse(answer, "no thread");
  for (int i = 0; i < started; i++) {
    pthread_join(threads[i], NULL);
    passes += works[i].passes;
    if (!works[i].is_ok && is_ok) is_ok = refuse(answer, "%s", works[i].answer.text);
  }
  if (!is_ok) return false;
  snprintf(answer->text, sizeof answer->text, "%llu %.6f %.6f",
           (unsigned long long)(passes * model.parameters * model.value.bytes), start_ms,
           machine_ms());
  return true;
}

/** "grad" or "pull", ms; bytes that were moved, ms of the beginning and of the end. */
static bool run(char **arguments, struct answer *answer) {
  bool is_pull = strcmp(arguments[0], "pull") == 0;
  if (!is_pull && strcmp(arguments[0], "grad") != 0) {
    return refuse(answer, "expected pull or grad; received %s", arguments[0]);
  }
  if (model.parameters == 0) return refuse(answer, "expected a model to be created before");
  return run_passes(is_pull, strtod(arguments[1], NULL), answer);
}

int main(void) {
  static const struct command commands[] = {
      {"open", 3, open_trainer}, {"create", 3, create}, {"run", 2, run}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  if (client != NULL) pserver_close(client, TIMEOUT_MS);
  release_model();
  return 0;
}
