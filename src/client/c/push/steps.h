#ifndef PUSH_STEPS_H
#define PUSH_STEPS_H

#include "calls/lifecycle-request.h"
#include "core/steps-core.h"
#include "push/step-requests.h"
#include "push/update-sender.h"

/** Dependencies of ps_steps. */
struct ps_steps_deps {
  const struct ps_lifecycle *lifecycle;
  struct ps_positions *positions;
  struct ps_update_sender *sender;
};

/** Carries out the commands of the step machine. Used on the I/O thread. */
struct ps_steps {
  struct ps_steps_deps deps;
  struct ps_step_request_deps request_deps;
  struct ps_steps_core core;
  struct ps_steps_commands commands;
  /** How often the trainer has asked to exit. */
  uint64_t exits;
  /** The call that is being ended; NULL as soon as it is over. */
  const struct ps_step_task *ending;
};

/** Initializes the steps of a client that has not joined. */
void ps_steps_init(struct ps_steps *steps, const struct ps_steps_deps *deps);

/**
 * Sends gradients in the open step, ends the step if `ends_step`, and waits. After an error the step is
 * still open. Errors as of ps_sending_begin(); TIMEOUT, which names the members waited for; NOT_MEMBER if
 * the trainer is no longer a member: the next gradient enters anew.
 */
pserver_status ps_send_in_step(struct ps_call *call, struct ps_steps *steps,
                               struct ps_call_updates *gradients, bool ends_step);

/** Ends the open step, or the trainer's membership, and waits. */
pserver_status ps_run_step_call(struct ps_call *call, struct ps_steps *steps, enum ps_step_call_kind kind);

#endif
