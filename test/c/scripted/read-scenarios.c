/* Batched reads: which blocks are requested together, and how chunks of answers are handled. */
#include <math.h>
#include <string.h>

#include "scripted.h"

#define TIMEOUT_MS 10000
#define PARAMETERS 4
#define PS_VALUE_BYTES 8

/** A chunk of an answer: `count` entries that begin with `from`, of version 5 and position 1, 9. */
struct chunk {
  uint64_t from;
  uint64_t count;
  bool more;
  /** The version of each entry; NULL: 5. */
  const double *versions;
  uint64_t generation;
  /** Bytes that are missing from its end. */
  size_t lacking;
  /** The number of entries that it claims to have; 0: as many as it has. */
  uint64_t claimed;
};

static const char *const names[PARAMETERS] = {"a", "b", "c", "d"};
static float values[PARAMETERS][2];

/** The values of entry i are i and 7. */
static void chunk_after(int64_t delay_ms, const struct published *read, struct chunk chunk) {
  uint8_t data[64 * 2 * PS_VALUE_BYTES];
  uint8_t *next = data;
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "from", chunk.from);
  ps_draft_flag(&draft, "more", chunk.more);
  ps_draft_whole(&draft, "generation", chunk.generation == 0 ? 1 : chunk.generation);
  ps_draft_whole(&draft, "seq", 9);
  ps_draft_whole(&draft, "entries", chunk.claimed == 0 ? chunk.count : chunk.claimed);
  for (uint64_t i = 0; i < chunk.count; i++) {
    ps_put_float64(&next, chunk.versions == NULL ? 5 : chunk.versions[i]);
  }
  for (uint64_t i = 0; i < chunk.count; i++) {
    float value[2] = {(float)(chunk.from + i), 7};
    if (chunk.versions != NULL && chunk.versions[i] == 0) continue;
    memcpy(next, value, sizeof value);
    next += sizeof value;
  }
  EXPECT_OK(ps_draft_end_and_append(&draft, data, (size_t)(next - data) - chunk.lacking));
  bytes_after(delay_ms, read->reply, draft.buffer.data, draft.buffer.size);
  ps_draft_release(&draft);
}

/** Serves a job; returns its client. */
static pserver_client *began(take_message take) {
  begin(take);
  memset(values, 0, sizeof values);
  return connected(0);
}

static pserver_status get_all(pserver_client *client, size_t count) {
  pserver_tensor tensors[PARAMETERS] = {0};
  for (size_t i = 0; i < count; i++) {
    tensors[i] = (pserver_tensor){.data = values[i], .bytes = PS_VALUE_BYTES, .dtype = PSERVER_FLOAT32};
  }
  return pserver_get(client, names, tensors, count, PSERVER_AS_IS, TIMEOUT_MS);
}

/** Whether the first `count` parameters have the values of entries of these numbers. */
static bool have_values(size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (values[i][0] != (float)i || values[i][1] != 7) return false;
  }
  return true;
}

/** The first entry that a batched read asks for. */
static uint64_t from_of(size_t read) {
  uint64_t from = 0;
  ps_map_whole(&to("read", read)->message.fields, "from", &from);
  return from;
}

static void answer_reads(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "read")) chunk_after(1, message, (struct chunk){.count = PARAMETERS, .generation = 2});
}

static void reads_together(void) {
  pserver_client *client = began(answer_reads);
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(have_values(PARAMETERS) && count_to("read") == 1 && count_to("pull") == 0);
  EXPECT(number_in(to("read", 0), "entries") == PARAMETERS);
  for (size_t i = 0; i < PARAMETERS; i++) {
    EXPECT(uint32_in(to("read", 0), 0, i) == first_number(names[i], 1, 2));
  }
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(number_in(to("read", 1), "generation") == 2 && number_in(to("read", 1), "seq") == 9);
  closed(client);
}

static void lose_first(const struct published *message) {
  if (serve(message)) return;
  if (count_to("read") == 1) {
    chunk_after(1, message, (struct chunk){.from = 1, .count = 2, .more = true});
    chunk_after(2, message, (struct chunk){.from = 3, .count = 1});
  } else {
    chunk_after(1, message, (struct chunk){.from = 0, .count = 3, .more = true});
  }
}

