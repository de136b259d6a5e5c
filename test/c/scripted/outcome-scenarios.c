/* Outcomes: those that owners send by themselves, and requests for the others. */
#include "scripted.h"

/** Returns the numbers that a request asks for. */
static size_t numbers_in(const struct published *question, uint64_t numbers[8]) {
  struct ps_value list;
  struct ps_value number;
  const uint8_t *at = NULL;
  size_t count = 0;
  EXPECT(ps_map_find(&question->message.fields, "numbers", &list) && list.count <= 8);
  while (ps_list_next(&list, &at, &number)) EXPECT(ps_value_whole(&number, &numbers[count++]));
  return count;
}

static void expect_question(size_t index, uint64_t generation, uint64_t seq, size_t count,
                            const uint64_t *expected) {
  const struct published *question = to("outcome", index);
  uint64_t numbers[8];
  EXPECT(number_in(question, "session") == 41);
  EXPECT(number_in(question, "generation") == generation && number_in(question, "seq") == seq);
  EXPECT(numbers_in(question, numbers) == count);
  for (size_t i = 0; i < count; i++) EXPECT(numbers[i] == expected[i]);
}

static void answer_the_third_question(const struct published *message) {
  if (serve(message)) return;
  if (is_record(message)) stored_after(200, message, 1, 7);
  else if (count_to("outcome") == 3) outcome_after(1, message, (struct outcome){41, 0, 1, 1, 7, NULL});
}

static void asks(void) {
  static const int64_t waits_ms[] = {1000, 1000};
  static const uint64_t number[] = {1};
  begin(answer_the_third_question);
  pserver_client *client = connected(0);
  EXPECT_OK(push(client, 30000));
  int64_t waited_ms = to("outcome", 0)->at_ms - to(NULL, 0)->at_ms;
  EXPECT(waited_ms >= 1200 && waited_ms < 1360);
  expect_gaps("outcome", 2, waits_ms);
  for (size_t i = 0; i < 3; i++) expect_question(i, 1, 7, 1, number);
  EXPECT(count_to("outcome") == 3);
  closed(client);
}

/** Stored at 11, 12, 10 and, after 700 ms, 13; number 2 gets its answer by itself. */
static void store_out_of_order(const struct published *message) {
  static const uint64_t seqs[] = {11, 12, 10, 13};
  if (serve(message) || !is_record(message)) return;
  uint64_t n = number_in(message, "n");
  stored_after(n == 4 ? 700 : (int64_t)(100 * (n - 1) / 2), message, 1, seqs[n - 1]);
  if (n == 2) applied_after(100, message, 12);
}

static void asks_for_what_is_due(void) {
  static const uint64_t first[] = {1, 3};
  static const uint64_t second[] = {1, 3, 4};
  begin(store_out_of_order);
  job.shards = 1;
  job.blocks = 4;
  pserver_client *client = connected_singly(0);
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 2500));
  /* Number 3, stored 100 ms later, is asked for along with 1; number 4 is not yet. */
  expect_question(0, 1, 11, 2, first);
  expect_question(1, 1, 13, 3, second);
  closed(client);
}

static void answer_others(const struct published *message) {
  if (serve(message)) return;
  if (is_record(message)) {
    stored_after(1, message, 1, 7);
    /* Outcomes of another session and of another number, a malformed message, and one to another subject. */
    outcome_after(10, NULL, (struct outcome){40, 0, 1, 1, 7, NULL});
    outcome_after(10, NULL, (struct outcome){42, 0, 1, 1, 7, "STALE_EPOCH"});
    outcome_after(10, NULL, (struct outcome){41, 0, 1, 2, 7, NULL});
    outcome_after(10, NULL, (struct outcome){41, 1, 1, 1, 7, NULL});
    outcome_after(10, NULL, (struct outcome){41, 256, 1, 1, 7, NULL});
    bytes_after(10, "_INBOX_mnist.t.life.applied", "?", 1);
    error_after(10, message, "BAD_VALUE", 0);
  } else if (count_to("outcome") == 1) {
    outcome_after(10, message, (struct outcome){40, 0, 1, 1, 7, NULL});
    bytes_after(20, message->reply, "?", 1);
  } else {
    outcome_after(10, message, (struct outcome){41, 0, 1, 1, 7, "STALE_EPOCH"});
  }
}

static void ignores_others(void) {
  begin(answer_others);
  pserver_client *client = connected(0);
  EXPECT_ERROR(STALE_EPOCH, push(client, 30000));
  EXPECT(count_to("outcome") == 2);
  closed(client);
}

static void answer_at_once(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  applied_after(10, message, 7);
  stored_after(5000, message, 1, 7);
}

