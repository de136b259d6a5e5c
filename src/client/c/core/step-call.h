#ifndef CORE_STEP_CALL_H
#define CORE_STEP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/failure.h"
#include "core/queue.h"

/** What a call of the step machine does: sends gradients, ends the step, or leaves the steps. */
enum ps_step_call_kind { PS_STEP_CALL_GRADIENTS, PS_STEP_CALL_END, PS_STEP_CALL_EXIT };

/** The phase of a call. Each except queued, draining and over waits for the shell. */
enum ps_step_phase {
  /** Waits for its turn. */
  PS_STEP_QUEUED,
  /** Asks to become a member. */
  PS_STEP_ENTERING,
  /** As a new member, asks every shard for its last closed step. */
  PS_STEP_ARRIVING,
  /**
   * Tells the shards that the trainer has ended all steps up to the largest that is closed in any of them.
   */
  PS_STEP_CATCHING_UP,
  /** Waits until the step before its own has closed in the shards of its gradients. */
  PS_STEP_OPENING,
  /** Tells the shards that the trainer has ended the steps that closed without it. */
  PS_STEP_SKIPPING,
  /** Sends its gradients. */
  PS_STEP_SENDING,
  /** Waits until other calls have sent their gradients. */
  PS_STEP_DRAINING,
  /** Tells every shard that the trainer has ended its step. */
  PS_STEP_ENDING,
  PS_STEP_EXITING,
  PS_STEP_OVER,
};

/** A call of the step machine. The shell owns it. */
struct ps_step_call {
  /** Chosen by the shell. */
  uint64_t id;
  /** The shell's own; the core does not use it. */
  void *context;
  enum ps_step_call_kind kind;
  /** Whether it ends the step after its gradients. */
  bool ends_step;
  enum ps_step_phase phase;
  /** Whether it counts in the `sending` of ps_steps_core. */
  bool is_sending;
  /** Whether its gradients have been sent a second time, because a shard found them too early. */
  bool is_resent;
  /** Blocks whose gradients came too late. */
  size_t late;
  /** Revision of the members, and session, in which it has entered. */
  uint64_t revision;
  uint64_t session;
  /** The step that it waits for, or whose clock it sends. */
  uint64_t step;
  /** Number of missing answers, the least and the largest step answered, and the first failure. */
  size_t missing;
  uint64_t least;
  uint64_t most;
  struct ps_failure *failure;
  struct ps_queue_link place;
  /** The shards that its gradients go to, each once. */
  size_t shard_count;
  unsigned shards[];
};

/** Makes a call that has not begun; `shards` may name one repeatedly. NULL if there is no memory. */
struct ps_step_call *ps_step_call_new(uint64_t id, enum ps_step_call_kind kind,
                                      const unsigned *shards, size_t count, bool ends_step);

/** Frees a call that is over, or has not begun. */
void ps_step_call_destroy(struct ps_step_call *call);

#endif
