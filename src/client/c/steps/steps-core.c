#include "steps/steps.h"

#include <stdlib.h>
#include <string.h>

/* The step machine. */

/* Calls of the step machine. */

/** Adds a shard unless the call has it. */
static void add_shard(struct ps_step_call *call, unsigned shard) {
  for (size_t i = 0; i < call->shard_count; i++) {
    if (call->shards[i] == shard) return;
  }
  call->shards[call->shard_count++] = shard;
}

struct ps_step_call *ps_step_call_new(uint64_t id, enum ps_step_call_kind kind, const unsigned *shards,
                                      size_t count, bool ends_step) {
  struct ps_step_call *call = malloc(sizeof *call + count * sizeof call->shards[0]);
  if (call == NULL) return NULL;
  *call = (struct ps_step_call){.id = id, .kind = kind, .ends_step = ends_step, .phase = PS_STEP_QUEUED};
  for (size_t i = 0; i < count; i++) add_shard(call, shards[i]);
  return call;
}

void ps_step_call_destroy(struct ps_step_call *call) {
  ps_failure_drop(call->failure);
  ps_failure_drop(call->place_lost);
  free(call);
}

/* When a call enters the steps, waits, sends its gradients and ends a step. */

static void drain(struct ps_steps_core *core, struct ps_step_call *call);
static void enter(struct ps_steps_core *core, struct ps_step_call *call);

static bool is_member(const struct ps_steps_core *core) {
  return core->member_session != 0 && core->member_session == core->session;
}

static void leave_members(struct ps_steps_core *core) {
  core->member_revision = 0;
  core->member_session = 0;
}

/** Gives the turn to the next call; in a loop and not recursively, because a call may end at once. */
static void next_turn(struct ps_steps_core *core) {
  if (core->is_giving_turns) return;
  core->is_giving_turns = true;
  while (core->holder == NULL && core->queued.count > 0) {
    struct ps_step_call *call = ps_queue_take(&core->queued);
    core->holder = call;
    if (call->kind == PS_STEP_CALL_EXIT) drain(core, call);
    else enter(core, call);
  }
  core->is_giving_turns = false;
}

static void stop_sending(struct ps_steps_core *core, struct ps_step_call *call) {
  if (!call->is_sending) return;
  call->is_sending = false;
  core->sending--;
  if (core->holder != NULL && core->holder->phase == PS_STEP_DRAINING) drain(core, core->holder);
}

static void finish(struct ps_steps_core *core, struct ps_step_call *call) {
  call->phase = PS_STEP_OVER;
  stop_sending(core, call);
  if (core->holder == call) core->holder = NULL;
}

static void done(struct ps_steps_core *core, struct ps_step_call *call) {
  finish(core, call);
  core->commands->step_call_done(core->commands->owner, call);
  next_turn(core);
}

static void fail(struct ps_steps_core *core, struct ps_step_call *call, struct ps_failure *failure) {
  finish(core, call);
  core->commands->step_call_failed(core->commands->owner, call, failure);
  next_turn(core);
}

static void give_up_turn(struct ps_steps_core *core, struct ps_step_call *call) {
  if (core->holder != call) return;
  core->holder = NULL;
  next_turn(core);
}

static void send_clocks(struct ps_steps_core *core, struct ps_step_call *call, enum ps_step_phase phase,
                        uint64_t step) {
  call->phase = phase;
  call->step = step;
  core->commands->send_clocks(core->commands->owner, call, step);
}

/** Ends the step, or the membership, once all gradients of the step are sent. */
static void drain(struct ps_steps_core *core, struct ps_step_call *call) {
  if (core->sending > 0) {
    call->phase = PS_STEP_DRAINING;
  } else if (call->kind == PS_STEP_CALL_EXIT) {
    call->phase = PS_STEP_EXITING;
    core->commands->exit_members(core->commands->owner, call);
  } else {
    send_clocks(core, call, PS_STEP_ENDING, core->ended + 1);
  }
}

static void send(struct ps_steps_core *core, struct ps_step_call *call) {
  bool is_sync = core->synchronization.mode == PS_SYNC_SYNC;
  uint64_t step = is_sync ? core->ended + 1 : 0;
  bool counts_late = (is_sync && core->synchronization.backups > 0) || core->entered_in_step;
  if (call->place_lost != NULL && call->is_taken && step != call->sent_in) {
    /* In another step, what was taken would count twice. */
    fail(core, call, call->place_lost);
    return;
  }
  call->phase = PS_STEP_SENDING;
  call->sent_in = step;
  if (!call->is_sending) core->sending++;
  call->is_sending = true;
  core->is_open = true;
  core->commands->send_gradients(core->commands->owner, call, step, counts_late);
  if (!call->ends_step) give_up_turn(core, call);
}

