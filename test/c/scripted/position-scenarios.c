/* Positions: those that pulls and finish carry. */
#include <string.h>

#include "scripted.h"

static uint64_t pull_generation;
static uint64_t pull_seq;

/** Pulls are answered at a position, records stored and applied at another. */
static void answer(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "pull")) pulled_after(1, message, pull_generation, pull_seq);
  if (!is_record(message)) return;
  stored_after(1, message, 1, 7);
  applied_after(2, message, 7);
}

/** Returns the position that the next pull carries; the pull is answered at another one. */
static void expect_pull(pserver_client *client, uint64_t generation, uint64_t seq,
                        uint64_t answer_generation, uint64_t answer_seq) {
  pull_generation = answer_generation;
  pull_seq = answer_seq;
  EXPECT_OK(get(client, 3000));
  const struct published *pull = to("pull", count_to("pull") - 1);
  EXPECT(number_in(pull, "generation") == generation && number_in(pull, "seq") == seq);
}

static void later(int64_t delay_ms, uint64_t session, unsigned shard, uint64_t generation,
                  uint64_t seq) {
  outcome_after(delay_ms, NULL, (struct outcome){session, shard, generation, 9, seq, NULL});
}

static void positions_grow(void) {
  begin(answer);
  pserver_client *client = connected(0);
  expect_pull(client, 1, 0, 1, 3);
  expect_pull(client, 1, 3, 1, 2);
  expect_pull(client, 1, 3, 1, 4);
  EXPECT_OK(push(client, 3000));
  expect_pull(client, 1, 7, 1, 7);
  /* Answers to numbers that are settled; those to others, and of other shards, say nothing. */
  later(0, 41, 0, 1, 20);
  later(0, 41, 0, 1, 12);
  later(0, 40, 0, 1, 90);
  later(0, 41, 1, 1, 90);
  expect_pull(client, 1, 7, 1, 7);
  expect_pull(client, 1, 20, 1, 7);
  /* A position of a later generation is later, whatever its sequence number. */
  later(0, 41, 0, 2, 1);
  later(0, 41, 0, 1, 99);
  expect_pull(client, 1, 20, 1, 7);
  expect_pull(client, 2, 1, 1, 500);
  expect_pull(client, 2, 1, 2, 2);
  expect_pull(client, 2, 2, 2, 2);
  closed(client);
}

/** Answers pulls where they ask for. */
static void answer_there(const struct published *message) {
  if (serve(message) || !is_to(message, "pull")) return;
  pulled_after(1, message, number_in(message, "generation"), number_in(message, "seq"));
}

static void positions_of_shards(void) {
  begin(answer_there);
  job.shards = 3;
  job.blocks = 3;
  job.at_generation = 3;
  job.at_seq = 8;
  job.at_more = 2;
  pserver_client *client = connected_singly(0);
  EXPECT_OK(get(client, 3000));
  EXPECT(count_to("pull") == 3);
  for (size_t shard = 0; shard < 3; shard++) {
    EXPECT(number_in(to("pull", shard), "generation") == 3);
    EXPECT(number_in(to("pull", shard), "seq") == 8 + shard);
  }
  closed(client);
}

static void positions_of_too_many_shards(void) {
  static pserver_position positions[PS_SHARDS_MAX + 1];
  size_t count = PS_SHARDS_MAX;
  pserver_job_info info;
  begin(answer_there);
  job.shards = 256;
  job.at_generation = 3;
  job.at_seq = 8;
  job.at_more = 300;
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_job_positions(client, &info, positions, &count, 3000));
  EXPECT(count == 256);
  for (size_t shard = 0; shard < 256; shard++) EXPECT(positions[shard].seq == 8 + shard);
  EXPECT(positions[256].seq == 0);
  closed(client);
}

static void answer_nothing(const struct published *message) {
  if (is_to(message, "pull")) pulled_after(1, message, 1, 9);
  else if (!serve(message) && is_record(message)) stored_after(1, message, 1, 7);
}

static void positions_of_acks(void) {
  begin(answer_nothing);
  pserver_client *client = connected(0);
  EXPECT_OK(send_stored(client, 3000));
  EXPECT_OK(get(client, 3000));
  EXPECT(number_in(to("pull", 0), "seq") == 7);
  closed(client);
}

