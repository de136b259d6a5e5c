/* Rounds of fragments: contributions and their parts, membership, turns, and reading a fragment at one version. */
#include <string.h>

#include "scripted.h"

/** Elements of "w", in blocks of two. */
#define ELEMENTS 6
#define BLOCKS 3

/** The round that a contribution counts in; 0: its parts were taken in two sessions. */
static uint64_t next_round;

static void begin_rounds(take_message take) {
  begin(take);
  job.mode = "diloco";
  job.fragment = "f";
  job.blocks = BLOCKS;
  next_round = 1;
}

static pserver_client *connected_to_rounds(take_message take) {
  begin_rounds(take);
  return connected(0);
}

static struct ps_value contribution_in(const struct published *record) {
  struct ps_value contribution;
  EXPECT(ps_map_find(&record->message.fields, "contribution", &contribution));
  return contribution;
}

static uint64_t said_in(const struct published *record, const char *key) {
  struct ps_value contribution = contribution_in(record);
  uint64_t number = 0;
  EXPECT(ps_map_whole(&contribution, key, &number));
  return number;
}

static bool is_last_part(const struct published *record) {
  return said_in(record, "part") + 1 == said_in(record, "parts");
}

/** Takes every part; the last one completes the contribution. */
static void count_all(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  stored_after(1, message, 1, count_to(NULL));
  counted_after(2, message, count_to(NULL), is_last_part(message) ? next_round : 0);
}

static pserver_contribution work_of(uint64_t base) {
  pserver_contribution work;
  pserver_contribution_init(&work);
  work.fragment = "f";
  work.base = base;
  work.steps = 10;
  work.tokens = 1000;
  return work;
}

static pserver_status contribute(pserver_client *client, const pserver_contribution *work, uint64_t *round,
                                 int64_t timeout_ms) {
  static const char *const name = "w";
  float values[ELEMENTS] = {1, 2, 3, 4, 5, 6};
  pserver_tensor value = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, values, sizeof values};
  return pserver_contribute(client, &name, &value, 1, work, timeout_ms, round);
}

static void counts_in_a_round(void) {
  uint64_t round = 0;
  begin_rounds(count_all);
  job.blocks = 1;
  job.row_elements = ELEMENTS;
  next_round = 4;
  pserver_client *client = connected(0);
  pserver_contribution work = work_of(3);
  EXPECT_OK(contribute(client, &work, &round, 3000));
  EXPECT(round == 4 && count_to("enter") == 1 && count_to(NULL) == 1 && count_to("contribute") == 1);
  const struct published *record = to("contribute", 0);
  struct ps_value contribution = contribution_in(record);
  struct ps_value entry;
  EXPECT(to("enter", 0)->at_ms <= record->at_ms && shard_in(record) == 0);
  EXPECT(ps_map_find(&contribution, "fragment", &entry) && ps_value_is_text(&entry, "f"));
  EXPECT(ps_map_find(&contribution, "form", &entry) && ps_value_is_text(&entry, "displacement"));
  EXPECT(!ps_map_find(&contribution, "stepMs", &entry));
  EXPECT(said_in(record, "base") == 3 && said_in(record, "steps") == 10 && said_in(record, "tokens") == 1000);
  EXPECT(said_in(record, "id") == 1 && said_in(record, "part") == 0 && said_in(record, "parts") == 1);
  /* A member does not enter again. */
  EXPECT_OK(contribute(client, &work, &round, 3000));
  EXPECT(count_to("enter") == 1 && said_in(to("contribute", 1), "id") == 2);
  closed(client);
}

/** As connected_to_rounds(), with a broker whose largest message has one block of "w". */
static pserver_client *connected_in_parts(take_message take) {
  begin_rounds(take);
  broker.max_payload = 1024;
  return connected(0);
}

