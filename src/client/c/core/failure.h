#ifndef CORE_FAILURE_H
#define CORE_FAILURE_H

#include <pserver_errors.h>
#include <stdint.h>

#include "core/position.h"

/**
 * An error as the core handles it: it decides by the code and by the numbers below, and hands the rest
 * back as it came. Several updates and calls can have failed for the same reason, so it is counted who
 * refers to it. Functions borrow the failures that they are given, and keep references of their own.
 */
struct ps_failure {
  pserver_status code;
  /** The position that it says was expected; what it does not say is 0. */
  struct ps_position expected;
  /** The session that it says is over; 0 if it says none. */
  uint64_t received;
  const char *text;
  /** A JSON object; "" for an empty one. */
  const char *details;
  /** 0 for a failure that is never freed. */
  unsigned references;
};

/** Makes a failure with one reference and copies of the texts; NULL if there is no memory. */
struct ps_failure *ps_failure_new(pserver_status code, const char *text, const char *details);

/** Adds a reference to a failure, or to none; returns it. */
struct ps_failure *ps_failure_keep(struct ps_failure *failure);

/** Removes a reference of a failure, or of none. */
void ps_failure_drop(struct ps_failure *failure);

/** Has a place refer to a failure, or to none, instead of what it referred to. */
void ps_failure_set(struct ps_failure **place, struct ps_failure *failure);

/** The same if the place refers to none yet. */
void ps_failure_set_first(struct ps_failure **place, struct ps_failure *failure);

#endif
