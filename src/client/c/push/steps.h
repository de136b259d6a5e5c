#ifndef PUSH_STEPS_H
#define PUSH_STEPS_H

#include <pserver.h>

#include "core/steps-core.h"
#include "push/update-source.h"

struct call;
struct client;

/** Asks, tells and sends what the step machine decides, on the threads of the calls. */
struct steps {
  struct ps_steps_core core;
  struct ps_steps_commands commands;
};

/** The gradients of one call. */
struct step_gradients {
  const struct update_source *sources;
  size_t count;
  /** Whether the call ends the step after them. */
  bool ends_step;
  /**
   * Sends them in a step, 0 for none; `late` gets how many came after it had closed, which is an error
   * unless `counts_late`. Called once more if a shard finds them too early.
   */
  pserver_status (*send)(struct call *call, void *context, uint64_t step, bool counts_late,
                         uint64_t *late);
  void *context;
};

/** Sets up the steps of a client that has not joined. */
void ps_steps_init(struct client *client);

/**
 * Sends gradients as part of the open step, and ends the step if they are to. After an error the step is
 * still open. What `send` returns; TIMEOUT naming members that are waited for; NOT_MEMBER if the trainer
 * has lost its place: the next gradient enters anew.
 */
pserver_status ps_send_in_step(struct call *call, const struct step_gradients *gradients, size_t *late);

#endif
