#ifndef CORE_STEP_CALL_H
#define CORE_STEP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/failure.h"

/** What a call of the step machine does. */
enum ps_step_call_kind { PS_STEP_CALL_GRADIENTS, PS_STEP_CALL_END, PS_STEP_CALL_EXIT };

/** Where a call is; each phase but queued, draining and over waits for the shell. */
enum ps_step_phase {
  /** Waits for its turn. */
  PS_STEP_QUEUED,
  /** Asks to become a member. */
  PS_STEP_ENTERING,
  /** Asks every shard how far it is, as a new member. */
  PS_STEP_ARRIVING,
  /** Tells shards that were behind the largest closed step that it has ended as much. */
  PS_STEP_CATCHING_UP,
  /** Asks whether the step before its own has closed where its gradients go. */
  PS_STEP_OPENING,
  /** Tells shards that it has ended the steps which have closed without it. */
  PS_STEP_SKIPPING,
  /** Its gradients are under way. */
  PS_STEP_SENDING,
  /** Waits until the gradients of other calls have their outcome. */
  PS_STEP_DRAINING,
  /** Tells every shard that it has ended its step. */
  PS_STEP_ENDING,
  PS_STEP_EXITING,
  PS_STEP_OVER,
};

/** A call under way in the step machine; it belongs to the shell. */
struct ps_step_call {
  /** Chosen by the shell. */
  uint64_t id;
  /** What the shell knows of the call. */
  void *context;
  enum ps_step_call_kind kind;
  /** Whether it ends the step after its gradients. */
  bool ends_step;
  enum ps_step_phase phase;
  /** Whether its gradients count among those under way. */
  bool is_sending;
  /** Whether its gradients have been sent a second time, because a shard found them too early. */
  bool is_resent;
  /** Blocks whose gradients came too late. */
  size_t late;
  /** Revision of the members and session under which it has entered. */
  uint64_t revision;
  uint64_t session;
  /** The step that it waits for, or whose clock it sends. */
  uint64_t step;
  /** Answers that are missing, the least and the largest step answered, and the first failure. */
  size_t missing;
  uint64_t least;
  uint64_t most;
  struct ps_failure *failure;
  /** The call that has its turn after this one. */
  struct ps_step_call *next;
  /** The shards that its gradients go to, each once. */
  size_t shard_count;
  unsigned shards[];
};

/** A call that has not begun; shards may be named repeatedly. NULL if there is no memory. */
struct ps_step_call *ps_step_call_new(uint64_t id, enum ps_step_call_kind kind,
                                      const unsigned *shards, size_t count, bool ends_step);

/** Frees a call that is over, or has not begun. */
void ps_step_call_destroy(struct ps_step_call *call);

#endif