static void expect_answers(struct ps_step_call *call, size_t count) {
  call->missing = count;
  call->least = UINT64_MAX;
  call->most = 0;
  ps_failure_set(&call->failure, NULL);
}

static void ask(struct ps_steps_core *core, struct ps_step_call *call, unsigned shard) {
  core->commands->ask_step(core->commands->owner, call, shard, call->revision);
}

/** Sends the gradients once the step before the open one has closed in their shards. */
static void open_step(struct ps_steps_core *core, struct ps_step_call *call) {
  uint64_t step = core->ended;
  size_t behind = 0;
  for (size_t i = 0; i < call->shard_count; i++) behind += core->closed[call->shards[i]] < step;
  if (behind == 0) {
    send(core, call);
    return;
  }
  call->phase = PS_STEP_OPENING;
  call->step = step;
  call->revision = core->member_revision;
  expect_answers(call, behind);
  for (size_t i = 0; i < call->shard_count; i++) {
    if (core->closed[call->shards[i]] < step) ask(core, call, call->shards[i]);
  }
}

static void arrive(struct ps_steps_core *core, struct ps_step_call *call) {
  if (call->ends > 0 && core->ended >= call->ends) done(core, call);
  else if (call->kind == PS_STEP_CALL_END || call->ends > 0) drain(core, call);
  else if (core->synchronization.mode == PS_SYNC_SYNC) open_step(core, call);
  else send(core, call);
}

/** Continues a call as a member; asks to become one if this session is not. */
static void enter(struct ps_steps_core *core, struct ps_step_call *call) {
  if (is_member(core)) {
    arrive(core, call);
    return;
  }
  call->phase = PS_STEP_ENTERING;
  core->commands->enter(core->commands->owner, call);
}

static void become_member(struct ps_steps_core *core, struct ps_step_call *call) {
  core->member_revision = call->revision;
  core->member_session = call->session;
  core->entered_in_step = true;
  arrive(core, call);
}

/** Brings all shards to the largest step that is closed in any, or that this trainer has ended before. */
static void catch_up(struct ps_steps_core *core, struct ps_step_call *call) {
  if (call->most > core->ended) {
    core->ended = call->most;
    core->is_open = false;
  }
  if (call->least < core->ended) send_clocks(core, call, PS_STEP_CATCHING_UP, core->ended);
  else become_member(core, call);
}

/**
 * Sends the gradients, or first skips the steps that closed without this trainer, as they do with backups.
 */
static void leave_behind(struct ps_steps_core *core, struct ps_step_call *call) {
  if (!is_member(core)) enter(core, call);
  else if (core->is_open || call->most <= call->step) send(core, call);
  else send_clocks(core, call, PS_STEP_SKIPPING, call->most);
}

static void note_answer(struct ps_steps_core *core, struct ps_step_call *call) {
  call->missing--;
  if (call->missing > 0) return;
  if (call->failure != NULL) {
    struct ps_failure *failure = ps_failure_keep(call->failure);
    ps_steps_core_failed(core, call, failure);
    ps_failure_drop(failure);
  } else if (call->phase == PS_STEP_ARRIVING) {
    catch_up(core, call);
  } else {
    leave_behind(core, call);
  }
}

uint64_t ps_steps_core_read_step(const struct ps_steps_core *core) {
  struct ps_synchronization synchronization = core->synchronization;
  if (synchronization.mode == PS_SYNC_ASYNC || !is_member(core)) return 0;
  uint64_t staleness = synchronization.mode == PS_SYNC_SSP ? synchronization.staleness : 0;
  return core->ended > staleness ? core->ended - staleness : 0;
}

void ps_steps_core_session_began(struct ps_steps_core *core, uint64_t session, unsigned shards,
                                 struct ps_synchronization synchronization) {
  core->session = session;
  core->shards = shards;
  core->synchronization = synchronization;
}

void ps_steps_core_note_closed(struct ps_steps_core *core, unsigned shard, uint64_t step) {
  if (step > core->closed[shard]) core->closed[shard] = step;
}

void ps_steps_core_fell_back(struct ps_steps_core *core, unsigned shard) {
  core->closed[shard] = 0;
  leave_members(core);
}

void ps_steps_core_lost_place(struct ps_steps_core *core) { leave_members(core); }

void ps_steps_core_begin(struct ps_steps_core *core, struct ps_step_call *call) {
  if (core->synchronization.mode != PS_SYNC_ASYNC) {
    ps_queue_append(&core->queued, &call->place, call);
    next_turn(core);
  } else if (call->kind == PS_STEP_CALL_GRADIENTS) {
    call->phase = PS_STEP_SENDING;
    core->commands->send_gradients(core->commands->owner, call, 0, false);
  } else {
    done(core, call);
  }
}