static void asks_for_a_lost_first_chunk(void) {
  pserver_client *client = began(lose_first);
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(have_values(PARAMETERS) && count_to("read") == 2 && from_of(1) == 0);
  EXPECT(strcmp(to("read", 0)->reply, to("read", 1)->reply) == 0);
  closed(client);
}

static void lose_middle(const struct published *message) {
  if (serve(message)) return;
  if (count_to("read") == 1) {
    chunk_after(1, message, (struct chunk){.from = 0, .count = 1, .more = true});
    chunk_after(2, message, (struct chunk){.from = 3, .count = 1});
  } else {
    chunk_after(1, message, (struct chunk){.from = 1, .count = 3});
  }
}

static void asks_for_a_lost_middle_chunk(void) {
  pserver_client *client = began(lose_middle);
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(have_values(PARAMETERS) && count_to("read") == 2 && from_of(1) == 1);
  EXPECT(to("read", 1)->at_ms - to("read", 0)->at_ms < 500);
  closed(client);
}

/** The reply always ends after the first entry, until the third request. */
static void end_early(const struct published *message) {
  if (serve(message)) return;
  bool is_third = count_to("read") == 3;
  chunk_after(1, message, (struct chunk){.from = is_third, .count = is_third ? PARAMETERS - 1 : 1});
}

static void asks_at_once_only_with_progress(void) {
  pserver_client *client = began(end_early);
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(have_values(PARAMETERS) && count_to("read") == 3 && from_of(1) == 1 && from_of(2) == 1);
  EXPECT(to("read", 1)->at_ms - to("read", 0)->at_ms < 500);
  EXPECT(to("read", 2)->at_ms - to("read", 1)->at_ms > 1000);
  closed(client);
}

static void answer_slowly(const struct published *message) {
  if (serve(message)) return;
  for (uint64_t i = 0; i < PARAMETERS; i++) {
    chunk_after(900 * ((int64_t)i + 1), message,
                (struct chunk){.from = i, .count = 1, .more = i + 1 < PARAMETERS});
  }
}

static void waits_while_chunks_come(void) {
  pserver_client *client = began(answer_slowly);
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(have_values(PARAMETERS) && count_to("read") == 1);
  closed(client);
}

static void go_on_after_error(const struct published *message) {
  if (serve(message)) return;
  if (count_to("read") == 1) {
    chunk_after(1, message, (struct chunk){.from = 0, .count = 1, .more = true});
    error_after(2, message, "STALE_EPOCH", 0);
  } else {
    chunk_after(1, message, (struct chunk){.from = 0, .count = PARAMETERS - 1});
  }
}

/** The parameters of missing blocks are looked up in one request, and only these blocks are requested. */
static void looks_up_what_is_missing(void) {
  struct ps_value asked;
  pserver_client *client = began(go_on_after_error);
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(count_to("status") == 2 && count_to("read") == 2 && from_of(1) == 0);
  EXPECT(ps_map_find(&to("status", 1)->message.fields, "names", &asked));
  EXPECT(asked.count == PARAMETERS - 1);
  EXPECT(strcmp(to("read", 0)->reply, to("read", 1)->reply) != 0);
  EXPECT(values[0][0] == 0 && values[1][0] == 0 && values[3][0] == 2);
  closed(client);
}

static void initialize_anew(const struct published *message) {
  if (count_to("read") == 1) job.epoch = 3;
  if (serve(message)) return;
  if (count_to("read") == 1) {
    chunk_after(1, message, (struct chunk){.from = 0, .count = 1, .more = true});
    error_after(2, message, "STALE_EPOCH", 0);
  } else {
    chunk_after(1, message, (struct chunk){.count = PARAMETERS - 1});
  }
}

/** Blocks that were read before are kept. */
static void reads_anew_what_was_initialized_anew(void) {
  pserver_client *client = began(initialize_anew);
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(count_to("read") == 2 && count_to("pull") == 0);
  for (size_t i = 1; i < PARAMETERS; i++) {
    EXPECT(uint32_in(to("read", 0), 0, i) == first_number(names[i], 1, 2));
    EXPECT(uint32_in(to("read", 1), 0, i - 1) == first_number(names[i], 1, 3));
  }
  EXPECT(values[0][0] == 0 && values[0][1] == 7);
  EXPECT(values[1][0] == 0 && values[2][0] == 1 && values[3][0] == 2 && values[3][1] == 7);
  closed(client);
}

