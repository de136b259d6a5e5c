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

/** Sets up the steps of a client that has not joined. */
void ps_steps_init(struct client *client);

/**
 * Sends gradients as part of the open step, and then ends the step if the call does. After an error the
 * step is still open. As ps_send_call(); TIMEOUT naming members that are waited for; NOT_MEMBER if the
 * trainer has lost its place: the next gradient enters anew.
 */
pserver_status ps_send_in_step(struct call *call, struct call_updates *gradients, bool ends_step);

#endif