static void goes_in_parts(void) {
  uint64_t round = 0;
  pserver_client *client = connected_in_parts(count_all);
  pserver_contribution work = work_of(0);
  EXPECT_OK(contribute(client, &work, &round, 3000));
  EXPECT(round == 1 && count_to("contribute") == BLOCKS);
  for (size_t i = 0; i < BLOCKS; i++) {
    EXPECT(said_in(to("contribute", i), "part") == i && said_in(to("contribute", i), "parts") == BLOCKS);
    EXPECT(said_in(to("contribute", i), "id") == 1);
    EXPECT(uint32_in(to("contribute", i), 0, 0) == first_number("w", 1, 2) + i);
  }
  closed(client);
}

/** The second part of the first contribution finds the trainer out. */
static void be_out_once(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  if (said_in(message, "id") > 1 || said_in(message, "part") != 1) {
    bool completes = said_in(message, "id") > 1 && is_last_part(message);
    stored_after(1, message, 1, count_to(NULL));
    counted_after(2, message, count_to(NULL), completes ? next_round : 0);
    return;
  }
  stored_after(1, message, 1, count_to(NULL));
  settled_after(2, message, count_to(NULL), "NOT_MEMBER", "");
}

static void enters_anew(void) {
  uint64_t round = 0;
  pserver_client *client = connected_in_parts(be_out_once);
  pserver_contribution work = work_of(0);
  work.encoding = PSERVER_ENCODING_INT8;
  EXPECT_OK(contribute(client, &work, &round, 3000));
  EXPECT(round == 1 && count_to("enter") == 2);
  size_t first = count_to("contribute") - BLOCKS;
  for (size_t i = 0; i < BLOCKS; i++) {
    EXPECT(said_in(to("contribute", first + i), "id") == 2 && said_in(to("contribute", first + i), "part") == i);
  }
  /* What rounding leaves out counts once, however often the elements are sent. */
  const struct ps_message *before = &to("contribute", 0)->message;
  const struct ps_message *after = &to("contribute", first)->message;
  EXPECT(before->data_bytes == after->data_bytes && memcmp(before->data, after->data, after->data_bytes) == 0);
  closed(client);
}

/** The parts of the first contribution are taken in two sessions. */
static void drop_first(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  bool completes = said_in(message, "id") > 1 && is_last_part(message);
  stored_after(1, message, 1, count_to(NULL));
  counted_after(2, message, count_to(NULL), completes ? next_round : 0);
}

static void sent_again(void) {
  uint64_t round = 0;
  pserver_client *client = connected_in_parts(drop_first);
  pserver_contribution work = work_of(0);
  EXPECT_OK(contribute(client, &work, &round, 3000));
  EXPECT(round == 1 && count_to("contribute") == 2 * BLOCKS && count_to("enter") == 1);
  for (size_t i = 0; i < BLOCKS; i++) EXPECT(said_in(to("contribute", BLOCKS + i), "id") == 2);
  closed(client);
}

/** Contributions come too late. */
static void be_late(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  stored_after(1, message, 1, count_to(NULL));
  settled_after(2, message, count_to(NULL), "LATE", "");
}

static void too_late(void) {
  uint64_t round = 9;
  pserver_client *client = connected_to_rounds(be_late);
  pserver_contribution work = work_of(0);
  EXPECT_OK(contribute(client, &work, &round, 3000));
  EXPECT(round == 0 && count_to("contribute") == 1);
  closed(client);
}

static void only_serve(const struct published *message) { serve(message); }

static void ends(void) {
  uint64_t round;
  pserver_client *client = connected_to_rounds(only_serve);
  pserver_contribution work = work_of(0);
  EXPECT_ERROR(OUTCOME_UNKNOWN, contribute(client, &work, &round, 1000));
  EXPECT(strstr(pserver_last_error_details(), "\"parameter\":\"w\"") != NULL);
  EXPECT(!broker.client->rounds.is_taken[0]);
  /* Another contribution has its turn, which never ends. */
  broker.client->rounds.is_taken[0] = true;
  EXPECT_ERROR(TIMEOUT, contribute(client, &work, &round, 1000));
  EXPECT(broker.client->rounds.waiting[0].count == 0 && count_to("contribute") == 1);
  broker.client->rounds.is_taken[0] = false;
  closed(client);
}

