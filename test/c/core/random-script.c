/* Random scripts of the outbox: events in any order that broker, hosts and calls may raise them in. */
#include "random-script.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "outbox-machine.h"
#include "script.h"

#define SHARDS 3
#define TOKENS 32
#define UPDATES_MAX 5
#define COUNT(list) (sizeof list / sizeof list[0])

/** Publications that PubAcks can answer. */
struct token {
  unsigned shard;
  int slot;
  uint64_t serial;
};

struct script {
  uint64_t random;
  int64_t now_ms;
  /** When to raise `tick`; 0 if no timer is set. */
  int64_t timer_ms;
  /** The number of the last PING. */
  uint64_t ping;
  uint64_t calls;
  /** The shards of the updates of each call. */
  unsigned shards[CALLS_MAX][UPDATES_MAX];
  uint64_t session;
  bool is_connected;
  uint64_t generations[SHARDS];
  uint64_t seqs[SHARDS];
  /** The last number published in each shard. */
  uint64_t numbers[SHARDS];
  /** The newest publications, each at its number modulo TOKENS. */
  struct token tokens[TOKENS];
  size_t publications;
};

/** SplitMix64: a number below a bound. */
static uint64_t below(struct script *script, uint64_t bound) {
  uint64_t mixed = script->random += 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return (mixed ^ (mixed >> 31)) % bound;
}

static bool one_in(struct script *script, uint64_t bound) { return below(script, bound) == 0; }

static const char *pick(struct script *script, const char *const *words, size_t count) {
  return words[below(script, count)];
}

static const char *event_inside(struct script *script, const char *line) {
  bool is_ask = strncmp(line, "ask", 3) == 0;
  bool is_publication = strncmp(line, "publish", 7) == 0 || strncmp(line, "repeat", 6) == 0;
  if ((!is_ask && !is_publication) || !one_in(script, 24)) return NULL;
  const char *event = is_ask ? "not-published IO" : "not-published TOO_LARGE";
  printf("> %s\n", event);
  return event;
}

static const char *on_command(void *context, const char *line) {
  struct script *script = context;
  uint64_t call;
  uint64_t n;
  size_t index;
  struct token token;
  printf("< %s\n", line);
  sscanf(line, "timer %" SCNd64, &script->timer_ms);
  sscanf(line, "ping %" SCNu64, &script->ping);
  if (sscanf(line, "publish %" SCNu64 " %zu %*u %" SCNu64 " %*u %d %" SCNu64, &call, &index, &n,
             &token.slot, &token.serial) == 5) {
    token.shard = script->shards[call][index];
    script->tokens[script->publications++ % TOKENS] = token;
    script->numbers[token.shard] = n;
  }
  return event_inside(script, line);
}

