#ifndef CORE_COMMANDS_H
#define CORE_COMMANDS_H

#include "core/block-update.h"
#include "core/failure.h"
#include "position.h"

/**
 * What the outbox has its shell do. Every command is given synchronously while an event is being taken,
 * and returns nothing. None may raise an event before it returns, but for `publish` and `repeat`, which
 * report their failure by ps_outbox_publish_failed(), and `ask_outcomes`, which reports its own by
 * ps_outbox_ask_not_published().
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
                       size_t count, struct position at);
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
  void (*journal_replaced)(void *owner, unsigned shard, struct position seen);
};

#endif
