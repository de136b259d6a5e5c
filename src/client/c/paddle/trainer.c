/* The trainers of a process, by number, so that a closed or invalid one is an error and not a crash. */
#include "trainer.h"

#include <stdlib.h>
#include <unistd.h>

#include "environment.h"
#include "failures.h"

/** As for the pserver command. */
#define JOB_DEFAULT "default"
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
static bool is_other_process(const char *function) {
  int expected = 0;
  int here = (int)getpid();
  if (atomic_compare_exchange_strong(&owner, &expected, here) || expected == here) return false;
  ps_refuse(function, PSERVER_ERR_CLOSED,
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

static struct ps_trainer *make(const char *function) {
  struct ps_trainer *trainer = calloc(1, sizeof *trainer);
  if (trainer != NULL && ps_lengths_init(&trainer->lengths)) {
    if (pthread_mutex_init(&trainer->config_lock, NULL) == 0) return trainer;
    ps_lengths_release(&trainer->lengths);
  }
  free(trainer);
  ps_refuse(function, PSERVER_ERR_INTERNAL, "no memory for a client");
  return NULL;
}

static bool connect_core(const char *function, struct ps_trainer *trainer, struct ps_place place) {
  trainer->timeout_ms = ps_environment_timeout_ms(function);
  if (trainer->timeout_ms < 0) return false;
  pserver_options options;
  pserver_options_init(&options);
  const char *job = place.job == NULL ? ps_environment_value("PSERVER_JOB") : place.job;
  options.url = place.url;
  options.job = job == NULL ? JOB_DEFAULT : job;
  options.trainer = ps_environment_value("PSERVER_TRAINER");
  if (pserver_connect(&options, &trainer->core) == PSERVER_OK) return true;
  ps_refuse_as_core(function);
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

uint32_t ps_trainer_open(const char *function, struct ps_place place, bool is_selectable) {
  if (is_other_process(function)) return PS_NO_TRAINER;
  struct ps_trainer *trainer = make(function);
  if (trainer == NULL) return PS_NO_TRAINER;
  trainer->is_selectable = is_selectable;
  if (!connect_core(function, trainer, place)) {
    destroy(trainer);
    return PS_NO_TRAINER;
  }
  if (enlist(trainer)) return trainer->number;
  pserver_close(trainer->core, CLOSE_MS);
  destroy(trainer);
  ps_refuse(function, PSERVER_ERR_TOO_LARGE, "no number is left for a client in this process");
  return PS_NO_TRAINER;
}

static struct ps_trainer **find(uint32_t number) {
  struct ps_trainer **link = &trainers;
  while (*link != NULL && (*link)->number != number) link = &(*link)->next;
  return link;
}

static void refuse_unknown(const char *function) {
  ps_refuse(function, PSERVER_ERR_CLOSED, "the client is released, or was never made");
}

void ps_trainer_close(const char *function, uint32_t number) {
  if (is_other_process(function)) return;
  pthread_mutex_lock(&lock);
  struct ps_trainer **link = find(number);
  struct ps_trainer *trainer = *link;
  if (trainer != NULL) *link = trainer->next;
  pthread_mutex_unlock(&lock);
  if (trainer == NULL) {
    refuse_unknown(function);
    return;
  }
  /* This also ends the trainer's calls. */
  if (pserver_close(trainer->core, CLOSE_MS) != PSERVER_OK) ps_refuse_as_core(function);
  pthread_mutex_lock(&lock);
  while (trainer->users > 0) pthread_cond_wait(&left, &lock);
  pthread_mutex_unlock(&lock);
  destroy(trainer);
}

struct ps_trainer *ps_trainer_enter(const char *function, uint32_t number) {
  if (is_other_process(function)) return NULL;
  pthread_mutex_lock(&lock);
  struct ps_trainer *trainer = *find(number);
  if (trainer != NULL) trainer->users++;
  pthread_mutex_unlock(&lock);
  if (trainer == NULL) refuse_unknown(function);
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