static void perform(struct script *script, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void perform(struct script *script, const char *format, ...) {
  struct words words;
  char line[LINE_BYTES];
  va_list arguments;
  (void)script;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  printf("> %s\n", line);
  split_words(&words, line);
  const char *event = take_word(&words);
  outbox_machine.take(event, &words);
}

static void send(struct script *script) {
  char updates[512] = "";
  size_t bytes = 0;
  size_t count = below(script, UPDATES_MAX + 1);
  uint64_t id = script->calls;
  if (id == CALLS_MAX) return;
  script->calls++;
  for (size_t i = 0; i < count; i++) {
    unsigned shard = (unsigned)below(script, SHARDS);
    uint64_t data = one_in(script, 12) ? 1500 : below(script, 400);
    script->shards[id][i] = shard;
    bool names_version = one_in(script, 3);
    // Few of the largest batches fill the window of a shard.
    int blocks = one_in(script, 3) ? 2 + (int)below(script, 4095) : 1;
    bytes += (size_t)snprintf(updates + bytes, sizeof updates - bytes, " %u:%d:%d:%d", shard,
                              (int)data, names_version, blocks);
  }
  bool stored = one_in(script, 4);
  bool late = one_in(script, 2);
  bool present = one_in(script, 2);
  const char *end = one_in(script, 30) ? "TIMEOUT" : "-";
  perform(script, "send %" PRIu64 " %" PRId64 " %d %d %d %s%s", id, script->now_ms, stored, late,
          present, end, updates);
}

static void end_call(struct script *script) {
  static const char *const codes[] = {"TIMEOUT", "ABORTED", "CLOSED"};
  if (script->calls == 0) return;
  uint64_t call = below(script, script->calls);
  if (!is_call_open(call)) return;
  perform(script, "end %" PRIu64 " %s %" PRId64, call, pick(script, codes, COUNT(codes)),
          script->now_ms);
}

/** Chooses a publication, newer ones more often; NULL if there is none. */
static const struct token *pick_token(struct script *script) {
  size_t known = script->publications < TOKENS ? script->publications : TOKENS;
  if (known == 0) return NULL;
  size_t back = below(script, below(script, known) + 1);
  return &script->tokens[(script->publications - 1 - back) % TOKENS];
}

static void store(struct script *script) {
  const struct token *token = pick_token(script);
  if (token == NULL) return;
  unsigned shard = one_in(script, 40) ? (token->shard + 1) % SHARDS : token->shard;
  if (one_in(script, 60)) script->generations[shard]++;
  perform(script, "stored %d %" PRIu64 " %u %" PRIu64 " %" PRIu64 " %" PRId64, token->slot,
          token->serial, shard, script->generations[shard], ++script->seqs[shard],
          script->now_ms);
}

static void refuse(struct script *script) {
  static const char *const codes[] = {"JOURNAL_FULL", "NO_BROKER", "TOO_LARGE"};
  const struct token *token = pick_token(script);
  if (token == NULL) return;
  const char *code = pick(script, codes, COUNT(codes));
  perform(script, "refused %d %" PRIu64 " %s %d %" PRId64, token->slot, token->serial, code,
          !one_in(script, 8), script->now_ms);
}

static void answer(struct script *script) {
  static const char *const codes[] = {"BAD_VALUE", "LATE",       "ALREADY_INITIALIZED",
                                      "EARLY",     "NON_FINITE", "BAD_VALUE",
                                      "REJOIN",    "SUPERSEDED", "SETTLED"};
  char rows[512] = "";
  size_t bytes = 0;
  unsigned shard = (unsigned)below(script, SHARDS);
  size_t count = 1 + below(script, 4);
  for (size_t i = 0; i < count; i++) {
    uint64_t last = script->numbers[shard];
    uint64_t n = 1 + (last > 6 ? last - below(script, 7) : below(script, 7));
    const char *code = one_in(script, 3) ? pick(script, codes, COUNT(codes)) : "-";
    bytes += (size_t)snprintf(rows + bytes, sizeof rows - bytes, " %d:%d:%s", (int)n,
                              (int)below(script, script->seqs[shard] + 2), code);
  }
  uint64_t session = script->session - (one_in(script, 20) && script->session > 1 ? 1 : 0);
  perform(script, "answered %u %" PRIu64 " %" PRIu64 " %d %" PRId64 " %zu%s", shard,
          script->generations[shard], session, one_in(script, 2), script->now_ms, count, rows);
}

static void fail_question(struct script *script) {
  static const char *const codes[] = {"NO_OWNER",      "BUSY",         "REJOIN",
                                      "SUPERSEDED",    "JOURNAL_LOST", "JOURNAL_REPLACED",
                                      "JOURNAL_DAMAGED", "BAD_MESSAGE", "NOT_INITIALIZED"};
  unsigned shard = (unsigned)below(script, SHARDS);
  const char *code = pick(script, codes, COUNT(codes));
  int wait_ms = one_in(script, 2) ? 600 : 0;
  bool names = !one_in(script, 3);
  uint64_t generation = names ? script->generations[shard] + below(script, 2) : 0;
  int seq = names ? (int)below(script, script->seqs[shard] + 1) : -1;
  perform(script, "ask-failed %u %s %d %" PRIu64 " %d %" PRId64 " %" PRIu64, shard, code, wait_ms,
          generation, seq, script->now_ms, script->session);
}

static void deny(struct script *script) {
  const struct ps_block_update *update = first_in_flight();
  if (update == NULL) return;
  for (size_t skip = below(script, 8); skip > 0 && update->next != NULL; skip--) {
    update = update->next;
  }
  perform(script, "denied %" PRIu64 " %zu %" PRId64, update->call->id, update->index,
          script->now_ms);
}

static void change_connection(struct script *script) {
  if (script->is_connected) perform(script, "disconnected");
  else perform(script, "reconnected %" PRId64, script->now_ms);
  script->is_connected = !script->is_connected;
}

static void change_session(struct script *script) {
  if (one_in(script, 3)) {
    perform(script, "pause");
    return;
  }
  memset(script->numbers, 0, sizeof script->numbers);
  perform(script, "start %" PRIu64 " %" PRId64, ++script->session, script->now_ms);
}

static void pass_time(struct script *script) {
  static const int64_t steps_ms[] = {1, 40, 100, 600, 2000};
  int64_t next_ms = script->now_ms + steps_ms[below(script, COUNT(steps_ms))];
  while (script->timer_ms != 0 && script->timer_ms <= next_ms) {
    if (script->timer_ms > script->now_ms) script->now_ms = script->timer_ms;
    script->timer_ms = 0;
    perform(script, "tick %" PRId64, script->now_ms);
  }
  script->now_ms = next_ms;
}

/** Answers the last PING, or one that was sent before. */
static void answer_ping(struct script *script) {
  uint64_t number = one_in(script, 10) ? script->ping / 2 : script->ping;
  perform(script, "read %" PRIu64 " %" PRId64, number, script->now_ms);
}

typedef void action(struct script *script);

/** Each action is listed as often as it is to be chosen. */
static action *const actions[] = {
    send,   send,   send,      send,     pass_time, pass_time,     pass_time, pass_time,
    store,  store,  store,     store,    store,     store,         store,     answer,
    answer, answer, answer,    answer,   refuse,    refuse,        end_call,  deny,
    store,  answer, pass_time, end_call, refuse,    fail_question, send,      change_session,
    change_connection, change_connection, answer_ping, answer_ping, answer_ping, answer_ping, answer_ping,
};

void write_random_script(uint64_t seed, size_t events) {
  static struct script script;
  struct listener listener = {&script, on_command};
  struct words settings;
  char text[64];
  memset(&script, 0, sizeof script);
  script.random = seed;
  script.now_ms = 1000;
  script.is_connected = true;
  for (unsigned shard = 0; shard < SHARDS; shard++) script.generations[shard] = 1;
  snprintf(text, sizeof text, "1000 %d", (int)(2 + below(&script, 6)));
  split_words(&settings, text);
  printf("# outbox %s\n", text);
  outbox_machine.begin(&listener, &settings);
  if (!one_in(&script, 5)) change_session(&script);
  for (size_t i = 0; i < events; i++) actions[below(&script, COUNT(actions))](&script);
  for (uint64_t call = 0; call < script.calls; call++) {
    if (!is_call_open(call)) continue;
    perform(&script, "end %" PRIu64 " CLOSED %" PRId64, call, script.now_ms);
  }
  outbox_machine.release();
  printf("\n");
}
