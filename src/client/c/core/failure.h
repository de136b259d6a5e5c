#ifndef CORE_FAILURE_H
#define CORE_FAILURE_H

#include <pserver_errors.h>
#include <stdint.h>

#include "core/position.h"

/**
 * An error in the core, which decides by the code and the numbers below and passes the texts on unread.
 * Several updates and calls can fail for one reason, so a failure counts its references. Functions borrow
 * the failures that they are given, and take a reference to those that they keep.
 */
struct ps_failure {
  pserver_status code;
  /** The position that the error says was expected; 0 where it says none. */
  struct ps_position expected;
  /** The session that the error says is over; 0 if it says none. */
  uint64_t received;
  const char *text;
  /** A JSON object; "" for an empty one. */
  const char *details;
  /** 0 for a failure that is never freed. */
  unsigned references;
};

/** Makes a failure with one reference and copies of the texts; NULL if there is no memory. */
struct ps_failure *ps_failure_new(pserver_status code, const char *text, const char *details);

/** Adds a reference; returns the failure. NULL is ignored. */
struct ps_failure *ps_failure_keep(struct ps_failure *failure);

/** Drops a reference; the failure is freed with its last one. NULL is ignored. */
void ps_failure_drop(struct ps_failure *failure);

/** Stores a reference to a failure, or NULL, and drops the reference stored there before. */
void ps_failure_set(struct ps_failure **place, struct ps_failure *failure);

/** Stores a reference to a failure unless one is stored there already. */
void ps_failure_set_first(struct ps_failure **place, struct ps_failure *failure);

#endif
