#ifndef CORE_SESSION_REQUEST_H
#define CORE_SESSION_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/failure.h"
#include "core/queue.h"

/**
 * A lifecycle request of this trainer, sent under the session that is current at the time. The shell owns
 * it, and may free it once it has failed, was answered, or ended.
 */
struct ps_session_request {
  /** Chosen by the shell. */
  uint64_t id;
  /** The shell's own; the core does not use it. */
  void *context;
  /** How often it has found its session ended. */
  unsigned rejoins;
  /** The SUPERSEDED it was answered with, until it is known whether that is about an earlier session. */
  struct ps_failure *superseded;
  /** Its place among those that wait for a new session. */
  struct ps_queue_link place;
};

#endif
