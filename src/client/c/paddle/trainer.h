#ifndef PADDLE_TRAINER_H
#define PADDLE_TRAINER_H

#include <pserver.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lengths.h"

/** The number of no trainer. */
#define PS_NO_TRAINER UINT32_MAX

/** A client of the published functions. */
struct ps_trainer {
  /** Unique in the process; begins with 0. */
  uint32_t number;
  struct ps_trainer *next;
  /** Number of calls under way; guarded by the lock of all trainers. */
  unsigned users;
  pserver_client *core;
  /** PSERVER_TIMEOUT_MS; 0 if it is not set. */
  int64_t timeout_ms;
  /** Whether the job is known to be initialized. */
  atomic_bool is_ready;
  /** Whether it may be selected to initialize (revision 3). */
  bool is_selectable;
  /** Whether another trainer was initializing when it asked (revision 3). */
  atomic_bool is_second;
  struct ps_lengths lengths;
  /** The configuration of all parameters (revision 2): text, bytes, or NULL. Guarded by `config_lock`. */
  pthread_mutex_t config_lock;
  void *config;
  size_t config_bytes;
  bool is_config_text;
};

/** Broker and job that a trainer connects to; NULL: from the environment. */
struct ps_place {
  const char *url;
  const char *job;
};

/** Connects for `function`; returns the trainer's number, or PS_NO_TRAINER with an error. */
uint32_t ps_trainer_open(const char *function, struct ps_place place, bool is_selectable);

/** Closes a trainer: refuses new calls, waits for those under way, and ends the ones that are left. */
void ps_trainer_close(const char *function, uint32_t number);

/** Begins a call of `function`, to be ended with ps_trainer_leave(). NULL with an error for a trainer that
 * is closed, was never opened, or belongs to another process. */
struct ps_trainer *ps_trainer_enter(const char *function, uint32_t number);
void ps_trainer_leave(struct ps_trainer *trainer);

/** Return the timeout of a call that waits for other trainers, and of any other call. */
int64_t ps_waiting_ms(const struct ps_trainer *trainer);
int64_t ps_calling_ms(const struct ps_trainer *trainer);

#endif
