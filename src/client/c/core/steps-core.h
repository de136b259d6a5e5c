#ifndef CORE_STEPS_CORE_H
#define CORE_STEPS_CORE_H

#include "core/commands.h"
#include "core/positions.h"
#include "core/step-call.h"

/** How a job synchronizes its trainers. */
struct ps_synchronization {
  enum { PS_SYNC_ASYNC, PS_SYNC_SYNC, PS_SYNC_SSP } mode;
  /** Of `sync`: trainers that a step does not wait for. */
  uint64_t backups;
  /** Of `ssp`: steps that a trainer may be ahead of the slowest. */
  uint64_t staleness;
};

/**
 * A trainer's part in the steps of a `sync` or `ssp` job. It becomes a member at its first gradient,
 * from the largest step that is closed in any shard on.
 *
 * Calls take turns in the order in which they came. A call keeps its turn until it is over, but for
 * gradients that do not end the step: those give it up as soon as they are under way.
 *
 * It begins as zeros but for `commands`, and needs no memory.
 */
struct ps_steps_core {
  const struct ps_steps_commands *commands;
  struct ps_step_call *first_queued;
  struct ps_step_call *last_queued;
  struct ps_step_call *holder;
  bool is_giving_turns;
  /** Calls whose gradients are under way. */
  size_t sending;
  /** By shard: the last step known to be closed. */
  uint64_t closed[PS_SHARDS_MAX];
  struct ps_synchronization synchronization;
  unsigned shards;
  uint64_t session;
  /** Revision of the members that have this trainer, and the session that it is one in; 0 if none. */
  uint64_t member_revision;
  uint64_t member_session;
  /** Steps this trainer has ended, those before it entered included. */
  uint64_t ended;
  /** Whether a gradient of the step after the last ended one has been sent. */
  bool is_open;
  bool entered_in_step;
};

/** The step that must have closed before this trainer reads; 0 for none. */
uint64_t ps_steps_core_read_step(const struct ps_steps_core *core);

/** A session has begun, in which the trainer is no member yet. */
void ps_steps_core_session_began(struct ps_steps_core *core, uint64_t session, unsigned shards,
                                 struct ps_synchronization synchronization);

/** A shard is known to have closed a step. */
void ps_steps_core_note_closed(struct ps_steps_core *core, unsigned shard, uint64_t step);

/**
 * A shard has fallen back: steps that had closed there may be open again, and close only when this
 * trainer tells it once more how far it is. So it enters anew at its next gradient, and until then its
 * reads wait for no step.
 */
void ps_steps_core_fell_back(struct ps_steps_core *core, unsigned shard);

/**
 * A read was refused because the trainer is no member any more, or has become one anew without its
 * knowledge. It enters at its next gradient, and until then its reads wait for no step.
 */
void ps_steps_core_lost_place(struct ps_steps_core *core);

/** A call begins. After an error the step that it was to end is still open. */
void ps_steps_core_begin(struct ps_steps_core *core, struct ps_step_call *call);

/** The time of a call is over, or its caller has aborted it. What it asks of the shell fails by itself. */
void ps_steps_core_end_call(struct ps_steps_core *core, struct ps_step_call *call,
                            struct ps_failure *failure);

/** The trainer is a member from this revision on. */
void ps_steps_core_entered(struct ps_steps_core *core, struct ps_step_call *call,
                           uint64_t revision);

/** The trainer is a member no more. */
void ps_steps_core_exited(struct ps_steps_core *core, struct ps_step_call *call);

/** The step to wait for in a question that is about to be published; 0 for none. */
uint64_t ps_steps_core_wanted_step(const struct ps_steps_core *core,
                                   const struct ps_step_call *call);

/** A shard knows the members, and has closed this step. */
void ps_steps_core_step_answered(struct ps_steps_core *core, struct ps_step_call *call,
                                 unsigned shard, uint64_t step);

/** A shard was asked in vain. */
void ps_steps_core_ask_failed(struct ps_steps_core *core, struct ps_step_call *call,
                              struct ps_failure *failure);

/** The gradients of a call have been applied, or stored if that is enough; `late` of them too late. */
void ps_steps_core_gradients_sent(struct ps_steps_core *core, struct ps_step_call *call,
                                  size_t late);

/** Clocks of `call->step` have been applied in every shard. */
void ps_steps_core_clocks_sent(struct ps_steps_core *core, struct ps_step_call *call);

/** What the shell did for a call has failed. */
void ps_steps_core_failed(struct ps_steps_core *core, struct ps_step_call *call,
                          struct ps_failure *failure);

#endif
