/* Broker, hosts and time of a scenario. */
#include "scripted.h"

#include <inttypes.h>
#include <string.h>

#define EVENTS_MAX 8192
#define SUBJECT_BYTES 512
#define LINK_BYTES ((uint64_t)1 << 30)

/** An event at a time: an action, or else a message. */
struct event {
  int64_t at_ms;
  void (*act)(void);
  natsMsg *message;
};

struct scripted_job job;

static take_message take;
static struct published *published;
static size_t published_count;
static size_t published_room;
/** In the order in which they happen. */
static struct event events[EVENTS_MAX];
static size_t event_count;

void begin(take_message taker) {
  for (size_t i = 0; i < published_count; i++) {
    free(published[i].subject);
    free(published[i].reply);
    free(published[i].bytes);
  }
  for (size_t i = 0; i < event_count; i++) natsMsg_Destroy(events[i].message);
  free(broker.error);
  free(published);
  published = NULL;
  published_count = 0;
  published_room = 0;
  event_count = 0;
  broker = (struct broker){0};
  take = taker;
  job = (struct scripted_job){.session = 41,
                              .shards = 2,
                              .lease_ms = 600000,
                              .made = "2026-11-22T10:00:00.123456789Z",
                              .mode = "async",
                              .epoch = 2,
                              .blocks = 1,
                              .block_rows = 1,
                              .row_elements = 2};
  set_clock();
}

pserver_client *connected(size_t in_flight_bytes) {
  pserver_options options;
  pserver_client *client = NULL;
  pserver_options_init(&options);
  options.url = "nats://broker";
  options.job = "mnist";
  options.trainer = "t";
  options.inbox_token = "life";
  if (in_flight_bytes > 0) options.in_flight_bytes = in_flight_bytes;
  EXPECT_OK(pserver_connect(&options, &client));
  return client;
}

pserver_client *connected_singly(size_t in_flight_bytes) {
  broker.max_payload = 1024;
  return connected(in_flight_bytes);
}

void speed_up(void) {
  int64_t now_ms = ps_now_ms();
  ps_link_window_note(&broker.client->sender.outbox->link, LINK_BYTES, 1, now_ms);
  ps_link_window_note(&broker.client->requests.window, LINK_BYTES, 1, now_ms);
}

void closed(pserver_client *client) {
  EXPECT(broker.client->calls.first == NULL && broker.client->calls.running == 0);
  EXPECT(broker.client->requests.window_bytes == 0 && broker.client->sender.outbox->waiting == 0);
  EXPECT_OK(pserver_close(client, 0));
  begin(NULL);
}

/* Events. */

static void schedule(int64_t delay_ms, struct event event) {
  EXPECT(event_count < EVENTS_MAX);
  event.at_ms = time_ms() + delay_ms;
  size_t place = event_count++;
  for (; place > 0 && events[place - 1].at_ms > event.at_ms; place--) events[place] = events[place - 1];
  events[place] = event;
}

int64_t next_event_ms(void) { return event_count == 0 ? PS_NEVER_MS : events[0].at_ms; }

void happen(void) {
  struct event event = events[0];
  memmove(events, events + 1, --event_count * sizeof events[0]);
  if (event.act != NULL) event.act();
  else if (broker.client != NULL) deliver_message(event.message);
  else natsMsg_Destroy(event.message);
}

void act_after(int64_t delay_ms, void (*act)(void)) { schedule(delay_ms, (struct event){.act = act}); }

void bytes_after(int64_t delay_ms, const char *subject, const void *bytes, size_t count) {
  schedule(delay_ms, (struct event){.message = make_message(subject, bytes, count)});
}

void nobody_after(int64_t delay_ms, const struct published *message) {
  natsMsg *nobody = make_message(message->reply, NULL, 0);
  nobody->is_nobody = true;
  schedule(delay_ms, (struct event){.message = nobody});
}

