#ifndef STEPS_STEPS_H
#define STEPS_STEPS_H

#include "core/core.h"

/* The step machine. */

/** How a job synchronizes its trainers. */
struct ps_synchronization {
  enum { PS_SYNC_ASYNC, PS_SYNC_SYNC, PS_SYNC_SSP, PS_SYNC_DILOCO } mode;
  /** In `sync`: how many trainers a step does not wait for. */
  uint64_t backups;
  /** In `ssp`: how many steps a trainer may be ahead of the slowest. */
  uint64_t staleness;
};

/**
 * The step machine: a trainer's part in the steps of a `sync` or `ssp` job. The trainer becomes a member
 * with its first gradient, and begins after the largest step that is closed in any shard.
 *
 * Calls take turns in order. A call keeps its turn until it is over; gradients that do not end the step
 * give it up as soon as they are being sent.
 *
 * Initialize it with zeros except `commands`. It allocates no memory.
 */
struct ps_steps_core {
  const struct ps_steps_commands *commands;
  struct ps_queue queued;
  struct ps_step_call *holder;
  bool is_giving_turns;
  /** Number of calls whose gradients are being sent. */
  size_t sending;
  /** By shard: the last step known to be closed. */
  uint64_t closed[PS_SHARDS_MAX];
  struct ps_synchronization synchronization;
  unsigned shards;
  uint64_t session;
  /** Revision of the members, and session, in which the trainer is a member; 0 if it is not. */
  uint64_t member_revision;
  uint64_t member_session;
  /** Steps that this trainer has ended, including those before it entered. */
  uint64_t ended;
  /** Whether a gradient of the step after the last ended one has been sent. */
  bool is_open;
  /** Whether the trainer became a member during the open step. */
  bool entered_in_step;
};

/** Returns the step that must have closed before this trainer reads; 0: none. */
uint64_t ps_steps_core_read_step(const struct ps_steps_core *core);

/** Begins a session, in which the trainer is not a member yet. */
void ps_steps_core_session_began(struct ps_steps_core *core, uint64_t session, unsigned shards,
                                 struct ps_synchronization synchronization);

/** Notes that a shard is known to have closed a step. */
void ps_steps_core_note_closed(struct ps_steps_core *core, unsigned shard, uint64_t step);

/**
 * Notes that a shard has fallen back: steps that were closed there may be open again, and close only after
 * this trainer has told the shard again which steps it has ended. The trainer enters again with its next
 * gradient; until then its reads wait for no step.
 */
void ps_steps_core_fell_back(struct ps_steps_core *core, unsigned shard);

/**
 * Notes that a host refused a read because the trainer is no longer a member, or only in another membership
 * than it knows. It enters again with its next gradient; until then its reads wait for no step.
 */
void ps_steps_core_lost_place(struct ps_steps_core *core);

/** Begins a call. If it fails, the step that it was to end stays open. */
void ps_steps_core_begin(struct ps_steps_core *core, struct ps_step_call *call);

/** Ends a call that is queued or draining; in other phases the I/O layer ends what it does for the call. */
void ps_steps_core_end_call(struct ps_steps_core *core, struct ps_step_call *call,
                            struct ps_failure *failure);

/** Notes that the trainer is a member from this revision on. */
void ps_steps_core_entered(struct ps_steps_core *core, struct ps_step_call *call, uint64_t revision);

/** Notes that the trainer is no longer a member. */
void ps_steps_core_exited(struct ps_steps_core *core, struct ps_step_call *call);

/** Returns the step that a request which is about to be sent shall wait for; 0: none. */
uint64_t ps_steps_core_wanted_step(const struct ps_steps_core *core, const struct ps_step_call *call);

/** Takes a shard's answer with its last closed step. */
void ps_steps_core_step_answered(struct ps_steps_core *core, struct ps_step_call *call, unsigned shard,
                                 uint64_t step);

/** Takes the failure of a request to a shard, which could not be sent or was answered with an error. */
void ps_steps_core_ask_failed(struct ps_steps_core *core, struct ps_step_call *call,
                              struct ps_failure *failure);

/**
 * Notes that the gradients of a call are applied, or stored if that is enough; `late` blocks came too late.
 */
void ps_steps_core_gradients_sent(struct ps_steps_core *core, struct ps_step_call *call, size_t late);

/** Takes the failure of the gradients of a call, of which `taken` blocks are applied or may be. */
void ps_steps_core_gradients_failed(struct ps_steps_core *core, struct ps_step_call *call,
                                    struct ps_failure *failure, size_t taken);

/** Notes that the clocks of `call->step` are applied in every shard. */
void ps_steps_core_clocks_sent(struct ps_steps_core *core, struct ps_step_call *call);

/** Takes the failure of a command that the I/O layer carried out for a call. */
void ps_steps_core_failed(struct ps_steps_core *core, struct ps_step_call *call,
                          struct ps_failure *failure);

#endif
