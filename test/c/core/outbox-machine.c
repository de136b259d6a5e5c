/*
 * The outbox as a machine of scripts. Settings: `outbox <bytes in flight> <numbers of a shard>`. It drops
 * its references to calls and failures as early as an I/O layer may, so that a sanitizer finds later uses. It
 * raises events that allocate memory first without any memory and then with more and more: an event that
 * fails must change nothing.
 */
#include "outbox-machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing-memory.h"

static const struct listener *listener;
static struct ps_positions positions;
static struct ps_outbox *outbox;
/** The calls that are not over, by id. */
static struct ps_update_call *calls[CALLS_MAX];

bool is_call_open(uint64_t id) { return calls[id] != NULL; }

const struct ps_block_update *first_in_flight(void) { return outbox->in_flight.list.first; }

/** The failure that a line `not-published CODE` reports. */
static struct ps_failure *reported(const char *line) {
  struct words words;
  split_words(&words, line);
  if (!is_same(take_word(&words), "not-published")) stop("not an event of a command", line);
  return take_failure(&words);
}

static void raise_publish_failed(struct ps_block_update *update, const char *line) {
  if (line == NULL) return;
  struct ps_failure *failure = reported(line);
  ps_outbox_publish_failed(outbox, update, failure);
  ps_failure_drop(failure);
}

static void on_publish(void *owner, struct ps_block_update *update, uint64_t session,
                       uint64_t done) {
  (void)owner;
  raise_publish_failed(update,
                       tell(listener,
                            "publish %" PRIu64 " %zu %" PRIu64 " %" PRIu64 " %" PRIu64
                            " %d %" PRIu64 " %d",
                            update->call->id, update->index, session, update->n, done,
                            update->slot, update->serial, update->names_version));
}

static void on_repeat(void *owner, struct ps_block_update *update) {
  (void)owner;
  raise_publish_failed(
      update, tell(listener, "repeat %" PRIu64 " %zu", update->call->id, update->index));
}

static void on_release(void *owner, struct ps_block_update *update, bool is_reusable) {
  (void)owner;
  tell(listener, "release %" PRIu64 " %zu %d", update->call->id, update->index, is_reusable);
}

static void on_ask(void *owner, unsigned shard, uint64_t session, const uint64_t *numbers,
                   size_t count, struct ps_position at) {
  char list[LINE_BYTES / 2] = "";
  size_t bytes = 0;
  (void)owner;
  for (size_t i = 0; i < count && bytes < sizeof list - 32; i++) {
    bytes += (size_t)snprintf(list + bytes, sizeof list - bytes, " %" PRIu64, numbers[i]);
  }
  const char *line = tell(listener, "ask %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %zu%s", shard,
                          session, at.generation, at.seq, count, list);
  if (line == NULL) return;
  struct ps_failure *failure = reported(line);
  ps_outbox_ask_not_published(outbox, shard, numbers, count, failure);
  ps_failure_drop(failure);
}

static void on_ping(void *owner, uint64_t send_number) {
  (void)owner;
  tell(listener, "ping %" PRIu64, send_number);
}

static void on_set_timer(void *owner, int64_t at_ms) {
  (void)owner;
  tell(listener, "timer %" PRId64, at_ms);
}

static void on_call_over(void *owner, struct ps_update_call *call, int64_t now_ms) {
  static const char letters[] = {[PS_FATE_PENDING] = 'p', [PS_FATE_APPLIED] = 'a',
                                 [PS_FATE_LATE] = 'l',    [PS_FATE_REJECTED] = 'r',
                                 [PS_FATE_UNKNOWN] = 'k', [PS_FATE_UNSENT] = 'u'};
  char fates[WORDS_MAX + 1] = "";
  (void)owner;
  (void)now_ms;
  for (size_t i = 0; i < call->update_count; i++) fates[i] = letters[call->updates[i].fate];
  tell(listener, "over %" PRIu64 " %d %s %s %s %zu %zu %zu %zu =%s", call->id,
       call->rejected == NULL ? -1 : (int)call->rejected->index, code_of(call->rejection),
       code_of(call->obstacle), code_of(call->end), call->applied, call->late, call->unknown,
       call->unsent, fates);
  calls[call->id] = NULL;
  ps_update_call_drop(call, 1);
}

static void on_session_over(void *owner, struct ps_failure *failure, int64_t now_ms) {
  (void)owner;
  (void)now_ms;
  tell(listener, "session-over %s %" PRIu64, code_of(failure), failure->received);
  /* What the outbox does when a session begins or ends. */
  if (failure->code == PSERVER_ERR_REJOIN) ps_outbox_pause(outbox);
}

static void on_replaced(void *owner, unsigned shard, struct ps_position seen) {
  (void)owner;
  tell(listener, "replaced %u %" PRIu64 " %" PRIu64, shard, seen.generation, seen.seq);
}

static void begin(const struct listener *tells, struct words *settings) {
  static const struct ps_outbox_commands commands = {
      NULL, on_publish, on_repeat, on_release, on_ask, on_ping, on_set_timer};
  static const struct ps_outbox_listener outbox_listener = {NULL, on_call_over, on_session_over};
  static const struct ps_positions_listener positions_listener = {NULL, on_replaced};
  listener = tells;
  memset(&positions, 0, sizeof positions);
  positions.listener = &positions_listener;
  struct ps_outbox_deps deps = {
      .commands = &commands, .listener = &outbox_listener, .positions = &positions};
  deps.in_flight_bytes_max = take_whole(settings);
  deps.window_records = take_whole(settings);
  outbox = ps_outbox_new(&deps);
  if (outbox == NULL) stop("no memory", "outbox");
}