static void draft_after(int64_t delay_ms, const char *subject, struct ps_draft *draft) {
  EXPECT_OK(ps_draft_end(draft));
  bytes_after(delay_ms, subject, draft->buffer.data, draft->buffer.size);
  ps_draft_release(draft);
}

void disconnect_now(void) { break_off(); }

void reconnect_now(void) { make_anew(); }

/* What was published. */

natsStatus broker_takes(const char *subject, const char *reply, const void *data, size_t bytes) {
  if (published_count == published_room) {
    published_room = published_room == 0 ? 64 : 2 * published_room;
    published = realloc(published, published_room * sizeof *published);
    EXPECT(published != NULL);
  }
  struct published *message = &published[published_count++];
  *message = (struct published){.at_ms = time_ms(),
                                .subject = strdup(subject),
                                .reply = strdup(reply),
                                .bytes = malloc(bytes),
                                .count = bytes};
  memcpy(message->bytes, data, bytes);
  EXPECT_OK(ps_open_message(message->bytes, bytes, &message->message));
  struct published shown = *message;
  if (take != NULL) take(&shown);
  return NATS_OK;
}

bool is_to(const struct published *message, const char *verb) {
  const char *last = strrchr(message->subject, '.');
  return last != NULL && strcmp(last + 1, verb) == 0;
}

bool is_record(const struct published *message) { return strstr(message->subject, ".log.") != NULL; }

uint32_t uint32_in(const struct published *message, size_t start, size_t place) {
  uint32_t number;
  EXPECT(start + (place + 1) * sizeof number <= message->message.data_bytes);
  memcpy(&number, message->message.data + start + place * sizeof number, sizeof number);
  return number;
}

uint64_t number_in(const struct published *message, const char *key) {
  uint64_t number = 0;
  EXPECT(ps_map_whole(&message->message.fields, key, &number));
  return number;
}

bool is_set_in(const struct published *message, const char *key) {
  struct ps_value flag;
  return ps_map_find(&message->message.fields, key, &flag) && flag.type == PS_VALUE_BOOLEAN && flag.boolean;
}

unsigned shard_in(const struct published *message) {
  return (unsigned)strtoul(strstr(message->subject, ".log.") + 5, NULL, 10);
}

unsigned block_in(const struct published *message) {
  return (unsigned)strtoul(strrchr(message->subject, '.') + 1, NULL, 10);
}

static bool is_of_kind(const struct published *message, const char *verb) {
  return verb == NULL ? is_record(message) : is_to(message, verb);
}

size_t count_to(const char *verb) {
  size_t count = 0;
  for (size_t i = 0; i < published_count; i++) count += is_of_kind(&published[i], verb);
  return count;
}

const struct published *to(const char *verb, size_t number) {
  for (size_t i = 0; i < published_count; i++) {
    if (is_of_kind(&published[i], verb) && number-- == 0) return &published[i];
  }
  fprintf(stderr, "no such message to %s\n", verb == NULL ? "a journal" : verb);
  EXPECT(false);
  return NULL;
}

/** How much later than due a client may act: the time of reading the clock, and of events. */
#define LATE_MS 160

void expect_gaps(const char *verb, size_t count, const int64_t *expected_ms) {
  for (size_t i = 0; i < count; i++) {
    int64_t gap = to(verb, i + 1)->at_ms - to(verb, i)->at_ms;
    bool is_right = gap >= expected_ms[i] && gap <= expected_ms[i] + LATE_MS;
    if (!is_right) fprintf(stderr, "%zu: %" PRId64 " ms, not %" PRId64 "\n", i, gap, expected_ms[i]);
    EXPECT(is_right);
  }
}

/* Answers of the broker. */

void stored_after(int64_t delay_ms, const struct published *record, uint64_t generation, uint64_t seq) {
  char json[128];
  char suffix[32] = "";
  if (generation > 1) snprintf(suffix, sizeof suffix, "_%" PRIu64, generation);
  int length = snprintf(json, sizeof json, "{\"stream\":\"PS_mnist_%u%s\",\"seq\":%" PRIu64 "}",
                        shard_in(record), suffix, seq);
  bytes_after(delay_ms, record->reply, json, (size_t)length);
}