static void positions_of_the_job(void) {
  begin(answer);
  job.at_generation = 3;
  job.at_seq = 8;
  pserver_client *client = connected(0);
  expect_pull(client, 3, 8, 3, 8);
  closed(client);
}

static void replace_the_journal(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "step") || count_to("pull") > 2) pulled_after(1, message, 3, 0);
  else if (count_to("pull") == 1) pulled_after(1, message, 2, 50);
  else error_after(1, message, "JOURNAL_REPLACED", 3);
}

static void goes_on_after_a_replacement(void) {
  begin(replace_the_journal);
  pserver_client *client = connected(0);
  EXPECT_OK(get(client, 3000));
  EXPECT_OK(get(client, 3000));
  EXPECT(number_in(to("pull", 1), "generation") == 2 && number_in(to("pull", 1), "seq") == 50);
  EXPECT(number_in(to("pull", 2), "generation") == 3 && number_in(to("pull", 2), "seq") == 0);
  closed(client);
}

static bool is_of_shard_1(const struct published *message) {
  return strstr(message->subject, ".block.w.1.") != NULL;
}

/** Each shard is read at 50 of its second journal, and then shard 1 is in its third. */
static void replace_that_of_shard_1(const struct published *message) {
  if (serve(message)) return;
  if (number_in(message, "generation") == 2 && is_of_shard_1(message)) {
    error_after(1, message, "JOURNAL_REPLACED", 3);
  } else {
    pulled_after(1, message, is_of_shard_1(message) && count_to("pull") > 2 ? 3 : 2, 50);
  }
}

static void goes_on_in_one_shard(void) {
  begin(replace_that_of_shard_1);
  job.blocks = 2;
  pserver_client *client = connected_singly(0);
  for (int i = 0; i < 3; i++) EXPECT_OK(get(client, 3000));
  EXPECT(count_to("pull") == 2 + 3 + 2);
  for (size_t i = 2; i < 7; i++) {
    const struct published *pull = to("pull", i);
    bool is_first = i < 4;
    EXPECT(number_in(pull, "generation") == (is_first || !is_of_shard_1(pull) ? 2 : 3));
    EXPECT(number_in(pull, "seq") == (i == 4 ? 0 : 50));
  }
  closed(client);
}

static void replace_by_an_older(const struct published *message) {
  if (serve(message)) return;
  if (count_to("pull") == 2) error_after(1, message, "JOURNAL_REPLACED", 1);
  else pulled_after(1, message, 2, 50);
}

static void never_goes_back(void) {
  begin(replace_by_an_older);
  pserver_client *client = connected(0);
  EXPECT_OK(get(client, 3000));
  EXPECT_OK(get(client, 3000));
  EXPECT(count_to("pull") == 3);
  EXPECT(number_in(to("pull", 2), "generation") == 2 && number_in(to("pull", 2), "seq") == 50);
  closed(client);
}

/** The two shards of a parameter with blocks in both, of three. */
static void store_each(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  stored_after(1, message, 1 + shard_in(message), 30 + shard_in(message));
  outcome_after(
      2, NULL,
      (struct outcome){41, shard_in(message), 1 + shard_in(message), 1, 30 + shard_in(message), NULL});
}

static void finish_tells_positions(void) {
  begin(store_each);
  job.shards = 3;
  job.blocks = 2;
  pserver_client *client = connected_singly(0);
  bool is_selected = false;
  float values[4] = {1, 2, 3, 4};
  pserver_tensor value = {PSERVER_FLOAT32, 2, {2, 2}, values, sizeof values};
  EXPECT_OK(pserver_begin_init(client, true, 3000, &is_selected));
  EXPECT(is_selected);
  EXPECT_ERROR(BAD_MESSAGE, pserver_init_param(client, "w", &value, NULL, 3000));
  EXPECT_OK(push(client, 3000));
  pserver_finish_init(client, 3000);
  struct ps_value list;
  struct ps_value entry;
  const uint8_t *at = NULL;
  uint64_t count = 0;
  EXPECT(ps_map_find(&to("finish", 0)->message.fields, "at", &list));
  for (; ps_list_next(&list, &at, &entry); count++) {
    uint64_t shard;
    uint64_t generation;
    uint64_t seq;
    EXPECT(ps_map_whole(&entry, "shard", &shard) && ps_map_whole(&entry, "generation", &generation));
    EXPECT(ps_map_whole(&entry, "seq", &seq));
    EXPECT(shard == count && generation == 1 + shard && seq == 30 + shard);
  }
  EXPECT(count == 2);
  closed(client);
}

