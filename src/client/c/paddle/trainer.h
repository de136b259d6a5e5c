#ifndef PADDLE_TRAINER_H
#define PADDLE_TRAINER_H

#include <pserver.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lengths.h"

/** No trainer has this number. */
#define PS_NO_TRAINER UINT32_MAX

/** What a client of the published functions stands for. */
struct ps_trainer {
  /** From 0 on in this process, never used again. */
  uint32_t number;
  struct ps_trainer *next;
  /** Calls under way; under the lock of all trainers. */
  unsigned users;
  pserver_client *core;
  /** PSERVER_TIMEOUT_MS; 0 if it is not set. */
  int64_t timeout_ms;
  /** Whether the job was seen initialized, which it then stays. */
  atomic_bool is_ready;
  /** Whether it may be selected to ps_initialize (revision 3). */
  bool is_selectable;
  /** Whether it asked to be selected while another one was initializing (revision 3). */
  atomic_bool is_second;
  struct ps_lengths lengths;
  /** The configuration of all parameters (revision 2): text, or bytes, or none. */
  pthread_mutex_t config_lock;
  void *config;
  size_t config_bytes;
  bool is_config_text;
};

/** Where a trainer is to connect; what is NULL comes from the environment. */
struct ps_place {
  const char *url;
  const char *job;
};

/** Connects for `function`; the trainer's number, or PS_NO_TRAINER with a message. */
uint32_t ps_trainer_open(const char *function, struct ps_place place, bool is_selectable);

/** Closes: refuses further calls, and ends those under way if they do not end by themselves. */
void ps_trainer_close(const char *function, uint32_t number);

/** Begins a call of `function`, to be ended with ps_trainer_leave(). NULL with a message for a trainer
 * that is closed, never was, or is another process's. */
struct ps_trainer *ps_trainer_enter(const char *function, uint32_t number);
void ps_trainer_leave(struct ps_trainer *trainer);

/** The timeout of a call that waits for other trainers, and of any other. */
int64_t ps_waiting_ms(const struct ps_trainer *trainer);
int64_t ps_calling_ms(const struct ps_trainer *trainer);

#endif