void refused_after(int64_t delay_ms, const struct published *record, int error_code,
                   const char *description) {
  char json[256];
  int length =
      snprintf(json, sizeof json, "{\"error\":{\"code\":%d,\"err_code\":%d,\"description\":\"%s\"}}",
               error_code == 10054 ? 400 : 503, error_code, description);
  bytes_after(delay_ms, record->reply, json, (size_t)length);
}

/* Answers of hosts. */

void error_after(int64_t delay_ms, const struct published *message, const char *code,
                 uint64_t generation) {
  error_at(delay_ms, message, code, (struct ps_position){generation, 0});
}

/** Begins an error, whose details follow. */
static void begin_error(struct ps_draft *draft, const char *code) {
  ps_draft_begin(draft);
  ps_draft_key(draft, "error");
  ps_pack_map(draft, 3);
  ps_pack_text(draft, "code", 4);
  ps_pack_text(draft, code, strlen(code));
  ps_pack_text(draft, "message", 7);
  ps_pack_text(draft, "said by the scenario", 20);
  ps_pack_text(draft, "details", 7);
}

void error_with(int64_t delay_ms, const struct published *message, const char *code, const char *key,
                uint64_t number) {
  struct ps_draft draft;
  begin_error(&draft, code);
  ps_pack_map(&draft, 1);
  ps_pack_text(&draft, key, strlen(key));
  ps_pack_whole(&draft, number);
  draft_after(delay_ms, message->reply, &draft);
}

void error_at(int64_t delay_ms, const struct published *message, const char *code,
              struct ps_position expected) {
  struct ps_draft draft;
  begin_error(&draft, code);
  bool has_generation = expected.generation > 0;
  bool says_position = has_generation || expected.seq > 0;
  ps_pack_map(&draft, says_position);
  if (says_position) {
    ps_pack_text(&draft, "expected", 8);
    ps_pack_map(&draft, 1 + has_generation);
    if (has_generation) {
      ps_pack_text(&draft, "generation", 10);
      ps_pack_whole(&draft, expected.generation);
    }
    ps_pack_text(&draft, "seq", 3);
    ps_pack_whole(&draft, expected.seq);
  }
  draft_after(delay_ms, message->reply, &draft);
}

/**
 * `version`: of a block, or the round of a contribution; 0: none. `guard`: what a guard has done about a record that was
 * not rejected; NULL: nothing.
 */
static void tell_guarded(int64_t delay_ms, const char *subject, struct outcome outcome, uint64_t version,
                         const char *text, const char *guard) {
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "shard", outcome.shard);
  ps_draft_whole(&draft, "generation", outcome.generation);
  ps_draft_whole(&draft, "session", outcome.session);
  ps_draft_key(&draft, "outcomes");
  ps_pack_list(&draft, 1);
  ps_pack_list(&draft, outcome.code != NULL ? 5 : guard != NULL ? 4 : 3);
  ps_pack_whole(&draft, outcome.n);
  ps_pack_whole(&draft, outcome.seq);
  ps_pack_whole(&draft, version);
  if (outcome.code != NULL) {
    ps_pack_text(&draft, outcome.code, strlen(outcome.code));
    ps_pack_text(&draft, text, strlen(text));
  }
  if (guard != NULL) {
    ps_pack_list(&draft, 3);
    ps_pack_text(&draft, guard, strlen(guard));
    msgpack_pack_double(&draft.packer, 8.5);
    msgpack_pack_double(&draft.packer, 2.25);
  }
  draft_after(delay_ms, subject, &draft);
}

static void tell_outcome(int64_t delay_ms, const char *subject, struct outcome outcome, uint64_t version,
                         const char *text) {
  tell_guarded(delay_ms, subject, outcome, version, text, NULL);
}