static void send(struct words *words) {
  uint64_t id = take_whole(words);
  int64_t now_ms = take_ms(words);
  struct ps_call_mode mode = {0};
  mode.is_done_when_stored = take_boolean(words);
  mode.counts_late = take_boolean(words);
  mode.counts_present = take_boolean(words);
  struct ps_failure *end = take_failure(words);
  struct ps_update_call *call = ps_update_call_new(id, mode, WORDS_MAX);
  if (call == NULL || id >= CALLS_MAX) stop("no memory", "call");
  while (has_more_words(words)) {
    const char *parts[4];
    take_parts(words, parts, 4);
    ps_update_call_add(call, (unsigned)atoi(parts[0]), (size_t)atoi(parts[3]), (size_t)atoi(parts[1]),
                       atoi(parts[2]) != 0);
  }
  if (end != NULL) ps_failure_set(&call->end, end);
  ps_failure_drop(end);
  calls[id] = call;
  for (int allocations = 0;; allocations++) {
    allow_allocations(allocations);
    if (ps_outbox_send(outbox, call, now_ms)) break;
  }
  allow_allocations(-1);
}

static void take_stored(struct words *words) {
  uint64_t slot = take_whole(words);
  uint64_t serial = take_whole(words);
  unsigned shard = (unsigned)take_whole(words);
  struct ps_position at = {0};
  at.generation = take_whole(words);
  at.seq = take_whole(words);
  int64_t now_ms = take_ms(words);
  allow_allocations(0);
  bool is_taken = ps_outbox_stored(outbox, slot, serial, shard, at, now_ms);
  allow_allocations(-1);
  if (!is_taken && !ps_outbox_stored(outbox, slot, serial, shard, at, now_ms)) {
    stop("no memory", "stored");
  }
}

static void take_refused(struct words *words) {
  uint64_t slot = take_whole(words);
  uint64_t serial = take_whole(words);
  struct ps_failure *failure = take_failure(words);
  bool is_retryable = take_boolean(words);
  ps_outbox_refused(outbox, slot, serial, failure, is_retryable, take_ms(words));
  ps_failure_drop(failure);
}

static void take_answered(struct words *words) {
  struct ps_outcome outcomes[WORDS_MAX];
  struct ps_answers answers = {.outcomes = outcomes};
  answers.shard = (unsigned)take_whole(words);
  answers.generation = take_whole(words);
  answers.session = take_whole(words);
  bool is_reply = take_boolean(words);
  int64_t now_ms = take_ms(words);
  answers.count = take_whole(words);
  for (size_t i = 0; i < answers.count; i++) {
    const char *parts[3];
    take_parts(words, parts, 3);
    outcomes[i] = (struct ps_outcome){.n = strtoull(parts[0], NULL, 10),
                                      .seq = strtoull(parts[1], NULL, 10),
                                      .version = 1,
                                      .failure = make_failure(parts[2])};
  }
  ps_outbox_answered(outbox, &answers, is_reply, now_ms);
  for (size_t i = 0; i < answers.count; i++) ps_failure_drop(outcomes[i].failure);
}

static void take_ask_failed(struct words *words) {
  unsigned shard = (unsigned)take_whole(words);
  struct ps_failure *failure = take_failure(words);
  int64_t retry_after_ms = take_ms(words);
  failure->expected.generation = take_whole(words);
  failure->expected.seq = take_whole(words);
  int64_t now_ms = take_ms(words);
  failure->received = take_whole(words);
  ps_outbox_ask_failed(outbox, shard, failure, retry_after_ms, now_ms);
  ps_failure_drop(failure);
}

static void take_denied(struct words *words) {
  uint64_t call = take_whole(words);
  uint64_t index = take_whole(words);
  struct ps_block_update *update = outbox->in_flight.list.first;
  while (update != NULL && (update->call->id != call || update->index != index)) {
    update = update->next;
  }
  /* The I/O layer has no reference to records that are no longer in flight. */
  if (update == NULL) return;
  struct ps_failure *failure = make_failure("DENIED");
  ps_outbox_denied(outbox, update, failure, take_ms(words));
  ps_failure_drop(failure);
}

static void take_end(struct words *words) {
  uint64_t id = take_whole(words);
  struct ps_failure *failure = take_failure(words);
  if (calls[id] != NULL) ps_outbox_end_call(outbox, calls[id], failure, take_ms(words));
  ps_failure_drop(failure);
}

static void take(const char *event, struct words *words) {
  if (is_same(event, "send")) send(words);
  else if (is_same(event, "end")) take_end(words);
  else if (is_same(event, "stored")) take_stored(words);
  else if (is_same(event, "refused")) take_refused(words);
  else if (is_same(event, "answered")) take_answered(words);
  else if (is_same(event, "ask-failed")) take_ask_failed(words);
  else if (is_same(event, "denied")) take_denied(words);
  else if (is_same(event, "pause")) ps_outbox_pause(outbox);
  else if (is_same(event, "disconnected")) ps_outbox_disconnected(outbox);
  else if (is_same(event, "reconnected")) ps_outbox_reconnected(outbox, take_ms(words));
  else if (is_same(event, "tick")) ps_outbox_tick(outbox, take_ms(words));
  else if (is_same(event, "read")) {
    uint64_t number = take_whole(words);
    ps_outbox_read(outbox, number, take_ms(words));
  }
  else if (is_same(event, "start")) {
    uint64_t session = take_whole(words);
    ps_outbox_start(outbox, session, take_ms(words));
  } else {
    stop("no event of the outbox", event);
  }
}

static void release(void) {
  ps_outbox_destroy(outbox);
  outbox = NULL;
  for (size_t i = 0; i < CALLS_MAX; i++) {
    if (calls[i] != NULL) ps_update_call_drop(calls[i], 1);
    calls[i] = NULL;
  }
}

const struct machine outbox_machine = {"outbox", begin, take, release};