void ps_steps_core_end_call(struct ps_steps_core *core, struct ps_step_call *call,
                            struct ps_failure *failure) {
  if (call->phase == PS_STEP_QUEUED) {
    ps_queue_remove(&core->queued, &call->place);
    ps_steps_core_failed(core, call, failure);
  } else if (call->phase == PS_STEP_DRAINING) {
    ps_steps_core_failed(core, call, failure);
  }
}

void ps_steps_core_entered(struct ps_steps_core *core, struct ps_step_call *call, uint64_t revision) {
  call->phase = PS_STEP_ARRIVING;
  call->revision = revision;
  call->session = core->session;
  expect_answers(call, core->shards);
  for (unsigned shard = 0; shard < core->shards; shard++) ask(core, call, shard);
}

void ps_steps_core_exited(struct ps_steps_core *core, struct ps_step_call *call) {
  leave_members(core);
  done(core, call);
}

uint64_t ps_steps_core_wanted_step(const struct ps_steps_core *core, const struct ps_step_call *call) {
  /* After a fallback the step does not close before this trainer has entered anew. */
  return call->phase == PS_STEP_OPENING && is_member(core) ? call->step : 0;
}

void ps_steps_core_step_answered(struct ps_steps_core *core, struct ps_step_call *call, unsigned shard,
                                 uint64_t step) {
  ps_steps_core_note_closed(core, shard, step);
  if (step < call->least) call->least = step;
  if (step > call->most) call->most = step;
  note_answer(core, call);
}

void ps_steps_core_ask_failed(struct ps_steps_core *core, struct ps_step_call *call,
                              struct ps_failure *failure) {
  ps_failure_set_first(&call->failure, failure);
  note_answer(core, call);
}

void ps_steps_core_gradients_sent(struct ps_steps_core *core, struct ps_step_call *call, size_t late) {
  call->late = late;
  /* Other trainers are ahead: the next gradient asks the shards for their steps again. */
  if (late > 0) memset(core->closed, 0, sizeof core->closed);
  if (call->is_sending && call->ends_step) {
    stop_sending(core, call);
    drain(core, call);
  } else {
    done(core, call);
  }
}

void ps_steps_core_clocks_sent(struct ps_steps_core *core, struct ps_step_call *call) {
  if (call->phase == PS_STEP_CATCHING_UP) {
    become_member(core, call);
    return;
  }
  core->ended = call->step;
  if (call->phase == PS_STEP_SKIPPING) {
    enter(core, call);
    return;
  }
  core->is_open = false;
  core->entered_in_step = false;
  done(core, call);
}

static void enter_anew(struct ps_steps_core *core, struct ps_step_call *call) {
  leave_members(core);
  memset(core->closed, 0, sizeof core->closed);
  enter(core, call);
}

static void lose_place(struct ps_steps_core *core, struct ps_step_call *call, struct ps_failure *failure) {
  if (call->kind == PS_STEP_CALL_EXIT || call->place_lost != NULL) {
    leave_members(core);
    fail(core, call, failure);
    return;
  }
  /* A trainer that was paused is no member any more. What it has not sent yet, or no shard has taken, goes into
   * the step in which it enters again. */
  ps_failure_set(&call->place_lost, failure);
  if (call->phase == PS_STEP_ENDING) call->ends = call->step;
  enter_anew(core, call);
}

void ps_steps_core_gradients_failed(struct ps_steps_core *core, struct ps_step_call *call,
                                    struct ps_failure *failure, size_t taken) {
  bool is_early = ps_reaction_to_rejection(failure->code) == PS_REJECTION_RESEND_IN_STEP;
  if (is_early && call->is_sending && !call->is_resent) {
    /* A shard has fallen back to an older step, which this trainer did not know. Other shards count gradients
     * that they have applied already as late. */
    call->is_resent = true;
    enter_anew(core, call);
    return;
  }
  if (taken > 0) call->is_taken = true;
  /* Without backups a step closes without this trainer only while it is not a member. */
  bool is_late = ps_reaction_to_rejection(failure->code) == PS_REJECTION_COUNT_LATE;
  if (is_late) lose_place(core, call, failure);
  else ps_steps_core_failed(core, call, failure);
}

void ps_steps_core_failed(struct ps_steps_core *core, struct ps_step_call *call,
                          struct ps_failure *failure) {
  if (ps_reaction_to(failure->code) == PS_REACTION_ENTER_ANEW) lose_place(core, call, failure);
  else fail(core, call, failure);
}