static const char answers_inbox[] = "_INBOX_mnist.t.life.applied";

void outcome_after(int64_t delay_ms, const struct published *question, struct outcome outcome) {
  uint64_t version = outcome.code == NULL ? 2 : 0;
  tell_outcome(delay_ms, question == NULL ? answers_inbox : question->reply, outcome, version, "");
}

/** Tells what became of a record, with the version that it has led to. */
static void tell_settled(int64_t delay_ms, const struct published *record, uint64_t seq, uint64_t version,
                         const char *code, const char *text) {
  struct outcome outcome = {.session = number_in(record, "session"),
                            .shard = shard_in(record),
                            .generation = 1,
                            .n = number_in(record, "n"),
                            .seq = seq,
                            .code = code};
  tell_outcome(delay_ms, answers_inbox, outcome, version, text);
}

void settled_after(int64_t delay_ms, const struct published *record, uint64_t seq, const char *code,
                   const char *text) {
  tell_settled(delay_ms, record, seq, code == NULL ? 2 : 0, code, text);
}

void guarded_after(int64_t delay_ms, const struct published *record, uint64_t seq, const char *action) {
  struct outcome outcome = {.session = number_in(record, "session"),
                            .shard = shard_in(record),
                            .generation = 1,
                            .n = number_in(record, "n"),
                            .seq = seq};
  tell_guarded(delay_ms, answers_inbox, outcome, 2, "", action);
}

void counted_after(int64_t delay_ms, const struct published *record, uint64_t seq, uint64_t round) {
  tell_settled(delay_ms, record, seq, round, NULL, "");
}

void versions_after(int64_t delay_ms, const struct published *question, const char *fragment, uint64_t version,
                    struct ps_position position, bool is_sampled) {
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "generation", position.generation);
  ps_draft_whole(&draft, "seq", position.seq);
  ps_draft_key(&draft, "fragments");
  ps_pack_list(&draft, 1);
  ps_pack_list(&draft, 3);
  ps_pack_text(&draft, fragment, strlen(fragment));
  ps_pack_whole(&draft, version);
  ps_pack_flag(&draft, is_sampled);
  ps_draft_key(&draft, "account");
  ps_pack_list(&draft, 4);
  for (uint64_t row = 0; row < 4; row++) {
    ps_pack_list(&draft, 3);
    for (uint64_t i = 0; i < 3; i++) ps_pack_whole(&draft, 3 * row + i);
  }
  draft_after(delay_ms, question->reply, &draft);
}

void applied_after(int64_t delay_ms, const struct published *record, uint64_t seq) {
  settled_after(delay_ms, record, seq, NULL, "");
}

void step_after(int64_t delay_ms, const struct published *question, uint64_t step) {
  step_at(delay_ms, question, step, (struct ps_position){1, 0});
}

void step_at(int64_t delay_ms, const struct published *question, uint64_t step,
             struct ps_position position) {
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "generation", position.generation);
  ps_draft_whole(&draft, "seq", position.seq);
  ps_draft_whole(&draft, "revision", 1);
  ps_draft_whole(&draft, "step", step);
  draft_after(delay_ms, question->reply, &draft);
}

void pulled_after(int64_t delay_ms, const struct published *pull, uint64_t generation, uint64_t seq) {
  float values[2] = {0, 0};
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "epoch", job.epoch);
  ps_draft_text(&draft, "dtype", "float32");
  ps_draft_whole(&draft, "generation", generation);
  ps_draft_whole(&draft, "seq", seq);
  ps_draft_whole(&draft, "version", 1);
  EXPECT_OK(ps_draft_end_and_append(&draft, values, sizeof values));
  bytes_after(delay_ms, pull->reply, draft.buffer.data, draft.buffer.size);
  ps_draft_release(&draft);
}

