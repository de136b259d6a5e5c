/* Batches: which updates go together, and their fates. */
#include <string.h>

#include "scripted.h"

#define ROUND_MS 100

static void only_serve(const struct published *message) { serve(message); }

/** Finds a run of a batch; false if there is none. */
static bool find_run(const struct published *record, size_t place, struct ps_value *run) {
  struct ps_value runs;
  const uint8_t *at = NULL;
  if (!ps_map_find(&record->message.fields, "runs", &runs) || place >= runs.count) return false;
  for (size_t i = 0; i <= place; i++) EXPECT(ps_list_next(&runs, &at, run));
  return true;
}

/** Returns the number of entries of a batch; 0 for any other record. */
static size_t entries_of(const struct published *record) {
  struct ps_value run;
  size_t count = 0;
  for (size_t i = 0; find_run(record, i, &run); i++) {
    uint64_t entries = 0;
    EXPECT(ps_map_whole(&run, "entries", &entries));
    count += entries;
  }
  return count;
}

/** A client of a job with five blocks: three of them in shard 0. */
static pserver_client *connected_to_five(take_message take) {
  begin(take);
  job.blocks = 5;
  return connected(0);
}

static bool are_same(const struct published *a, const struct published *b) {
  return a->count == b->count && memcmp(a->bytes, b->bytes, a->count) == 0 &&
         strcmp(a->subject, b->subject) == 0;
}

static void apply_second_sendings(const struct published *message) {
  if (serve(message) || !is_record(message) || count_to(NULL) <= 2) return;
  stored_after(ROUND_MS, message, 1, count_to(NULL));
  applied_after(ROUND_MS, message, count_to(NULL));
}

static void one_record(void) {
  pserver_client *client = connected_to_five(apply_second_sendings);
  EXPECT_OK(push(client, 20000));
  EXPECT(count_to(NULL) == 4 && count_to("batch") == 4);
  for (size_t shard = 0; shard < 2; shard++) {
    EXPECT(shard_in(to(NULL, shard)) == shard);
    EXPECT(entries_of(to(NULL, shard)) == 3 - shard);
    /* Padded numbers and counts, and two elements for each block. */
    EXPECT(to(NULL, shard)->message.data_bytes == 2 * (16 - 8 * shard) + (3 - shard) * 8);
    for (size_t entry = 0; entry < 3 - shard; entry++) {
      EXPECT(uint32_in(to(NULL, shard), 0, entry) == first_number("w", 1, 2) + shard + 2 * entry);
      EXPECT(uint32_in(to(NULL, shard), 16 - 8 * shard, entry) == 2);
    }
    EXPECT(are_same(to(NULL, shard), to(NULL, 2 + shard)));
  }
  closed(client);
}

static void apply(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  stored_after(0, message, 1, count_to(NULL));
  applied_after(0, message, count_to(NULL));
}

static void alone(void) {
  begin(apply);
  job.blocks = 2;
  pserver_client *client = connected(0);
  EXPECT_OK(push(client, 3000));
  EXPECT(count_to("batch") == 0 && count_to(NULL) == 2);
  closed(client);
}

static void note(void) {
  static const pserver_note_entry entry = {"loss", PSERVER_NOTE_NUMBER, 0.5, NULL, false};
  begin(apply);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_note(client, &entry, 1, 3000));
  EXPECT(count_to(NULL) == 1 && count_to("note") == 1);
  closed(client);
}

/** The rejection of the batch in shard 0. */
static const char *rejection_text;

static void reject_in_first_shard(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  bool is_rejected = shard_in(message) == 0;
  stored_after(1, message, 1, 9);
  settled_after(is_rejected ? 20 : 10, message, 9, is_rejected ? "BAD_LENGTH" : NULL, rejection_text);
}

static void names_the_block(void) {
  rejection_text = "entry 1, \"w\" block 2: expected other bytes";
  pserver_client *client = connected_to_five(reject_in_first_shard);
  EXPECT_ERROR(BAD_LENGTH, push(client, 3000));
  const char *text;
  const char *details = pserver_last_error_details();
  pserver_last_error(&text);
  EXPECT(strcmp(text, "w block 2: entry 1, \"w\" block 2: expected other bytes (other updates of the call: "
                      "2 applied, 0 unknown, 0 not sent)") == 0);
  EXPECT(strstr(details, "\"parameter\":\"w\",\"block\":2,\"shard\":0,\"n\":1") != NULL);
  EXPECT(strstr(details, "{\"parameter\":\"w\",\"index\":3,\"shard\":1,\"n\":1}") != NULL);
  closed(client);
}

static void names_no_block(void) {
  static const char *const texts[] = {"runs[0]: expected something else", "entry 3: of no block",
                                      "entry of a batch: wrong"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    char expected[100];
    rejection_text = texts[i];
    pserver_client *client = connected_to_five(reject_in_first_shard);
    EXPECT_ERROR(BAD_LENGTH, push(client, 3000));
    const char *text;
    pserver_last_error(&text);
    snprintf(expected, sizeof expected, "w block 0 and 2 others of its record: %s", texts[i]);
    EXPECT(strstr(text, expected) == text);
    EXPECT(strstr(pserver_last_error_details(), "\"block\":") == NULL);
    closed(client);
  }
}