static void answer_before_the_ack(void) {
  begin(answer_at_once);
  pserver_client *client = connected(0);
  EXPECT_OK(push(client, 30000));
  EXPECT(time_ms() < 100);
  EXPECT_OK(push(client, 30000));
  EXPECT(count_to(NULL) == 2 && number_in(to(NULL, 1), "done") == 1);
  closed(client);
}

/** The request finds nobody, then a host that has just lost the shard, then gets no answer, then the
 * outcome. */
static void have_no_owner(const struct published *message) {
  if (serve(message)) return;
  if (is_record(message)) {
    stored_after(1, message, 1, 7);
    return;
  }
  size_t questions = count_to("outcome");
  if (questions == 1) nobody_after(1, message);
  if (questions == 2) error_after(1, message, "NOT_OWNER", 0);
  if (questions == 4) outcome_after(1, message, (struct outcome){41, 0, 1, 1, 7, NULL});
}

static void asks_again(void) {
  static const int64_t waits_ms[] = {200, 200, 1000};
  begin(have_no_owner);
  pserver_client *client = connected(0);
  EXPECT_OK(push(client, 30000));
  expect_gaps("outcome", 3, waits_ms);
  closed(client);
}

/** Number 2 was stored in a journal that has been replaced, number 1, repeated, in the present one. */
static void replace_the_journal(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "pull")) {
    pulled_after(1, message, 2, 9);
  } else if (is_record(message)) {
    uint64_t n = number_in(message, "n");
    stored_after(n == 1 ? 2 : 1, message, 3 - n, n == 1 ? 3 : 50);
  } else if (number_in(message, "generation") == 1) {
    error_after(1, message, "JOURNAL_REPLACED", 2);
  } else {
    outcome_after(1, message, (struct outcome){41, 0, 2, 1, 3, NULL});
  }
}

static void replaced(void) {
  static const uint64_t old[] = {2};
  static const uint64_t present[] = {1};
  begin(replace_the_journal);
  job.shards = 1;
  job.blocks = 2;
  pserver_client *client = connected_singly(0);
  EXPECT_ERROR(JOURNAL_REPLACED, push(client, 30000));
  EXPECT(count_to("outcome") == 2);
  expect_question(0, 1, 50, 1, old);
  expect_question(1, 2, 3, 1, present);
  EXPECT(count_to(NULL) == 2);
  closed(client);
}

/** Number 1 is stored; number 2 is refused until 3 s are over. The shard has stopped. */
static void stop_the_shard(const struct published *message) {
  if (serve(message)) return;
  if (!is_record(message)) {
    error_after(1, message, "JOURNAL_DAMAGED", 0);
  } else if (number_in(message, "n") == 1) {
    stored_after(1, message, 1, 7);
  } else if (message->at_ms < 3000) {
    refused_after(1, message, 10077, "bytes exceeded");
  } else {
    outcome_after(1, NULL, (struct outcome){41, 0, 1, 2, 8, NULL});
  }
}

static void stopped(void) {
  begin(stop_the_shard);
  job.shards = 1;
  job.blocks = 2;
  pserver_client *client = connected_singly(0);
  EXPECT_ERROR(JOURNAL_DAMAGED, push(client, 30000));
  /* A record that is not stored is not given up: a repaired shard can still apply it. */
  EXPECT(time_ms() >= 3000 && time_ms() < 5000);
  EXPECT(count_to("outcome") == 1);
  closed(client);
}

/** The generation that the error names. */
static uint64_t end_generation;

/** The journal ends at 7: number 1 is the last record of it, number 2 is lost. */
static void lose_the_end(const struct published *message) {
  if (serve(message)) return;
  if (is_record(message)) stored_after(1, message, 1, 6 + number_in(message, "n"));
  else if (count_to("outcome") > 1) outcome_after(1, message, (struct outcome){41, 0, 1, 1, 7, NULL});
  else error_at(1, message, "JOURNAL_LOST", (struct ps_position){end_generation, 7});
}

static void end_too_early(uint64_t generation) {
  static const uint64_t both[] = {1, 2};
  static const uint64_t first[] = {1};
  begin(lose_the_end);
  end_generation = generation;
  job.shards = 1;
  job.blocks = 2;
  pserver_client *client = connected_singly(0);
  EXPECT_ERROR(JOURNAL_LOST, push(client, 30000));
  EXPECT(count_to("outcome") == 2);
  expect_question(0, 1, 8, 2, both);
  expect_question(1, 1, 7, 1, first);
  closed(client);
}

static void ends_too_early(void) { end_too_early(1); }

/** An error without a generation is about the first one. */
static void ends_without_generation(void) { end_too_early(0); }

