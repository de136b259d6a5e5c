#include "paddle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Trainers of PaddlePaddle's functions, their errors, and what all revisions do with them. */

/* The last error of each thread; the first error of each code is also printed. */

#define TEXT_BYTES 1280
#define CODES 128

static _Thread_local const char *function = "";
static _Thread_local char last[TEXT_BYTES];
static atomic_bool was_printed[CODES];

void ps_name_function(const char *name) { function = name; }

/* A trainer that ignores what calls return must not fill its log with one line per batch. */
static void print_once(pserver_status code) {
  if ((unsigned)code >= CODES || atomic_exchange(&was_printed[code], true)) return;
  fprintf(stderr, "%s\n(paddle_pserver_last_error() returns further failures with %s)\n", last,
          pserver_status_name(code));
}

int ps_report(pserver_status code, const char *format, ...) {
  char text[TEXT_BYTES / 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(last, sizeof last, "%s: %s: %s", function, pserver_status_name(code), text);
  print_once(code);
  return -1;
}

int ps_report_core(void) {
  const char *message;
  pserver_status code = pserver_last_error(&message);
  snprintf(last, sizeof last, "%s: %s: %s", function, pserver_status_name(code), message);
  print_once(code);
  return -1;
}

const char *ps_last_report(void) { return last; }

/* Settings from the environment, for which the published functions have no argument. */

/** A year, the longest timeout that libpserver accepts. */
#define TIMEOUT_MS_MAX (INT64_C(365) * 24 * 3600 * 1000)

const char *ps_environment_value(const char *name) {
  const char *value = getenv(name);
  return value == NULL || *value == '\0' ? NULL : value;
}

/** Returns PSERVER_TIMEOUT_MS; 0 if it is not set; -1, with an error, if it is invalid. */
static int64_t environment_timeout_ms(void) {
  const char *text = ps_environment_value("PSERVER_TIMEOUT_MS");
  if (text == NULL) return 0;
  char *end;
  errno = 0;
  long long timeout_ms = strtoll(text, &end, 10);
  if (errno == 0 && *end == '\0' && timeout_ms > 0 && timeout_ms <= TIMEOUT_MS_MAX) {
    return timeout_ms;
  }
  return ps_report(PSERVER_ERR_BAD_VALUE,
                   "PSERVER_TIMEOUT_MS: expected milliseconds, from 1 to a year; received \"%s\"", text);
}

/* Initialization: selection of the trainer, first values, and the end. */

int ps_begin(struct ps_trainer *trainer, bool waits) {
  bool is_selected;
  int64_t timeout_ms = waits ? ps_waiting_ms(trainer) : ps_calling_ms(trainer);
  if (pserver_begin_init(trainer->core, waits, timeout_ms, &is_selected) != PSERVER_OK) {
    return ps_report_core();
  }
  if (waits && !is_selected) trainer->is_ready = true;
  if (!waits) trainer->is_second = !is_selected;
  return is_selected ? 1 : 0;
}

static bool is_ready(struct ps_trainer *trainer) {
  pserver_job_info info;
  return pserver_job_status(trainer->core, &info, ps_calling_ms(trainer)) == PSERVER_OK &&
         info.state == PSERVER_READY;
}

/** Returns what the published functions return for this status. */
static int settle(struct ps_trainer *trainer, pserver_status status, enum ps_repetition repetition) {
  if (status == PSERVER_OK) return 0;
  bool is_too_late = status == PSERVER_ERR_ALREADY_INITIALIZED ||
                     ((status == PSERVER_ERR_NOT_SELECTED || status == PSERVER_ERR_STALE_EPOCH) &&
                      repetition == PS_REPETITION_SUCCEEDS && is_ready(trainer));
  if (!is_too_late || repetition == PS_REPETITION_FAILS) return ps_report_core();
  trainer->is_ready = true;
  return 0;
}

int ps_initialize(struct ps_trainer *trainer, const struct ps_values *values, const pserver_config *config,
                  enum ps_repetition repetition) {
  pserver_tensor tensor;
  if (!ps_tensor_of(values, &tensor)) return -1;
  pserver_status status =
      pserver_init_param(trainer->core, values->name, &tensor, config, ps_calling_ms(trainer));
  return settle(trainer, status, repetition);
}

int ps_finish(struct ps_trainer *trainer, enum ps_repetition repetition) {
  pserver_status status = pserver_finish_init(trainer->core, ps_calling_ms(trainer));
  if (status == PSERVER_OK) trainer->is_ready = true;
  return settle(trainer, status, repetition);
}

int ps_await_ready(struct ps_trainer *trainer) {
  if (!trainer->is_second || trainer->is_ready) return 0;
  int is_selected = ps_begin(trainer, true);
  if (is_selected <= 0) return is_selected;
  return ps_report(PSERVER_ERR_NOT_INITIALIZED,
                   "the trainer that was initializing has died, and this one is selected instead: call "
                   "paddle_begin_init_params() again, which returns 1, and initialize");
}

/* The trainers of a process, by number, so that a closed or invalid one is an error and not a crash. */

#define WAITING_MS 3600000
#define CLOSE_MS 10000
#define NUMBER_MAX INT32_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/** Signalled when a call has ended. */
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static struct ps_trainer *trainers;
static uint32_t trainers_made;
/** The process that has opened a trainer; 0 before. */
static atomic_int owner;

/** Whether this process was forked from the one that has opened trainers. To be called before the lock is
 * taken, because it may have been held during the fork. */
static bool is_other_process(void) {
  int expected = 0;
  int here = (int)getpid();
  if (atomic_compare_exchange_strong(&owner, &expected, here) || expected == here) return false;
  ps_report(PSERVER_ERR_CLOSED,
            "this process was forked from %d, which had made a client: make clients after the fork",
            expected);
  return true;
}

static void destroy(struct ps_trainer *trainer) {
  ps_lengths_release(&trainer->lengths);
  pthread_mutex_destroy(&trainer->config_lock);
  free(trainer->config);
  free(trainer);
}

static struct ps_trainer *make(void) {
  struct ps_trainer *trainer = calloc(1, sizeof *trainer);
  if (trainer != NULL && ps_lengths_init(&trainer->lengths)) {
    if (pthread_mutex_init(&trainer->config_lock, NULL) == 0) return trainer;
    ps_lengths_release(&trainer->lengths);
  }
  free(trainer);
  ps_report(PSERVER_ERR_INTERNAL, "no memory for a client");
  return NULL;
}

static bool connect_core(struct ps_trainer *trainer, struct ps_place place) {
  trainer->timeout_ms = environment_timeout_ms();
  if (trainer->timeout_ms < 0) return false;
  pserver_options options;
  pserver_options_init(&options);
  options.url = place.url;
  options.job = place.job;
  if (pserver_connect(&options, &trainer->core) == PSERVER_OK) return true;
  ps_report_core();
  return false;
}

/** Registers a trainer; false if no number is left. */
static bool enlist(struct ps_trainer *trainer) {
  pthread_mutex_lock(&lock);
  bool is_free = trainers_made < NUMBER_MAX;
  if (is_free) {
    trainer->number = trainers_made++;
    trainer->next = trainers;
    trainers = trainer;
  }
  pthread_mutex_unlock(&lock);
  return is_free;
}

uint32_t ps_trainer_open(struct ps_place place, bool is_selectable) {
  if (is_other_process()) return PS_NO_TRAINER;
  struct ps_trainer *trainer = make();
  if (trainer == NULL) return PS_NO_TRAINER;
  trainer->is_selectable = is_selectable;
  if (!connect_core(trainer, place)) {
    destroy(trainer);
    return PS_NO_TRAINER;
  }
  if (enlist(trainer)) return trainer->number;
  pserver_close(trainer->core, CLOSE_MS);
  destroy(trainer);
  ps_report(PSERVER_ERR_TOO_LARGE, "no number is left for a client in this process");
  return PS_NO_TRAINER;
}

static struct ps_trainer **find(uint32_t number) {
  struct ps_trainer **link = &trainers;
  while (*link != NULL && (*link)->number != number) link = &(*link)->next;
  return link;
}

static void report_unknown(void) {
  ps_report(PSERVER_ERR_CLOSED, "the client is released, or was never made");
}

void ps_trainer_close(uint32_t number) {
  if (is_other_process()) return;
  pthread_mutex_lock(&lock);
  struct ps_trainer **link = find(number);
  struct ps_trainer *trainer = *link;
  if (trainer != NULL) *link = trainer->next;
  pthread_mutex_unlock(&lock);
  if (trainer == NULL) {
    report_unknown();
    return;
  }
  /* This also ends the trainer's calls. */
  if (pserver_close(trainer->core, CLOSE_MS) != PSERVER_OK) ps_report_core();
  pthread_mutex_lock(&lock);
  while (trainer->users > 0) pthread_cond_wait(&left, &lock);
  pthread_mutex_unlock(&lock);
  destroy(trainer);
}

struct ps_trainer *ps_trainer_enter(uint32_t number) {
  if (is_other_process()) return NULL;
  pthread_mutex_lock(&lock);
  struct ps_trainer *trainer = *find(number);
  if (trainer != NULL) trainer->users++;
  pthread_mutex_unlock(&lock);
  if (trainer == NULL) report_unknown();
  return trainer;
}

void ps_trainer_leave(struct ps_trainer *trainer) {
  pthread_mutex_lock(&lock);
  if (--trainer->users == 0) pthread_cond_broadcast(&left);
  pthread_mutex_unlock(&lock);
}

int64_t ps_waiting_ms(const struct ps_trainer *trainer) {
  return trainer->timeout_ms == 0 ? WAITING_MS : trainer->timeout_ms;
}

int64_t ps_calling_ms(const struct ps_trainer *trainer) {
  return trainer->timeout_ms == 0 ? PSERVER_TIMEOUT_DEFAULT : trainer->timeout_ms;
}

/* Sends gradients and values, and saves the model. */

/** The timeout of saving, as in libpserver. */
#define SAVE_MS 600000

static int no_memory(int total) {
  return ps_report(PSERVER_ERR_INTERNAL, "no memory for %d parameters", total);
}

/** Makes a tensor of values that fits a parameter of any shape. */
static bool flat_tensor_of(const struct ps_values *values, pserver_tensor *tensor) {
  if (!ps_tensor_of(values, tensor)) return false;
  tensor->rank = PSERVER_RANK_OF_PARAMETER;
  return true;
}

int ps_send_gradients(struct ps_trainer *trainer, const struct ps_values *values, int total,
                      const double *learning_rate) {
  pserver_gradient *grads = calloc((size_t)total, sizeof *grads);
  if (grads == NULL) return no_memory(total);
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = learning_rate != NULL;
  if (learning_rate != NULL) options.learning_rate = *learning_rate;
  int result = 0;
  for (int i = 0; i < total && result == 0; i++) {
    grads[i].name = values[i].name;
    if (!flat_tensor_of(&values[i], &grads[i].values)) result = -1;
  }
  if (result == 0 && pserver_send_grads(trainer->core, grads, (size_t)total, &options,
                                        ps_calling_ms(trainer)) != PSERVER_OK) {
    result = ps_report_core();
  }
  free(grads);
  return result;
}

int ps_set_values(struct ps_trainer *trainer, const struct ps_values *values, int total) {
  pserver_tensor *tensors = calloc((size_t)total, sizeof *tensors);
  const char **names = calloc((size_t)total, sizeof *names);
  int result = tensors == NULL || names == NULL ? no_memory(total) : 0;
  for (int i = 0; i < total && result == 0; i++) {
    names[i] = values[i].name;
    if (!flat_tensor_of(&values[i], &tensors[i])) result = -1;
  }
  if (result == 0 &&
      pserver_set(trainer->core, names, tensors, (size_t)total, ps_calling_ms(trainer)) != PSERVER_OK) {
    result = ps_report_core();
  }
  free(tensors);
  free(names);
  return result;
}

int ps_save_model(struct ps_trainer *trainer, const char *path) {
  if (path == NULL) return ps_report(PSERVER_ERR_BAD_PATH, "expected a path; received NULL");
  int64_t timeout_ms = trainer->timeout_ms == 0 ? SAVE_MS : trainer->timeout_ms;
  if (pserver_save(trainer->core, path, timeout_ms) == PSERVER_OK) return 0;
  return ps_report_core();
}