static void unknown(void) {
  pserver_client *client = connected_to_five(only_serve);
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 1000));
  const char *text;
  const char *details = pserver_last_error_details();
  pserver_last_error(&text);
  EXPECT(strstr(text, ": 5 block updates, the first w block 0 and 2 others of its record, were sent"));
  for (size_t block = 0; block < 5; block++) {
    char listed[80];
    snprintf(listed, sizeof listed, "{\"parameter\":\"w\",\"index\":%zu,\"shard\":%zu,\"n\":1}", block,
             block % 2);
    EXPECT(strstr(details, listed) != NULL);
  }
  closed(client);
}

/** Gradients of "w", with a learning rate. */
static pserver_status send_grads(pserver_client *client, size_t times, size_t *late_blocks) {
  float values[10] = {0};
  pserver_tensor value = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, values, sizeof values};
  pserver_gradient grads[] = {{"w", value, NULL, 0}, {"w", value, NULL, 0}};
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = true;
  options.learning_rate = 1;
  options.end_step = false;
  options.late_blocks = late_blocks;
  return pserver_send_grads(client, grads, times, &options, 20000);
}

/** Gradients in shard 0 come too late. */
static void be_late(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "step")) step_after(1, message, 0);
  if (!is_record(message)) return;
  bool is_late = shard_in(message) == 0;
  stored_after(1, message, 1, count_to(NULL));
  settled_after(2, message, 9, is_late ? "LATE" : NULL, "");
}

static void late(void) {
  size_t late_blocks = 0;
  begin(be_late);
  job.blocks = 5;
  job.mode = "sync";
  pserver_client *client = connected(0);
  EXPECT_OK(send_grads(client, 1, &late_blocks));
  EXPECT(late_blocks == 3 && count_to("batch") == 2);
  EXPECT(number_in(to("batch", 0), "step") == 1);
  closed(client);
}

/** Whether the first run of a batch names versions. */
static bool names_versions(const struct published *batch) {
  struct ps_value run;
  struct ps_value seen;
  EXPECT(find_run(batch, 0, &run));
  return ps_map_find(&run, "seen", &seen);
}

/** A batch that names versions is rejected. */
static void refuse_versions(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  stored_after(1, message, 1, count_to(NULL));
  settled_after(2, message, count_to(NULL), names_versions(message) ? "BAD_VALUE" : NULL, "");
}

static void undone(void) {
  begin(refuse_versions);
  job.blocks = 5;
  pserver_client *client = connected(0);
  EXPECT_OK(send_grads(client, 1, NULL));
  EXPECT(count_to("batch") == 2 && !names_versions(to("batch", 0)));
  struct ps_parameter *found = NULL;
  const char *name = "w";
  const char *missing;
  EXPECT(ps_parameters_take(&broker.client->parameters, &name, 1, &found, &missing, 1) == 0);
  found->seen[2] = 7;
  ps_parameter_unref(found);
  EXPECT_OK(send_grads(client, 1, NULL));
  EXPECT(count_to("batch") == 5);
  EXPECT(names_versions(to("batch", 2)) && !names_versions(to("batch", 3)) &&
         !names_versions(to("batch", 4)));
  EXPECT(shard_in(to("batch", 4)) == 0 && entries_of(to("batch", 4)) == 3);
  closed(client);
}

/** In the first session the broker refuses every record, and then a host ends the session; in later ones
 * records are applied. */
static void refuse_first_session(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  if (number_in(message, "session") > 41) {
    stored_after(1, message, 1, count_to(NULL));
    applied_after(1, message, count_to(NULL));
    return;
  }
  refused_after(1, message, 10077, "maximum bytes exceeded");
  if (count_to(NULL) > 2) return;
  settled_after(20, message, 1, "REJOIN", "");
}

static void new_session(void) {
  pserver_client *client = connected_to_five(refuse_first_session);
  EXPECT_OK(push(client, 20000));
  EXPECT(count_to("join") == 2);
  const struct published *last = to("batch", count_to("batch") - 1);
  EXPECT(number_in(last, "session") == 42 && number_in(last, "n") == 1);
  EXPECT(entries_of(to("batch", count_to("batch") - 2)) + entries_of(last) == 5);
  closed(client);
}

static void named_twice(void) {
  pserver_client *client = connected_to_five(apply);
  EXPECT_OK(send_grads(client, 1, NULL));
  EXPECT_OK(send_grads(client, 2, NULL));
  EXPECT(count_to("batch") == 6 && count_to(NULL) == 6);
  for (size_t i = 0; i < 6; i++) EXPECT(entries_of(to("batch", i)) == 3 - shard_in(to("batch", i)));
  closed(client);
}

const struct scenario batch_scenarios[] = {
    {"the small blocks of a shard are one record, repeated as the very same bytes", one_record},
    {"a single block has a record of its own", alone},
    {"a note has a record of its own", note},
    {"a rejection names the block at fault, and what became of the others", names_the_block},
    {"a rejection that names no block is of the record", names_no_block},
    {"every block of a batch whose outcome is unknown is counted and listed", unknown},
    {"every block of a batch that is too late is counted", late},
    {"a batch whose versions were undone is sent again without them", undone},
    {"in a new session a batch that was stored nowhere is sent again", new_session},
    {"a parameter that a call names twice is in two batches", named_twice},
    {NULL, NULL}};
