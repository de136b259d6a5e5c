#include "core/core.h"

/* Positions and outcomes in each shard, as far as this trainer knows them. */

/* The highest position in each shard. */

void ps_positions_note(struct ps_positions *positions, unsigned shard, struct ps_position position) {
  struct ps_position before = positions->seen[shard];
  if (ps_is_later(position, before)) positions->seen[shard] = position;
  ps_positions_await(positions, shard, position);
  if (before.generation != 0 && position.generation > before.generation) {
    const struct ps_positions_listener *listener = positions->listener;
    listener->journal_replaced(listener->owner, shard, before);
  }
}

void ps_positions_await(struct ps_positions *positions, unsigned shard, struct ps_position position) {
  if (ps_is_later(position, positions->awaited[shard])) positions->awaited[shard] = position;
}

struct ps_position ps_positions_get(const struct ps_positions *positions, unsigned shard) {
  struct ps_position awaited = positions->awaited[shard];
  return awaited.generation == 0 ? (struct ps_position){.generation = 1} : awaited;
}

void ps_positions_note_replaced(struct ps_positions *positions, unsigned shard, uint64_t generation) {
  if (generation == 0) return;
  ps_positions_note(positions, shard, (struct ps_position){.generation = generation});
}

/* Outcomes from shard owners, and requests for those that do not come. */

/** The interval of requests for outcomes. */
#define ASK_AGAIN_MS 1000
/** Outcomes that are due within this time are asked for together; also the least delay after an error. */
#define ASK_SOON_MS 200

/** Whether an outcome is about the session instead of the record. */
static bool is_of_the_session(pserver_status code) {
  return ps_ends_session(code) || ps_reaction_to_rejection(code) == PS_REJECTION_FORGOTTEN;
}

static void give_up(const struct ps_record_settler *settler, struct ps_block_update *update,
                    struct ps_failure *reason) {
  settler->give_up(settler->owner, update, reason);
}

static void settle(const struct ps_record_settler *settler, struct ps_block_update *update,
                   const struct ps_outcome *outcome, uint64_t session, bool is_reply) {
  struct ps_failure *failure = outcome->failure;
  if (failure == NULL || !is_of_the_session(failure->code)) {
    settler->settle(settler->owner, update, outcome);
    return;
  }
  /* That the session has ended says nothing about an earlier copy of the record. Only a record that was
   * published once, and whose own outcome this is, is known not to be applied. */
  bool is_first_copy = !is_reply && update->sends == 1;
  enum ps_reaction reaction = ps_reaction_to(failure->code);
  failure->received = session;
  if (reaction == PS_REACTION_REJOIN && is_first_copy) update->is_rejoined = true;
  else if (reaction == PS_REACTION_END && is_first_copy) settler->settle(settler->owner, update, outcome);
  else if (reaction != PS_REACTION_REJOIN) give_up(settler, update, failure);
  if (ps_ends_session(failure->code)) settler->end_session(settler->owner, failure);
}

void ps_outcome_tracker_take(struct ps_outcome_tracker *tracker, struct ps_shard_window *window,
                             const struct ps_answers *answers, bool is_reply) {
  for (size_t i = 0; i < answers->count; i++) {
    const struct ps_outcome *outcome = &answers->outcomes[i];
    struct ps_position position = {answers->generation, outcome->seq};
    ps_positions_note(tracker->positions, answers->shard, position);
    struct ps_block_update *update = window == NULL ? NULL : ps_shard_window_get(window, outcome->n);
    if (update != NULL) settle(&tracker->settler, update, outcome, answers->session, is_reply);
  }
}

void ps_outcome_tracker_ask(struct ps_outcome_tracker *tracker, struct ps_shard_window *window,
                            uint64_t session, int64_t now_ms) {
  const struct ps_block_update *first = window->stored.first;
  if (first == NULL || first->ask_at_ms > now_ms) return;
  if (now_ms - window->asked_at_ms < ASK_AGAIN_MS) return;
  window->asked_at_ms = now_ms;
  /* Include those that are nearly due: otherwise another request would follow at once. */
  int64_t due_ms = now_ms + ASK_SOON_MS;
  size_t count = 0;
  struct ps_position at = {UINT64_MAX, 0};
  for (uint64_t n = window->done + 1; n <= window->last; n++) {
    const struct ps_block_update *update = ps_shard_window_get(window, n);
    if (update == NULL || update->stored.generation == 0 || update->ask_at_ms > due_ms) continue;
    /* A request is for one journal, the oldest. */
    if (update->stored.generation > at.generation) continue;
    if (update->stored.generation < at.generation) {
      at = (struct ps_position){update->stored.generation, 0};
      count = 0;
    }
    tracker->numbers[count++] = n;
    if (update->stored.seq > at.seq) at.seq = update->stored.seq;
  }
  const struct ps_outbox_commands *commands = tracker->commands;
  commands->ask_outcomes(commands->owner, window->shard, session, tracker->numbers, count, at);
}

/** Gives up the records stored after `end` in journals of generations before `generation`. */
static void give_up_from(const struct ps_record_settler *settler, struct ps_shard_window *window,
                         struct ps_position end, uint64_t generation, struct ps_failure *reason) {
  for (uint64_t n = window->done + 1; n <= window->last; n++) {
    struct ps_block_update *update = ps_shard_window_get(window, n);
    if (update == NULL || update->stored.generation == 0) continue;
    bool is_lost = update->stored.generation < generation && ps_is_later(update->stored, end);
    if (is_lost) give_up(settler, update, reason);
  }
}

void ps_outcome_tracker_ask_failed(struct ps_outcome_tracker *tracker, struct ps_shard_window *window,
                                   struct ps_failure *failure, int64_t retry_after_ms) {
  struct ps_position beginning = {1, 0};
  switch (ps_reaction_to(failure->code)) {
    case PS_REACTION_RETRY:
      if (window->asked_at_ms == PS_LONG_AGO_MS) return;
      window->asked_at_ms -= ASK_AGAIN_MS - (retry_after_ms > ASK_SOON_MS ? retry_after_ms : ASK_SOON_MS);
      return;
    case PS_REACTION_REJOIN:
    case PS_REACTION_END:
      tracker->settler.end_session(tracker->settler.owner, failure);
      return;
    case PS_REACTION_REPLACED: {
      ps_positions_note_replaced(tracker->positions, window->shard, failure->expected.generation);
      struct ps_position newest = ps_positions_get(tracker->positions, window->shard);
      give_up_from(&tracker->settler, window, beginning, newest.generation, failure);
      return;
    }
    case PS_REACTION_LOST: {
      /* A journal that was cut off and continued has lost only the records after its end. */
      struct ps_position end = failure->expected;
      if (end.generation == 0) end.generation = beginning.generation;
      give_up_from(&tracker->settler, window, end, UINT64_MAX, failure);
      return;
    }
    default:
      /* Any other error counts as no answer: the request is repeated until the call's deadline. */
      return;
  }
}
