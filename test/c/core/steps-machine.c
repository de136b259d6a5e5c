/* The step machine as a machine of scripts. Settings: `steps <mode> <backups or staleness>`. */
#include <inttypes.h>
#include <string.h>

#include "steps/steps.h"
#include "script.h"

#define CALLS_MAX 4096
#define SHARDS 3

static const struct listener *listener;
static struct ps_steps_core core;
static struct ps_synchronization synchronization;
/** The calls that are not over, by id. */
static struct ps_step_call *calls[CALLS_MAX];

static void on_enter(void *owner, struct ps_step_call *call) {
  (void)owner;
  tell(listener, "enter %" PRIu64, call->id);
}

static void on_exit_members(void *owner, struct ps_step_call *call) {
  (void)owner;
  tell(listener, "exit %" PRIu64, call->id);
}

static void on_ask_step(void *owner, struct ps_step_call *call, unsigned shard,
                        uint64_t revision) {
  (void)owner;
  tell(listener, "ask-step %" PRIu64 " %u %" PRIu64 " %" PRIu64, call->id, shard, revision,
       ps_steps_core_wanted_step(&core, call));
}

static void on_send_gradients(void *owner, struct ps_step_call *call, uint64_t step,
                              bool counts_late) {
  (void)owner;
  tell(listener, "send-gradients %" PRIu64 " %" PRIu64 " %d", call->id, step, counts_late);
}

static void on_send_clocks(void *owner, struct ps_step_call *call, uint64_t step) {
  (void)owner;
  tell(listener, "send-clocks %" PRIu64 " %" PRIu64, call->id, step);
}

static void forget(struct ps_step_call *call) {
  calls[call->id] = NULL;
  ps_step_call_destroy(call);
}

static void on_done(void *owner, struct ps_step_call *call) {
  (void)owner;
  tell(listener, "done %" PRIu64 " %zu", call->id, call->late);
  forget(call);
}

static void on_failed(void *owner, struct ps_step_call *call, struct ps_failure *failure) {
  (void)owner;
  tell(listener, "call-failed %" PRIu64 " %s", call->id, code_of(failure));
  forget(call);
}

static void begin(const struct listener *tells, struct words *settings) {
  static const struct ps_steps_commands commands = {
      NULL,           on_enter, on_exit_members, on_ask_step, on_send_gradients,
      on_send_clocks, on_done,  on_failed,
  };
  const char *mode = take_word(settings);
  uint64_t bound = take_whole(settings);
  listener = tells;
  core = (struct ps_steps_core){.commands = &commands};
  synchronization = (struct ps_synchronization){0};
  if (is_same(mode, "sync")) {
    synchronization.mode = PS_SYNC_SYNC;
    synchronization.backups = bound;
  } else if (is_same(mode, "ssp")) {
    synchronization.mode = PS_SYNC_SSP;
    synchronization.staleness = bound;
  }
}

static void begin_call(struct words *words) {
  unsigned shards[WORDS_MAX];
  size_t count = 0;
  uint64_t id = take_whole(words);
  const char *word = take_word(words);
  enum ps_step_call_kind kind = PS_STEP_CALL_GRADIENTS;
  if (is_same(word, "end")) kind = PS_STEP_CALL_END;
  if (is_same(word, "exit")) kind = PS_STEP_CALL_EXIT;
  bool ends_step = take_boolean(words);
  while (has_more_words(words)) shards[count++] = (unsigned)take_whole(words);
  struct ps_step_call *call = ps_step_call_new(id, kind, shards, count, ends_step);
  if (call == NULL || id >= CALLS_MAX) stop("no memory", "call");
  calls[id] = call;
  ps_steps_core_begin(&core, call);
}

static void take_of_call(const char *event, struct ps_step_call *call, struct words *words) {
  struct ps_failure *failure = NULL;
  if (is_same(event, "entered")) {
    ps_steps_core_entered(&core, call, take_whole(words));
  } else if (is_same(event, "exited")) {
    ps_steps_core_exited(&core, call);
  } else if (is_same(event, "step-answered")) {
    unsigned shard = (unsigned)take_whole(words);
    ps_steps_core_step_answered(&core, call, shard, take_whole(words));
  } else if (is_same(event, "gradients-sent")) {
    ps_steps_core_gradients_sent(&core, call, take_whole(words));
  } else if (is_same(event, "clocks-sent")) {
    ps_steps_core_clocks_sent(&core, call);
  } else {
    failure = take_failure(words);
    if (is_same(event, "gradients-failed"))
      ps_steps_core_gradients_failed(&core, call, failure, take_whole(words));
    else if (is_same(event, "end")) ps_steps_core_end_call(&core, call, failure);
    else if (is_same(event, "ask-failed")) ps_steps_core_ask_failed(&core, call, failure);
    else if (is_same(event, "failed")) ps_steps_core_failed(&core, call, failure);
    else stop("no event of the steps", event);
  }
  ps_failure_drop(failure);
}

static void take(const char *event, struct words *words) {
  if (is_same(event, "begin")) {
    begin_call(words);
  } else {
    uint64_t first = take_whole(words);
    if (is_same(event, "session-began")) {
      ps_steps_core_session_began(&core, first, SHARDS, synchronization);
    } else if (is_same(event, "note-closed")) {
      ps_steps_core_note_closed(&core, (unsigned)first, take_whole(words));
    } else if (is_same(event, "fell-back")) {
      ps_steps_core_fell_back(&core, (unsigned)first);
    } else {
      if (first >= CALLS_MAX || calls[first] == NULL) stop("no such call", event);
      take_of_call(event, calls[first], words);
    }
  }
  uint64_t read_step = ps_steps_core_read_step(&core);
  tell(listener, "state %" PRIu64 " %" PRId64, core.ended,
       read_step == 0 ? -1 : (int64_t)read_step);
}

static void release(void) {
  for (size_t i = 0; i < CALLS_MAX; i++) {
    if (calls[i] != NULL) ps_step_call_destroy(calls[i]);
    calls[i] = NULL;
  }
}

const struct machine steps_machine = {"steps", begin, take, release};