static void join_after(int64_t delay_ms, const struct published *message) {
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "session", job.session++);
  ps_draft_whole(&draft, "shards", job.shards);
  ps_draft_whole(&draft, "leaseMs", (uint64_t)job.lease_ms);
  ps_draft_key(&draft, "synchronization");
  ps_pack_map(&draft, 3);
  ps_pack_text(&draft, "mode", 4);
  ps_pack_text(&draft, job.mode, strlen(job.mode));
  ps_pack_text(&draft, "staleness", 9);
  ps_pack_whole(&draft, job.staleness);
  ps_pack_text(&draft, "backups", 7);
  ps_pack_whole(&draft, job.backups);
  ps_draft_whole(&draft, "maxPayloadBytes", 8388608);
  ps_draft_text(&draft, "made", job.made);
  draft_after(delay_ms, message->reply, &draft);
}

static void pack_layout(struct ps_draft *draft) {
  const char *const keys[] = {"elements", "blockElements", "blocks", "firstShard", "shards"};
  uint64_t elements = job.block_rows * job.row_elements;
  const uint64_t values[] = {job.blocks * elements, elements, job.blocks, 0, job.shards};
  ps_pack_map(draft, 5 + (job.fragment != NULL));
  if (job.fragment != NULL) {
    ps_pack_text(draft, "pinned", 6);
    ps_pack_flag(draft, true);
  }
  for (size_t i = 0; i < 5; i++) {
    ps_pack_text(draft, keys[i], strlen(keys[i]));
    ps_pack_whole(draft, values[i]);
  }
}

uint32_t first_number(const char *name, size_t bytes, uint64_t epoch) {
  return ps_name_hash(name, bytes) % 400000 * 10000 + (uint32_t)epoch;
}

/** The parameter "w", or one like it. */
static void pack_parameter(struct ps_draft *draft, const void *name, size_t bytes) {
  ps_pack_map(draft, 8);
  ps_pack_text(draft, "name", 4);
  ps_pack_text(draft, name, bytes);
  ps_pack_text(draft, "dtype", 5);
  ps_pack_text(draft, "float32", 7);
  ps_pack_text(draft, "shape", 5);
  ps_pack_list(draft, 2);
  ps_pack_whole(draft, job.blocks * job.block_rows);
  ps_pack_whole(draft, job.row_elements);
  ps_pack_text(draft, "config", 6);
  ps_pack_map(draft, (size_t)(job.config_entry != NULL) + (job.fragment != NULL));
  if (job.fragment != NULL) {
    ps_pack_text(draft, "fragment", 8);
    ps_pack_text(draft, job.fragment, strlen(job.fragment));
  }
  if (job.config_entry != NULL) {
    ps_pack_text(draft, job.config_entry, strlen(job.config_entry));
    ps_pack_flag(draft, true);
  }
  bool is_anew = job.anew_from != NULL && memcmp(name, job.anew_from, bytes) >= 0;
  ps_pack_text(draft, "epoch", 5);
  ps_pack_whole(draft, job.epoch + is_anew);
  ps_pack_text(draft, "firstNumber", 11);
  ps_pack_whole(draft,
                job.number == NULL ? first_number(name, bytes, job.epoch + is_anew) : *job.number);
  ps_pack_text(draft, "ready", 5);
  msgpack_pack_true(&draft->packer);
  ps_pack_text(draft, "layout", 6);
  pack_layout(draft);
}

static void status_after(int64_t delay_ms, const struct published *message) {
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_text(&draft, "state", "ready");
  ps_draft_whole(&draft, "epoch", 2);
  ps_draft_text(&draft, "by", "t");
  ps_draft_whole(&draft, "shards", job.shards);
  struct ps_value asked;
  struct ps_value name;
  const uint8_t *at = NULL;
  ps_draft_key(&draft, "parameters");
  if (ps_map_find(&message->message.fields, "names", &asked)) {
    ps_pack_list(&draft, asked.count);
    while (ps_list_next(&asked, &at, &name)) pack_parameter(&draft, name.content, name.content_bytes);
  } else {
    bool is_asked = ps_map_find(&message->message.fields, "limit", &asked);
    ps_pack_list(&draft, is_asked);
    if (is_asked) pack_parameter(&draft, "w", 1);
  }
  ps_draft_flag(&draft, "more", false);
  ps_draft_key(&draft, "at");
  uint64_t at_count = job.at_generation > 0 ? 1 + job.at_more : 0;
  ps_pack_list(&draft, at_count);
  for (uint64_t shard = 0; shard < at_count; shard++) {
    ps_pack_map(&draft, 2);
    ps_pack_text(&draft, "generation", 10);
    ps_pack_whole(&draft, job.at_generation);
    ps_pack_text(&draft, "seq", 3);
    ps_pack_whole(&draft, job.at_seq + shard);
  }
  draft_after(delay_ms, message->reply, &draft);
}