/** The shard has lost the blocks, and no host knows it yet. */
static void lose_blocks(const struct published *message) {
  if (serve(message)) return;
  if (message->at_ms - to("read", 0)->at_ms < 3000) error_after(1, message, "STALE_EPOCH", 0);
  else chunk_after(1, message, (struct chunk){.count = PARAMETERS});
}

static void asks_with_pauses_for_what_is_lost(void) {
  pserver_client *client = began(lose_blocks);
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(have_values(PARAMETERS) && count_to("read") > 3 && count_to("read") < 20);
  EXPECT(count_to("status") == count_to("read"));
  EXPECT(to("read", 1)->at_ms - to("read", 0)->at_ms < 200);
  closed(client);
}

static void initialize_part_anew(const struct published *message) {
  if (count_to("pull") == 1) job.epoch = 3;
  if (serve(message)) return;
  if (count_to("pull") == 1) error_after(1, message, "STALE_EPOCH", 0);
  else pulled_after(1, message, 1, 9);
}

static void reads_a_part_anew(void) {
  const int64_t row[] = {0};
  const int64_t columns[] = {1, 0};
  const pserver_indices indices[] = {{row, 1}, {columns, 2}};
  pserver_tensor part = {0};
  pserver_client *client = began(initialize_part_anew);
  EXPECT_OK(pserver_pull_part(client, "w", indices, 2, &part, TIMEOUT_MS));
  EXPECT(count_to("pull") == 2 && number_in(to("pull", 1), "epoch") == 3);
  EXPECT(part.bytes == PS_VALUE_BYTES);
  pserver_tensor_release(&part);
  closed(client);
}

/** Of "a" to "d", the last two are initialized anew when only the first is read. */
static void initialize_some_anew(const struct published *message) {
  if (count_to("read") == 1) job.anew_from = "c";
  if (serve(message)) return;
  if (is_to(message, "pull")) {
    pulled_after(1, message, 1, 9);
  } else if (count_to("read") == 1) {
    chunk_after(1, message, (struct chunk){.from = 0, .count = 1, .more = true});
    error_after(2, message, "STALE_EPOCH", 0);
  } else {
    chunk_after(1, message, (struct chunk){.count = 2});
  }
}

static void reads_on_what_was_not_initialized_anew(void) {
  pserver_tensor tensors[PARAMETERS] = {0};
  pserver_known known[PARAMETERS] = {0};
  pserver_origins *origins = NULL;
  pserver_client *client = began(initialize_some_anew);
  EXPECT_OK(pserver_get_known(client, names, tensors, PARAMETERS, known, &origins, NULL, TIMEOUT_MS));
  EXPECT(count_to("status") == 2 && count_to("pull") == 1 && count_to("read") == 2);
  const float expected[PARAMETERS][2] = {{0, 7}, {0, 0}, {0, 7}, {1, 7}};
  for (size_t i = 0; i < PARAMETERS; i++) {
    EXPECT(memcmp(tensors[i].data, expected[i], PS_VALUE_BYTES) == 0);
    pserver_tensor_release(&tensors[i]);
  }
  pserver_origins_free(origins);
  closed(client);
}

static void replace(const struct published *message) {
  if (serve(message)) return;
  if (count_to("read") == 1) {
    chunk_after(1, message, (struct chunk){.count = 1, .more = true});
    error_after(2, message, "JOURNAL_REPLACED", 4);
  } else {
    chunk_after(1, message, (struct chunk){.from = 1, .count = PARAMETERS - 1, .generation = 4});
  }
}

static void goes_on_in_the_new_journal(void) {
  pserver_client *client = began(replace);
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(have_values(PARAMETERS) && count_to("read") == 2 && from_of(1) == 1);
  EXPECT(number_in(to("read", 1), "generation") == 4 && number_in(to("read", 1), "seq") == 0);
  closed(client);
}

static void be_busy(const struct published *message) {
  if (serve(message)) return;
  if (message->at_ms - to("read", 0)->at_ms < 3000) error_after(1, message, "BUSY", 0);
  else chunk_after(1, message, (struct chunk){.count = PARAMETERS});
}

static void asks_again_while_busy(void) {
  pserver_client *client = began(be_busy);
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(have_values(PARAMETERS) && count_to("status") == 1 && count_to("pull") == 0);
  closed(client);
}