/** Shards tell versions: the first time TIMEOUT, then of a replaced journal, then the version. */
static uint64_t told_version;
static bool has_obstacles;
static bool is_drawn;

static void tell_versions(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "pull")) pulled_after(1, message, 1, 7);
  if (!is_to(message, "fragments")) return;
  size_t asked = count_to("fragments");
  if (has_obstacles && asked == 1) error_with(1, message, "TIMEOUT", "shard", 0);
  else if (has_obstacles && asked == 2) error_after(1, message, "JOURNAL_REPLACED", 3);
  else versions_after(1, message, "f", told_version, (struct ps_position){has_obstacles ? 3 : 1, 20}, is_drawn);
}

static void versions(void) {
  pserver_fragment *list;
  pserver_account account;
  size_t count;
  told_version = 5;
  has_obstacles = true;
  pserver_client *client = connected_to_rounds(tell_versions);
  EXPECT_OK(pserver_fragments(client, &list, &count, &account, 20000));
  EXPECT(count == 1 && strcmp(list[0].name, "f") == 0 && list[0].version == 5);
  EXPECT(list[0].parameter_count == 1 && strcmp(list[0].parameters[0], "w") == 0);
  EXPECT(account.processed.contributions == 0 && account.processed.tokens == 2);
  EXPECT(account.merged.steps == 4 && account.late.contributions == 6 && account.dropped.tokens == 11);
  pserver_fragments_release(list, count);
  EXPECT(count_to("fragments") == 3 && number_in(to("fragments", 2), "generation") == 3);
  EXPECT(number_in(to("fragments", 0), "waitMs") > 0);
  closed(client);
}

/** A round closes while the blocks are read for the first time. */
static void close_while_read(const struct published *message) {
  if (is_to(message, "pull") && count_to("pull") == 1) told_version = 6;
  tell_versions(message);
}

static pserver_status pull(pserver_client *client, uint64_t min_version, pserver_tensor *tensor, uint64_t *version) {
  static const char *const name = "w";
  return pserver_pull_fragment(client, "f", &name, tensor, 1, min_version, PSERVER_AS_IS, 3000, version);
}

static void at_one_version(void) {
  uint64_t version = 0;
  pserver_tensor tensor = {0};
  told_version = 5;
  has_obstacles = false;
  begin_rounds(close_while_read);
  job.blocks = 1;
  pserver_client *client = connected(0);
  EXPECT_OK(pull(client, 4, &tensor, &version));
  EXPECT(version == 6 && tensor.bytes == 2 * sizeof(float) && tensor.data != NULL);
  EXPECT(count_to("pull") == 2 && count_to("fragments") == 3);
  EXPECT(number_in(to("fragments", 0), "version") == 4);
  closed(client);
  pserver_tensor_release(&tensor);
}

static void asks_whether_it_is_drawn(void) {
  uint64_t round = 0;
  bool is_sampled = false;
  told_version = 5;
  has_obstacles = false;
  begin_rounds(tell_versions);
  pserver_client *client = connected(0);
  for (int drawn = 0; drawn < 2; drawn++) {
    is_drawn = drawn == 1;
    EXPECT_OK(pserver_sampling(client, "f", "w", 4, 3000, &round, &is_sampled));
    EXPECT(round == 6 && is_sampled == is_drawn);
  }
  /* Once a member, it does not enter again. */
  EXPECT(count_to("enter") == 1 && count_to("fragments") == 2);
  EXPECT(number_in(to("fragments", 0), "version") == 4 && is_set_in(to("fragments", 0), "member"));
  EXPECT_ERROR(BAD_VALUE, pserver_sampling(client, "g", "w", 0, 3000, &round, &is_sampled));
  EXPECT_ERROR(BAD_VALUE, pserver_sampling(client, "f", "w", 0, 3000, NULL, &is_sampled));
  closed(client);
}

static void waits_for_versions(void) {
  uint64_t version = 3;
  pserver_tensor tensor = {0};
  begin_rounds(only_serve);
  job.blocks = 1;
  pserver_client *client = connected(0);
  EXPECT_ERROR(TIMEOUT, pull(client, 9, &tensor, &version));
  EXPECT(tensor.data == NULL && version == 3 && count_to("pull") == 0 && count_to("fragments") > 1);
  closed(client);
}