void declared_after(int64_t delay_ms, const struct published *message) {
  struct ps_draft draft;
  struct ps_value declared;
  struct ps_value entry;
  struct ps_value name;
  const uint8_t *at = NULL;
  ps_draft_begin(&draft);
  EXPECT(ps_map_find(&message->message.fields, "parameters", &declared));
  ps_draft_key(&draft, "parameters");
  ps_pack_list(&draft, declared.count);
  while (ps_list_next(&declared, &at, &entry)) {
    EXPECT(ps_map_find(&entry, "name", &name));
    pack_parameter(&draft, name.content, name.content_bytes);
  }
  draft_after(delay_ms, message->reply, &draft);
}

void created_after(int64_t delay_ms, const struct published *message) {
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_flag(&draft, "selected", true);
  ps_draft_text(&draft, "state", "initializing");
  ps_draft_whole(&draft, "epoch", job.epoch);
  ps_draft_text(&draft, "by", "t");
  ps_draft_key(&draft, "parameters");
  ps_pack_list(&draft, 1);
  pack_parameter(&draft, "w", 1);
  draft_after(delay_ms, message->reply, &draft);
}

static void begun_after(int64_t delay_ms, const struct published *message) {
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_flag(&draft, "selected", true);
  ps_draft_text(&draft, "state", "initializing");
  ps_draft_whole(&draft, "epoch", 2);
  ps_draft_text(&draft, "by", "t");
  draft_after(delay_ms, message->reply, &draft);
}

bool serve(const struct published *message) {
  if (strstr(message->subject, ".lifecycle.") == NULL) return false;
  if (is_to(message, "join")) {
    join_after(1, message);
  } else if (is_to(message, "status")) {
    status_after(1, message);
  } else if (is_to(message, "begin")) {
    begun_after(1, message);
  } else {
    struct ps_draft draft;
    ps_draft_begin(&draft);
    ps_draft_whole(&draft, "revision", 1);
    draft_after(1, message->reply, &draft);
  }
  return true;
}

/* Calls of the client. */

pserver_status push(pserver_client *client, int64_t timeout_ms) {
  float *ones = malloc(2 * job.blocks * sizeof(float));
  for (size_t i = 0; i < 2 * job.blocks; i++) ones[i] = (float)i;
  pserver_tensor value = {
      PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, ones, 2 * job.blocks * sizeof(float)};
  pserver_status status = pserver_push(client, "w", &value, 1, 1, PSERVER_AS_IS, timeout_ms);
  free(ones);
  return status;
}

pserver_status send_stored(pserver_client *client, int64_t timeout_ms) {
  float values[2] = {1, 2};
  pserver_tensor value = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, values, sizeof values};
  pserver_gradient grad = {"w", value, NULL, 0};
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = true;
  options.learning_rate = 1;
  options.stored_is_enough = true;
  return pserver_send_grads(client, &grad, 1, &options, timeout_ms);
}

pserver_status get(pserver_client *client, int64_t timeout_ms) {
  const char *name = "w";
  pserver_tensor got = {0};
  pserver_status status = pserver_get(client, &name, &got, 1, PSERVER_AS_IS, timeout_ms);
  pserver_tensor_release(&got);
  return status;
}
