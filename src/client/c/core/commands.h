#ifndef CORE_COMMANDS_H
#define CORE_COMMANDS_H

#include "core/block-update.h"
#include "core/failure.h"
#include "core/session-request.h"
#include "core/step-call.h"
#include "core/position.h"

/**
 * Commands of the outbox to its shell. Each is called while an event is handled, and returns nothing.
 * Before it returns it may raise one event only: `publish` and `repeat` report failure by
 * ps_outbox_publish_failed(), `ask_outcomes` by ps_outbox_ask_not_published(), and `release` and `repeat`
 * report by ps_outbox_withdrawn() that the last publication was not handed to the connection: for `repeat`,
 * that this one takes its place.
 */
struct ps_outbox_commands {
  void *shell;

  /**
   * Makes the message of an update with its number `update->n` in this session, and publishes it with a reply
   * subject that names `update->slot` and `update->serial`. The message carries `done`: the trainer needs no
   * outcome of records up to that number. The shell keeps the message until `release`.
   */
  void (*publish)(void *shell, struct ps_block_update *update, uint64_t session, uint64_t done);
  /** Publishes the kept message of an update again, unchanged, with the same reply subject. */
  void (*repeat)(void *shell, struct ps_block_update *update);
  /** Releases the kept message; `is_reusable`: its memory may be used again at once. */
  void (*release)(void *shell, struct ps_block_update *update, bool is_reusable);
  /**
   * Asks the owner of a shard for the outcomes of these numbers, to be answered once it has folded this
   * position. The numbers are valid until the command returns.
   */
  void (*ask_outcomes)(void *shell, unsigned shard, uint64_t session, const uint64_t *numbers,
                       size_t count, struct ps_position at);
  /** Raises ps_outbox_tick() at this time. Not called while a tick is set. */
  void (*set_timer)(void *shell, int64_t at_ms);
};

/** Notifications of the outbox to the rest of the core, at the end of an event, when its state is
 * consistent. */
struct ps_outbox_listener {
  void *owner;

  /** No update of the call is pending. The outbox no longer needs the shell's reference. */
  void (*call_over)(void *owner, struct ps_update_call *call, int64_t now_ms);
  /** A host says that the session is over: SUPERSEDED or REJOIN. */
  void (*session_over)(void *owner, struct ps_failure *failure, int64_t now_ms);
};

/** Notifications of the positions to the rest of the core. */
struct ps_positions_listener {
  void *owner;

  /** The journal of a shard has been replaced; `seen` is the last position seen in the old one. */
  void (*journal_replaced)(void *owner, unsigned shard, struct ps_position seen);
};

/** Commands of the session to its shell. All return before their result is known. */
struct ps_session_commands {
  void *shell;

  /** Joins under a new token within this time; raises `joined` or `rejoin_failed`. */
  void (*rejoin)(void *shell, int64_t timeout_ms);
  /** Renews the lease within this time; raises `renewed` or `renew_failed`. */
  void (*renew)(void *shell, int64_t timeout_ms);
  /** Raises `renewal_due` at this time, instead of a time set before; PS_NEVER_MS: never. */
  void (*set_renewal)(void *shell, int64_t at_ms);
  /** Sends a request again under the current session. */
  void (*repeat_request)(void *shell, struct ps_session_request *request);
  /** A request has failed for good; it may be freed. */
  void (*fail_request)(void *shell, struct ps_session_request *request,
                       struct ps_failure *failure);
  /** The client can do nothing more: a newer session has joined, or joining is refused. */
  void (*lose_client)(void *shell, struct ps_failure *failure);
};

/** Notifications of the session to the rest of the core. */
struct ps_session_listener {
  void *owner;

  /** The session has ended: nothing may be published under it. */
  void (*session_ended)(void *owner);
  /** A session has begun, the first or a later one. */
  void (*session_began)(void *owner, uint64_t session, int64_t now_ms);
};

/** Commands of the step machine to its shell. All return before their result is known. */
struct ps_steps_commands {
  void *shell;

  /** Asks hosts to make the trainer a member; raises `entered` or `failed`. */
  void (*enter)(void *shell, struct ps_step_call *call);
  /** Asks hosts to end the membership; raises `exited` or `failed`. */
  void (*exit_members)(void *shell, struct ps_step_call *call);
  /**
   * Asks a shard for its last closed step, to be answered once it knows this revision of the members and has
   * closed the step that ps_steps_core_wanted_step() returns, which is called again for each repeat. Raises
   * `step_answered` or `ask_failed`.
   */
  void (*ask_step)(void *shell, struct ps_step_call *call, unsigned shard, uint64_t revision);
  /** Sends the gradients of the call, in this step (0: in none); raises `gradients_sent` or `failed`. */
  void (*send_gradients)(void *shell, struct ps_step_call *call, uint64_t step, bool counts_late);
  /** Tells every shard that the trainer has ended this step; raises `clocks_sent` or `failed`. */
  void (*send_clocks)(void *shell, struct ps_step_call *call, uint64_t step);
  /** The call has succeeded; it may be freed. */
  void (*step_call_done)(void *shell, struct ps_step_call *call);
  /** The call has failed; it may be freed. */
  void (*step_call_failed)(void *shell, struct ps_step_call *call, struct ps_failure *failure);
};

#endif
