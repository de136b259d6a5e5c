#ifndef CORE_COMMANDS_H
#define CORE_COMMANDS_H

#include "core/block-update.h"
#include "core/failure.h"
#include "core/session-request.h"
#include "core/step-call.h"
#include "core/position.h"

/**
 * What the outbox has its shell do. Every command is given synchronously while an event is being taken,
 * and returns nothing. None may raise an event before it returns, but for `publish` and `repeat`, which
 * report their failure by ps_outbox_publish_failed(), `ask_outcomes`, which reports its own by
 * ps_outbox_ask_not_published(), and `release`, which reports by ps_outbox_withdrawn() that the message was
 * never handed to the connection.
 */
struct ps_outbox_commands {
  void *shell;

  /**
   * Makes the message of an update under its number `update->n` in this session, and publishes it with
   * the token of `update->slot` and `update->serial`. `done` is what the message says that the trainer
   * needs no outcome of any more. The shell keeps the message until `release`.
   */
  void (*publish)(void *shell, struct ps_block_update *update, uint64_t session, uint64_t done);
  /** Publishes the kept message of an update again, unchanged, with the same token. */
  void (*repeat)(void *shell, struct ps_block_update *update);
  /** Lets go of the kept message; its memory can be used again at once if `is_reusable`. */
  void (*release)(void *shell, struct ps_block_update *update, bool is_reusable);
  /**
   * Asks the owner of a shard for the outcomes of these numbers once it has applied this position. The
   * numbers may be read until the command returns.
   */
  void (*ask_outcomes)(void *shell, unsigned shard, uint64_t session, const uint64_t *numbers,
                       size_t count, struct ps_position at);
  /** Raises ps_outbox_tick() at this time. Given only while no tick is set. */
  void (*set_timer)(void *shell, int64_t at_ms);
};

/** What the outbox tells the rest of the core. Told at the end of an event, when its state is whole. */
struct ps_outbox_listener {
  void *owner;

  /** Every update of the call has its fate. The shell's reference is no longer needed by the outbox. */
  void (*call_over)(void *owner, struct ps_update_call *call, int64_t now_ms);
  /** A host says that the session is over: SUPERSEDED or REJOIN. */
  void (*session_over)(void *owner, struct ps_failure *failure, int64_t now_ms);
};

/** What the positions tell the rest of the core. */
struct ps_positions_listener {
  void *owner;

  /** The journal that `seen` is a position of has been replaced; it is the last one seen of it. */
  void (*journal_replaced)(void *owner, unsigned shard, struct ps_position seen);
};

/** What the session has its shell do. All commands return before anything of them is known. */
struct ps_session_commands {
  void *shell;

  /** Joins under a token of its own within this time: raises `joined` or `rejoin_failed`. */
  void (*rejoin)(void *shell, int64_t timeout_ms);
  /** Renews the lease within this time: raises `renewed` or `renew_failed`. */
  void (*renew)(void *shell, int64_t timeout_ms);
  /** Raises `renewal_due` at this time instead of any set before; PS_NEVER_MS: never. */
  void (*set_renewal)(void *shell, int64_t at_ms);
  /** Asks a request again under the current session. */
  void (*repeat_request)(void *shell, struct ps_session_request *request);
  /** A request has failed for good; it may be freed. */
  void (*fail_request)(void *shell, struct ps_session_request *request,
                       struct ps_failure *failure);
  /** The client can do nothing more: a newer session has joined, or joining is refused. */
  void (*lose_client)(void *shell, struct ps_failure *failure);
};

/** What the session tells the rest of the core. */
struct ps_session_listener {
  void *owner;

  /** The session has ended: nothing may be published under it. */
  void (*session_ended)(void *owner);
  /** A session has begun, the first or a later one. */
  void (*session_began)(void *owner, uint64_t session, int64_t now_ms);
};

/** What the steps have their shell do. All commands return before anything of them is known. */
struct ps_steps_commands {
  void *shell;

  /** Asks hosts to make the trainer a member: raises `entered` or `failed`. */
  void (*enter)(void *shell, struct ps_step_call *call);
  /** Asks hosts to end the membership: raises `exited` or `failed`. */
  void (*exit_members)(void *shell, struct ps_step_call *call);
  /**
   * Asks a shard how far it is once it knows this revision of the members and has closed the step that
   * ps_steps_core_wanted_step() names, at each repeat anew: raises `step_answered` or `ask_failed`.
   */
  void (*ask_step)(void *shell, struct ps_step_call *call, unsigned shard, uint64_t revision);
  /** Sends the gradients of the call, in this step, 0 for none: raises `gradients_sent` or `failed`. */
  void (*send_gradients)(void *shell, struct ps_step_call *call, uint64_t step, bool counts_late);
  /** Tells every shard that the trainer has ended this step: raises `clocks_sent` or `failed`. */
  void (*send_clocks)(void *shell, struct ps_step_call *call, uint64_t step);
  /** The call has succeeded; it may be freed. */
  void (*step_call_done)(void *shell, struct ps_step_call *call);
  /** The call has failed; it may be freed. */
  void (*step_call_failed)(void *shell, struct ps_step_call *call, struct ps_failure *failure);
};

#endif