/* Requests of three calls, each larger than the window: two to shard 0, and one to shard 1. */

#define CALLS 3
static struct ps_ask asks[CALLS];
static struct ps_ask_group groups[CALLS];
static unsigned answered[CALLS];
static unsigned answers;

static pserver_status write_number(struct ps_ask *ask, struct ps_draft *draft) {
  ps_draft_whole(draft, "call", (uint64_t)(ask - asks));
  return ps_draft_end(draft);
}

static pserver_status note_answer(struct ps_ask *ask, const struct ps_message *message) {
  (void)message;
  answered[answers++] = (unsigned)(ask - asks);
  return PSERVER_OK;
}

static void call_over(struct ps_ask_group *group, pserver_status status) {
  (void)group;
  EXPECT_OK(status);
}

/** Shard 0 is busy until shard 1 has been asked. */
static void refuse_one_shard(const struct published *message) {
  if (serve(message)) return;
  static bool is_other_asked;
  if (count_to("read") == 1) is_other_asked = false;
  is_other_asked = is_other_asked || strstr(message->subject, ".shard.1.") != NULL;
  if (is_other_asked) chunk_after(1, message, (struct chunk){.count = PARAMETERS});
  else error_after(1, message, "BUSY", 0);
}

static void passes_a_shard_that_refuses(void) {
  static const unsigned shards[CALLS] = {0, 0, 1};
  pserver_client *client = began(refuse_one_shard);
  struct ps_client *inside = broker.client;
  answers = 0;
  for (size_t i = 0; i < CALLS; i++) {
    asks[i] = (struct ps_ask){
        .write = write_number, .read = note_answer, .window_bytes = SIZE_MAX / (2 * CALLS)};
    ps_ask_shard(&asks[i], &inside->identity, shards[i], "read");
    groups[i] = (struct ps_ask_group){
        .asks = &asks[i], .count = 1, .ends_at_ms = ps_now_ms() + TIMEOUT_MS, .over = call_over};
    ps_ask_group_begin(&inside->requests, &groups[i]);
  }
  EXPECT_OK(get_all(client, PARAMETERS));
  EXPECT(answers == CALLS && answered[0] == 2 && answered[1] == 0 && answered[2] == 1);
  closed(client);
}

/** The shard has an owner after two seconds. */
static void come_late(const struct published *message) {
  if (serve(message)) return;
  if (message->at_ms - to("read", 0)->at_ms < 2000) nobody_after(1, message);
  else chunk_after(1, message, (struct chunk){.count = PARAMETERS});
}

static void waits_for_an_owner(void) {
  pserver_client *client = began(come_late);
  EXPECT_OK(get_all(client, PARAMETERS));
  const struct published *last = to("read", count_to("read") - 1);
  EXPECT(last->at_ms - to("read", 0)->at_ms >= 2000);
  EXPECT(have_values(PARAMETERS) && count_to("pull") == 0 && count_to("status") == 1);
  closed(client);
}

static void deny(void) {
  free(broker.error);
  broker.error = strdup("Permissions Violation for Publish to \"ps.mnist.shard.0.t.read\"");
  broker.on_error(CONNECTION, SUBSCRIPTION, NATS_NOT_PERMITTED, broker.connection);
}

static void deny_reads(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "read")) act_after(1, deny);
}

static void fails_if_denied(void) {
  pserver_client *client = began(deny_reads);
  EXPECT_ERROR(DENIED, get_all(client, PARAMETERS));
  EXPECT(count_to("read") == 1 && count_to("pull") == 0);
  closed(client);
}

static struct chunk wrong;

static void answer_wrongly(const struct published *message) {
  if (serve(message)) return;
  chunk_after(1, message, wrong);
  chunk_after(2, message, (struct chunk){.count = PARAMETERS});
}

/** A chunk that does not fit the request fails the call, and none of its values is used. */
static void only_serve(const struct published *message) { serve(message); }

static void waits_while_unread(void) {
  begin(only_serve);
  broker.holds_pings = true;
  pserver_client *client = connected(0);
  EXPECT_ERROR(TIMEOUT, get(client, 20000));
  EXPECT(count_to("pull") == 1);
  answer_pings();
  EXPECT_ERROR(TIMEOUT, get(client, 5000));
  EXPECT(count_to("pull") == 4);
  closed(client);
}

