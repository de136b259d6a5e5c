/* Trains with the C library: pushes gradients of a whole model, or pulls it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "training.h"

#define PARAMETERS_MAX 256
#define NAME_BYTES 64
/** Threads that pass over the model at the same time. */
#define PASSES 2

/** A model of parameters of one shape. */
struct model {
  size_t parameters;
  char names[PARAMETERS_MAX][NAME_BYTES];
  /** The values that are pushed: small, of both signs, none of them denormal. */
  pserver_tensor value;
  /** By thread: the memory that pulls read into, always the same, as in a training loop. */
  uint8_t *targets[PASSES];
};

struct work;

/** Makes one pass over the model; if it returns false, `work->answer` is the reason. */
typedef bool pass(struct work *work);

/** The work of one thread. */
struct work {
  pass *pass;
  /** Memory that a pull reads into. */
  uint8_t *target;
  double start_ms;
  double duration_ms;
  uint64_t passes;
  bool is_ok;
  struct answer answer;
};

/** The model, made once and not for each run, because filling it takes time. */
static struct model model;

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

/**
 * Allocates the model and fills it, because pages that were never written to share one page of
 * memory.
 */
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

/** Makes the model. Arguments: prefix of the names, number of parameters, shape. */
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

/** Creates the parameters of a model unless they exist; further commands use this model. */
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

static bool push_grads(struct work *work) {
  pserver_gradient gradients[PARAMETERS_MAX];
  for (size_t i = 0; i < model.parameters; i++) {
    gradients[i] = (pserver_gradient){.name = model.names[i], .values = model.value};
  }
  pserver_status status = pserver_send_grads(client, gradients, model.parameters, NULL, TIMEOUT_MS);
  return is_done(status, "push sgd", &work->answer);
}

static bool push_mix(struct work *work) {
  bool is_ok = true;
  for (size_t i = 0; i < model.parameters && is_ok; i++) {
    pserver_status status = pserver_push(client, model.names[i], &model.value, 0.5, 0.5,
                                         PSERVER_AS_IS, TIMEOUT_MS);
    is_ok = is_done(status, "push mix", &work->answer);
  }
  return is_ok;
}

static bool pull(struct work *work) {
  const char *names[PARAMETERS_MAX];
  pserver_tensor targets[PARAMETERS_MAX];
  for (size_t i = 0; i < model.parameters; i++) {
    names[i] = model.names[i];
    targets[i] = model.value;
    targets[i].data = work->target + i * model.value.bytes;
  }
  pserver_status status =
      pserver_get(client, names, targets, model.parameters, PSERVER_AS_IS, TIMEOUT_MS);
  return is_done(status, "pull", &work->answer);
}

/** Makes a training step: pushes all gradients, and then pulls all values. */
static bool step(struct work *work) { return push_grads(work) && pull(work); }

/** Pulls into memory that the library allocates. */
static bool pull_new(struct work *work) {
  const char *names[PARAMETERS_MAX];
  pserver_tensor found[PARAMETERS_MAX] = {0};
  for (size_t i = 0; i < model.parameters; i++) names[i] = model.names[i];
  pserver_status status =
      pserver_get(client, names, found, model.parameters, PSERVER_AS_IS, TIMEOUT_MS);
  bool is_ok = is_done(status, "pull", &work->answer);
  for (size_t i = 0; i < model.parameters && is_ok; i++) pserver_tensor_release(&found[i]);
  return is_ok;
}

/** Finds the function of an operation by name. NULL if there is none. */
static pass *find_operation(const char *name, struct answer *answer) {
  static const struct {
    const char *name;
    pass *run;
  } operations[] = {{"grad", push_grads},
                    {"mix", push_mix},
                    {"pull", pull},
                    {"new", pull_new},
                    {"step", step}};
  for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
    if (strcmp(operations[i].name, name) == 0) return operations[i].run;
  }
  refuse(answer, "expected grad, mix, pull, new or step; received %s", name);
  return NULL;
}

static void *make_passes(void *argument) {
  struct work *work = argument;
  do {
    work->is_ok = work->pass(work);
    work->passes++;
  } while (work->is_ok && machine_ms() - work->start_ms < work->duration_ms);
  return NULL;
}

/** Returns how many passes run at the same time: a step ends before the next begins. */
static int passes_at_once(pass *run) { return run == step ? 1 : PASSES; }

static bool run_passes(pass *run, double duration_ms, struct answer *answer) {
  struct work works[PASSES];
  pthread_t threads[PASSES];
  double start_ms = machine_ms();
  uint64_t passes = 0;
  int started = 0;
  int wanted = passes_at_once(run);
  for (; started < wanted; started++) {
    works[started] = (struct work){.pass = run,
                                   .target = model.targets[started],
                                   .start_ms = start_ms,
                                   .duration_ms = duration_ms};
    if (pthread_create(&threads[started], NULL, make_passes, &works[started]) != 0) break;
  }
  bool is_ok = started == wanted || refuse(answer, "no thread");
  for (int i = 0; i < started; i++) {
    pthread_join(threads[i], NULL);
    passes += works[i].passes;
    if (!works[i].is_ok && is_ok) is_ok = refuse(answer, "%s", works[i].answer.text);
  }
  if (!is_ok) return false;
  uint64_t bytes = (run == step ? 2 : 1) * model.parameters * model.value.bytes;
  snprintf(answer->text, sizeof answer->text, "%llu %.6f %.6f", (unsigned long long)(passes * bytes),
           start_ms, machine_ms());
  return true;
}

/** Makes passes for a time. Arguments: operation, ms. Answer: bytes moved, begin and end in ms. */
static bool run(char **arguments, struct answer *answer) {
  pass *operation = find_operation(arguments[0], answer);
  if (operation == NULL) return false;
  if (model.parameters == 0) return refuse(answer, "expected a model to be created before");
  return run_passes(operation, strtod(arguments[1], NULL), answer);
}

/** Makes passes in one thread. Arguments: operation, how many. Answer: begin and end in ms. */
static bool repeat(char **arguments, struct answer *answer) {
  struct work work = {.pass = find_operation(arguments[0], answer), .target = model.targets[0]};
  if (work.pass == NULL) return false;
  if (model.parameters == 0) return refuse(answer, "expected a model to be created before");
  unsigned long long count = strtoull(arguments[1], NULL, 10);
  double start_ms = machine_ms();
  for (unsigned long long i = 0; i < count; i++) {
    if (!work.pass(&work)) return refuse(answer, "%s", work.answer.text);
  }
  snprintf(answer->text, sizeof answer->text, "%.6f %.6f", start_ms, machine_ms());
  return true;
}

int main(void) {
  static const struct command commands[] = {
      {"open", 3, open_trainer}, {"create", 3, create}, {"run", 2, run}, {"repeat", 2, repeat}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  close_trainer();
  release_model();
  return 0;
}
