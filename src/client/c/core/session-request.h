#ifndef CORE_SESSION_REQUEST_H
#define CORE_SESSION_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/failure.h"

/**
 * A lifecycle request of this trainer, which is asked under whatever session is the current one. It belongs
 * to the shell, which may free it once it has failed, was answered, or ended.
 */
struct ps_session_request {
  /** Chosen by the shell. */
  uint64_t id;
  /** What the shell knows of the request. */
  void *context;
  /** How often it has found its session ended. */
  unsigned rejoins;
  /** The SUPERSEDED that it waits with until it is known whether that is of an earlier session. */
  struct ps_failure *superseded;
  /** Whether it waits for another session, and the request that waits behind it. */
  bool is_waiting;
  struct ps_session_request *next;
};

#endif