static void refuses_chunks_that_do_not_fit(void) {
  static const double no_versions[PARAMETERS] = {5, 5, 5, 0};
  static const double lies[][PARAMETERS] = {
      {5, 5, 5.5, 5}, {-1, 5, 5, 5}, {5, 5, 5, 9007199254740992.0}, {5, NAN, 5, 5}, {INFINITY, 5, 5, 5}};
  const struct chunk chunks[] = {
      {.from = PARAMETERS, .count = 1},
      {.from = 5000, .count = 1},
      {.from = 1, .count = PARAMETERS},
      {.from = 0, .count = 0},
      {.from = 0, .count = PARAMETERS, .versions = no_versions},
      {.from = 0, .count = PARAMETERS, .lacking = 1},
      {.from = 0, .count = PARAMETERS, .lacking = PS_VALUE_BYTES},
      /* Without values, and with too few versions. */
      {.from = 0, .count = PARAMETERS, .lacking = PARAMETERS * PS_VALUE_BYTES},
      {.from = 0, .count = PARAMETERS, .lacking = PARAMETERS * PS_VALUE_BYTES + 1},
      {.from = 0, .count = PARAMETERS, .claimed = PARAMETERS - 1},
      {.from = 0, .count = PARAMETERS, .claimed = 2 * PARAMETERS},
      {.from = 0, .count = PARAMETERS, .claimed = 4097},
      {.from = 0, .count = PARAMETERS, .claimed = 1ull << 53},
      {.from = 0, .count = PARAMETERS, .versions = lies[0]},
      {.from = 0, .count = PARAMETERS, .versions = lies[1]},
      {.from = 0, .count = PARAMETERS, .versions = lies[2]},
      {.from = 0, .count = PARAMETERS, .versions = lies[3]},
      {.from = 0, .count = PARAMETERS, .versions = lies[4]},
  };
  for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
    wrong = chunks[i];
    pserver_client *client = began(answer_wrongly);
    EXPECT_ERROR(BAD_MESSAGE, get_all(client, PARAMETERS));
    for (size_t j = 0; j < PARAMETERS; j++) EXPECT(values[j][1] == 0);
    closed(client);
  }
}

/* Values in groups. */

/** A reply to a pull of two elements. */
struct grouped_reply {
  pserver_encoding encoding;
  uint8_t bytes[8];
  size_t count;
  /** What is read; the call fails with BAD_MESSAGE if it is all zeros. */
  float expected[2];
};

static struct grouped_reply grouped;

static void answer_in_groups(const struct published *message) {
  if (serve(message)) return;
  EXPECT(is_to(message, "pull"));
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "epoch", job.epoch);
  ps_draft_text(&draft, "dtype", "float32");
  ps_draft_text(&draft, "encoding", ps_encoding_name(grouped.encoding));
  ps_draft_whole(&draft, "generation", 1);
  ps_draft_whole(&draft, "seq", 1);
  ps_draft_whole(&draft, "version", 1);
  EXPECT_OK(ps_draft_end_and_append(&draft, grouped.bytes, grouped.count));
  bytes_after(1, message->reply, draft.buffer.data, draft.buffer.size);
  ps_draft_release(&draft);
}

static void reads_groups(void) {
  static const struct grouped_reply replies[] = {
      {PSERVER_ENCODING_INT8, {0, 0, 0, 0x3f, 0x81, 2}, 6, {-63.5f, 1}},
      {PSERVER_ENCODING_E3M0, {0, 0, 0, 0x3f, 0xf6}, 5, {0.25f, -0.5f}},
      {PSERVER_ENCODING_INT8, {0, 0, 0x80, 0x7f, 0, 0}, 6, {INFINITY, INFINITY}},
      /* A code and a scale that no host writes; too few bytes, and too many. */
      {PSERVER_ENCODING_INT8, {0, 0, 0, 0x3f, 0x80, 2}, 6, {0}},
      {PSERVER_ENCODING_E3M0, {0, 0, 0, 0x3f, 0x81}, 5, {0}},
      {PSERVER_ENCODING_E3M0, {0, 0, 0, 0xbf, 0x11}, 5, {0}},
      {PSERVER_ENCODING_INT8, {0, 0, 0, 0x3f, 0x81}, 5, {0}},
      {PSERVER_ENCODING_E3M0, {0, 0, 0, 0x3f, 0xf6, 0}, 6, {0}},
  };
  for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
    grouped = replies[i];
    begin(answer_in_groups);
    pserver_client *client = connected(0);
    const char *name = "w";
    pserver_tensor got = {0};
    pserver_status status = pserver_get(client, &name, &got, 1, grouped.encoding, 3000);
    bool is_refused = grouped.expected[0] == 0;
    EXPECT(status == (is_refused ? PSERVER_ERR_BAD_MESSAGE : PSERVER_OK));
    EXPECT((got.data == NULL) == is_refused);
    EXPECT(is_refused || memcmp(got.data, grouped.expected, sizeof grouped.expected) == 0);
    pserver_tensor_release(&got);
    closed(client);
  }
}