static const char *end_code;
static bool is_asked;
static bool is_repeated;

/** The record, its repeat, or the request for its outcome is answered by the end of the session. */
static void end_the_session(const struct published *message) {
  if (serve(message) || is_to(message, "pull")) return;
  bool is_old = number_in(message, "session") == 41;
  struct outcome end = {41, 0, 1, 1, 7, end_code};
  if (!is_old) {
    stored_after(1, message, 1, 8);
    applied_after(2, message, 8);
  } else if (!is_record(message)) {
    outcome_after(1, message, end);
  } else if (is_asked) {
    stored_after(1, message, 1, 7);
  } else if (!is_repeated || count_to(NULL) == 2) {
    outcome_after(1, NULL, end);
  }
}

static pserver_status ended_by(const char *code, bool asked, bool repeated) {
  end_code = code;
  is_asked = asked;
  is_repeated = repeated;
  begin(end_the_session);
  pserver_client *client = connected(0);
  pserver_status status = push(client, 30000);
  EXPECT(count_to(NULL) == 1u + repeated + (status == PSERVER_OK));
  EXPECT(get(client, 100) == (end_code[1] == 'U' ? PSERVER_ERR_SUPERSEDED : PSERVER_ERR_TIMEOUT));
  closed(client);
  return status;
}

static void session_ends(void) {
  /* A record is known not to be applied only by the answer to itself, if it was sent once. */
  EXPECT(ended_by("REJOIN", false, false) == PSERVER_OK);
  EXPECT(ended_by("REJOIN", false, true) == PSERVER_ERR_OUTCOME_UNKNOWN);
  EXPECT(ended_by("REJOIN", true, false) == PSERVER_ERR_OUTCOME_UNKNOWN);
  EXPECT(ended_by("SUPERSEDED", false, false) == PSERVER_ERR_SUPERSEDED);
  EXPECT(ended_by("SUPERSEDED", true, false) == PSERVER_ERR_SUPERSEDED);
  EXPECT(ended_by("SETTLED", false, false) == PSERVER_ERR_SETTLED);
}

static bool is_rejected;

static void reject(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  uint64_t n = number_in(message, "n");
  outcome_after(1, NULL, (struct outcome){41, 0, 1, n, n, is_rejected ? "STALE_EPOCH" : NULL});
}

static void rejections(void) {
  begin(reject);
  job.shards = 1;
  job.blocks = 10;
  is_rejected = true;
  pserver_client *client = connected_singly(8);
  EXPECT_ERROR(STALE_EPOCH, push(client, 30000));
  /* Updates that were waiting are not sent, and the parameter is looked up again. */
  EXPECT(count_to(NULL) == 1 && count_to("status") == 1);
  is_rejected = false;
  EXPECT_OK(push(client, 30000));
  EXPECT(count_to(NULL) == 11 && count_to("status") == 2);
  closed(client);
}

static void guard_each(const struct published *message) {
  static const char *const actions[] = {"clip", "set-aside", "set-aside"};
  if (serve(message) || !is_record(message)) return;
  uint64_t n = number_in(message, "n");
  stored_after(1, message, 1, n);
  guarded_after(2, message, n, actions[n - 1]);
  guarded_after(3, message, n, actions[n - 1]);
}

static void guarded(void) {
  pserver_client_stats stats = {.struct_size = sizeof stats};
  begin(guard_each);
  pserver_client *client = connected(0);
  for (int i = 0; i < 3; i++) EXPECT_OK(push(client, 3000));
  EXPECT_OK(pserver_stats(client, &stats));
  EXPECT(stats.clipped == 1 && stats.set_aside == 2);
  closed(client);
}

const struct scenario outcome_scenarios[] = {
    {"what a guard clips or sets aside is no error, and is counted once", guarded},
    {"an outcome is asked for 1 s after the PubAck, and then each second", asks},
    {"a question is for what is due in a shard, at the highest of their positions",
     asks_for_what_is_due},
    {"answers to other sessions, numbers and shards are ignored", ignores_others},
    {"an answer that comes before the PubAck settles its record", answer_before_the_ack},
    {"a question that nobody can answer yet is asked again after 200 ms", asks_again},
    {"what a replaced journal lost is told, and what the present one has is asked for", replaced},
    {"what a stopped shard has stored is given up at once, and nothing else", stopped},
    {"of a journal that ends too early only what lay behind its end is lost", ends_too_early},
    {"the end of a journal that names no generation is in the first", ends_without_generation},
    {"the end of a session is told from an outcome", session_ends},
    {"a rejection ends the call", rejections},
    {NULL, NULL}};