static void refused(void) {
  uint64_t round;
  pserver_tensor tensor = {0};
  pserver_client *client = connected_to_rounds(count_all);
  pserver_contribution work = work_of(0);
  size_t sent = count_to(NULL);
  work.fragment = "g";
  EXPECT_ERROR(BAD_VALUE, contribute(client, &work, &round, 3000));
  work = work_of(0);
  work.tokens = ((uint64_t)1 << 40) + 1;
  EXPECT_ERROR(BAD_VALUE, contribute(client, &work, &round, 3000));
  work = work_of(0);
  work.struct_size = 8;
  EXPECT_ERROR(BAD_VALUE, contribute(client, &work, &round, 3000));
  work = work_of(0);
  EXPECT_ERROR(BAD_VALUE, contribute(client, &work, NULL, 3000));
  EXPECT_ERROR(EMPTY, pserver_contribute(client, NULL, NULL, 0, &work, 3000, &round));
  EXPECT(count_to(NULL) == sent);
  closed(client);
  begin(count_all);
  client = connected(0);
  EXPECT_ERROR(UNSUPPORTED, contribute(client, &work, &round, 3000));
  EXPECT_ERROR(UNSUPPORTED, pull(client, 0, &tensor, &round));
  EXPECT_ERROR(UNSUPPORTED, pserver_enter_rounds(client, 3000));
  closed(client);
}

static void told_pinned(void) {
  pserver_parameter_details *list;
  size_t count;
  pserver_client *client = connected_to_rounds(count_all);
  EXPECT_OK(pserver_list_details(client, &list, &count, 3000));
  EXPECT(count == 1 && list[0].pinned && list[0].first_shard == 0 && list[0].shards == job.shards);
  pserver_list_details_release(list, count);
  closed(client);
  begin(count_all);
  client = connected(0);
  EXPECT_OK(pserver_list_details(client, &list, &count, 3000));
  EXPECT(count == 1 && !list[0].pinned);
  pserver_list_details_release(list, count);
  closed(client);
}

static void exits(void) {
  uint64_t round;
  pserver_client *client = connected_to_rounds(count_all);
  pserver_contribution work = work_of(0);
  EXPECT_OK(pserver_enter_rounds(client, 3000));
  EXPECT_OK(contribute(client, &work, &round, 3000));
  EXPECT(count_to("enter") == 1 && number_in(to("enter", 0), "exits") == 0);
  EXPECT_OK(pserver_exit_steps(client, 3000));
  EXPECT(count_to("exit") == 1 && number_in(to("exit", 0), "exits") == 1);
  EXPECT_OK(contribute(client, &work, &round, 3000));
  EXPECT(count_to("enter") == 2 && number_in(to("enter", 1), "exits") == 1);
  closed(client);
}

const struct scenario round_scenarios[] = {
    {"a contribution goes to its fragment once the trainer has entered, and tells its round", counts_in_a_round},
    {"a contribution that is larger than a message goes in numbered parts", goes_in_parts},
    {"a trainer that is no member any more enters anew and sends all parts again", enters_anew},
    {"parts that were taken in two sessions are sent again under another number", sent_again},
    {"a contribution that comes too late counts in no round", too_late},
    {"a contribution ends at its deadline, also where it waits for its turn", ends},
    {"versions are asked for again after TIMEOUT, and in the new journal after JOURNAL_REPLACED", versions},
    {"a fragment is read again if a round has closed meanwhile", at_one_version},
    {"a fragment is not read before it has the version", waits_for_versions},
    {"a trainer that is drawn for a round is told so, as a member", asks_whether_it_is_drawn},
    {"calls for rounds are refused in other jobs, and with wrong arguments", refused},
    {"a trainer that exits the rounds enters them again with its next contribution", exits},
    {"details tell whether all blocks of a parameter are on one shard", told_pinned},
    {NULL, NULL}};