/* The known values. */

static double versions[PARAMETERS];
static uint64_t generation;

static void answer_versions(const struct published *message) {
  if (serve(message)) return;
  chunk_after(1, message,
              (struct chunk){.count = PARAMETERS, .versions = versions, .generation = generation});
}

/** Returns the known version that a request carries for an entry; 0 if none. */
static uint64_t told_version(size_t read, size_t entry) {
  struct ps_value have;
  double told;
  const struct ps_message *message = &to("read", read)->message;
  if (!ps_map_find(&message->fields, "have", &have)) return 0;
  EXPECT(have.boolean && message->data_bytes == PARAMETERS * (sizeof(uint32_t) + sizeof told));
  memcpy(&told, message->data + PARAMETERS * sizeof(uint32_t) + entry * sizeof told, sizeof told);
  return (uint64_t)told;
}

/** Reads everything, and then what has changed: only entry 2, if the journal is the same. */
static pserver_origins *read_twice(pserver_client *client, pserver_tensor *first,
                                   pserver_tensor *second) {
  pserver_origins *before = NULL;
  pserver_origins *after = NULL;
  pserver_known known[PARAMETERS];
  generation = 1;
  for (size_t i = 0; i < PARAMETERS; i++) versions[i] = 5 + (double)i;
  EXPECT_OK(pserver_get_known(client, names, first, PARAMETERS, NULL, &before, NULL, TIMEOUT_MS));
  for (size_t i = 0; i < PARAMETERS; i++) known[i] = (pserver_known){first[i].data, before, i};
  memset(versions, 0, sizeof versions);
  versions[2] = 90;
  ((float *)first[1].data)[0] = -1;
  EXPECT_OK(pserver_get_known(client, names, second, PARAMETERS, known, &after, NULL, TIMEOUT_MS));
  pserver_origins_free(before);
  return after;
}

static void reads_changes_only(void) {
  pserver_client *client = began(answer_versions);
  pserver_tensor first[PARAMETERS] = {0};
  pserver_tensor second[PARAMETERS] = {0};
  second[1] =
      (pserver_tensor){.data = values[1], .bytes = PS_VALUE_BYTES, .dtype = PSERVER_FLOAT32};
  pserver_origins *origins = read_twice(client, first, second);
  for (size_t i = 0; i < PARAMETERS; i++) EXPECT(told_version(1, i) == 5 + i);
  /* Unchanged values stay where they are, or are copied to memory of the caller. */
  EXPECT(second[0].data == NULL && second[3].data == NULL && second[0].bytes == PS_VALUE_BYTES);
  EXPECT(values[1][0] == -1 && values[1][1] == 7);
  EXPECT(second[2].data != NULL && ((float *)second[2].data)[0] == 2);
  /* The next read carries the versions of both. */
  pserver_known known[PARAMETERS];
  pserver_origins *last = NULL;
  uint64_t told[PARAMETERS];
  pserver_read_options options;
  pserver_read_options_init(&options);
  options.versions = told;
  for (size_t i = 0; i < PARAMETERS; i++) known[i] = (pserver_known){first[i].data, origins, i};
  memset(versions, 0, sizeof versions);
  pserver_tensor third[PARAMETERS] = {0};
  EXPECT_OK(pserver_get_known(client, names, third, PARAMETERS, known, &last, &options, TIMEOUT_MS));
  EXPECT(told_version(2, 0) == 5 && told_version(2, 2) == 90);
  EXPECT(told[0] == 5 && told[2] == 90 && third[2].data == NULL);
  for (size_t i = 0; i < PARAMETERS; i++) pserver_tensor_release(&first[i]);
  pserver_tensor_release(&second[2]);
  pserver_origins_free(origins);
  closed(client);
  /* Origins may outlive the client. */
  pserver_origins_free(last);
}