/** Where questions about steps are answered; the first one finds the journal replaced. */
static struct ps_position step_position;
static bool is_replaced;

static void answer_steps_at(const struct published *message) {
  if (is_to(message, "step")) {
    if (is_replaced && count_to("step") == 1) error_after(1, message, "JOURNAL_REPLACED", 3);
    else step_at(1, message, 0, step_position);
  } else {
    answer(message);
  }
}

static void questions_about_steps(void) {
  begin(answer_steps_at);
  job.mode = "sync";
  job.shards = 1;
  is_replaced = false;
  step_position = (struct ps_position){2, 60};
  pserver_client *client = connected(0);
  expect_pull(client, 1, 0, 2, 50);
  EXPECT_OK(push(client, 3000));
  EXPECT_OK(send_stored(client, 3000));
  EXPECT(number_in(to("step", 0), "generation") == 2 && number_in(to("step", 0), "seq") == 50);
  expect_pull(client, 2, 60, 2, 61);
  closed(client);
}

static void questions_after_a_replacement(void) {
  begin(answer_steps_at);
  job.mode = "sync";
  job.shards = 1;
  is_replaced = true;
  step_position = (struct ps_position){3, 2};
  pserver_client *client = connected(0);
  expect_pull(client, 1, 0, 2, 50);
  EXPECT_OK(send_stored(client, 3000));
  EXPECT(number_in(to("step", 1), "generation") == 3 && number_in(to("step", 1), "seq") == 0);
  expect_pull(client, 3, 2, 3, 2);
  closed(client);
}

/** A job whose steps close as soon as this trainer has ended them. */
static void close_steps(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "step")) step_after(1, message, number_in(message, "step"));
  if (is_to(message, "pull")) pulled_after(1, message, 1, 7);
  if (!is_record(message)) return;
  stored_after(1, message, 1, 7);
  applied_after(2, message, 7);
}

/** The shards that a gradient asks for their step, depending on whether "w" was read since the last step. */
static size_t questions_after_a_step(bool reads) {
  begin(close_steps);
  job.mode = "sync";
  pserver_client *client = connected(0);
  EXPECT_OK(send_stored(client, 3000));
  if (reads) EXPECT_OK(get(client, 3000));
  if (reads) EXPECT(number_in(to("pull", 0), "step") == 1);
  size_t before = count_to("step");
  EXPECT_OK(send_stored(client, 3000));
  size_t asked = count_to("step") - before;
  closed(client);
  return asked;
}

static void reads_show_closed_steps(void) {
  EXPECT(questions_after_a_step(false) == 1);
  EXPECT(questions_after_a_step(true) == 0);
}

const struct scenario position_scenarios[] = {
    {"positions only grow, by generation and then by sequence", positions_grow},
    {"a pull asks for what has a PubAck", positions_of_acks},
    {"the first pull asks for where the job was when it became ready", positions_of_the_job},
    {"the first pull of each shard asks for where that was when the job became ready",
     positions_of_shards},
    {"positions of more shards than a job can have are ignored", positions_of_too_many_shards},
    {"a question about a step waits for what was seen, and reads for where it was answered",
     questions_about_steps},
    {"after JOURNAL_REPLACED a question about a step asks for the start of the new journal",
     questions_after_a_replacement},
    {"after JOURNAL_REPLACED a pull asks for the start of the new journal", goes_on_after_a_replacement},
    {"after JOURNAL_REPLACED pulls of other shards ask for what was seen there", goes_on_in_one_shard},
    {"JOURNAL_REPLACED by an older journal changes no position", never_goes_back},
    {"finish tells the positions of the shards that were seen", finish_tells_positions},
    {"a gradient does not ask for a step that a read has shown to be closed", reads_show_closed_steps},
    {NULL, NULL}};