/** Known versions of another journal, or of another name, are not used. */
static void forgets_what_means_nothing(void) {
  pserver_client *client = began(answer_versions);
  pserver_tensor first[PARAMETERS] = {0};
  pserver_tensor all[PARAMETERS] = {0};
  pserver_origins *origins = NULL;
  pserver_origins *others = NULL;
  pserver_known known[PARAMETERS];
  generation = 1;
  for (size_t i = 0; i < PARAMETERS; i++) versions[i] = 5;
  EXPECT_OK(pserver_get_known(client, names, first, PARAMETERS, NULL, &origins, NULL, TIMEOUT_MS));
  for (size_t i = 0; i < PARAMETERS; i++) {
    known[i] = (pserver_known){first[i].data, origins, (i + 1) % PARAMETERS};
  }
  EXPECT_OK(pserver_get_known(client, names, all, PARAMETERS, known, &others, NULL, TIMEOUT_MS));
  EXPECT(told_version(1, 0) == 0 && told_version(1, 3) == 0);
  pserver_origins_free(others);
  /* The answer is of the next generation; later requests name it. */
  generation = 2;
  EXPECT_OK(get_all(client, PARAMETERS));
  for (size_t i = 0; i < PARAMETERS; i++) {
    known[i].index = i;
    pserver_tensor_release(&all[i]);
  }
  EXPECT_OK(pserver_get_known(client, names, all, PARAMETERS, known, &others, NULL, TIMEOUT_MS));
  EXPECT(told_version(3, 0) == 0);
  known[3].index = PARAMETERS;
  pserver_origins *none = NULL;
  EXPECT_ERROR(BAD_VALUE, pserver_get_known(client, names, all, PARAMETERS, known, &none, NULL, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_get_known(client, names, all, PARAMETERS, known, NULL, NULL, -1));
  EXPECT(none == NULL);
  for (size_t i = 0; i < PARAMETERS; i++) {
    pserver_tensor_release(&all[i]);
    pserver_tensor_release(&first[i]);
  }
  pserver_origins_free(origins);
  pserver_origins_free(others);
  closed(client);
}

const struct scenario read_scenarios[] = {
    {"requests are those that the TypeScript client sends", asks_as_typescript},
    {"small blocks of a shard are asked for together, at the position that was seen", reads_together},
    {"a lost first chunk is asked for again, and what has come counts once", asks_for_a_lost_first_chunk},
    {"a lost middle chunk is asked for as soon as the last has come", asks_for_a_lost_middle_chunk},
    {"an answer that ends early is asked for again at once only while it makes progress",
     asks_at_once_only_with_progress},
    {"a request is not repeated while its chunks come", waits_while_chunks_come},
    {"a request is not repeated while its answer may be on the way", waits_while_unread},
    {"after STALE_EPOCH the parameters of what is missing are looked up", looks_up_what_is_missing},
    {"what a shard says to be stale and hosts do not is asked for with growing pauses",
     asks_with_pauses_for_what_is_lost},
    {"what was initialized anew is read anew, and nothing else", reads_anew_what_was_initialized_anew},
    {"a part of what was initialized anew is read anew", reads_a_part_anew},
    {"what was not initialized anew is read on", reads_on_what_was_not_initialized_anew},
    {"after JOURNAL_REPLACED what is missing is asked for in the new journal", goes_on_in_the_new_journal},
    {"a busy owner is asked again", asks_again_while_busy},
    {"requests to a shard that refuses keep no others waiting, and wait for each other",
     passes_a_shard_that_refuses},
    {"a batched read without an owner waits for one", waits_for_an_owner},
    {"a batched read that permissions forbid fails with DENIED", fails_if_denied},
    {"a chunk that does not fit its request fails the call, and nothing of it is given",
     refuses_chunks_that_do_not_fit},
    {"values in int8 and e3m0 are decoded, unless no host writes such", reads_groups},
    {"what has not changed is not asked for, and stays where it is", reads_changes_only},
    {"what was read of another journal or parameter says nothing", forgets_what_means_nothing},
    {NULL, NULL}};
