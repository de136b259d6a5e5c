/* Losses: what shards whose journals were replaced have not kept, and what the client does about it. */
#include "scripted.h"

/** Where the next pull is answered. */
static struct ps_position pulled;

/** The losses in replies to questions; without any, replies name none. */
static pserver_fallback losses[2];
static size_t loss_count;
static bool is_answering;

static void tell_losses(const struct published *question) {
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "shard", 0);
  ps_draft_whole(&draft, "generation", 3);
  ps_draft_whole(&draft, "session", 41);
  ps_draft_key(&draft, "outcomes");
  ps_pack_list(&draft, 0);
  if (loss_count > 0) {
    ps_draft_key(&draft, "fallbacks");
    ps_pack_list(&draft, loss_count);
  }
  for (size_t i = 0; i < loss_count; i++) {
    ps_pack_map(&draft, 3);
    ps_pack_text(&draft, "generation", 10);
    ps_pack_whole(&draft, losses[i].generation);
    ps_pack_text(&draft, "from", 4);
    ps_pack_whole(&draft, losses[i].from);
    ps_pack_text(&draft, "to", 2);
    ps_pack_whole(&draft, losses[i].to);
  }
  EXPECT_OK(ps_draft_end(&draft));
  bytes_after(1, question->reply, draft.buffer.data, draft.buffer.size);
  ps_draft_release(&draft);
}

static void answer(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "pull")) pulled_after(200, message, pulled.generation, pulled.seq);
  if (is_to(message, "step")) step_after(1, message, number_in(message, "step"));
  if (is_to(message, "outcome") && is_answering) tell_losses(message);
  if (!is_record(message)) return;
  stored_after(1, message, 1, 7);
  applied_after(2, message, 7);
}

static void read_at(pserver_client *client, uint64_t generation, uint64_t seq) {
  pulled = (struct ps_position){generation, seq};
  EXPECT_OK(get(client, 3000));
}

static pserver_client *begun(void) {
  begin(answer);
  loss_count = 0;
  is_answering = true;
  return connected(0);
}

/** Expects these losses of shard 0 to be told. */
static void expect_losses(pserver_client *client, size_t count, const pserver_fallback *expected) {
  pserver_fallback *told = NULL;
  size_t told_count = 9;
  EXPECT_OK(pserver_fallbacks(client, &told, &told_count, 3000));
  EXPECT(told_count == count);
  for (size_t i = 0; i < count; i++) {
    EXPECT(told[i].shard == 0 && told[i].generation == expected[i].generation);
    EXPECT(told[i].from == expected[i].from && told[i].to == expected[i].to);
  }
  pserver_fallbacks_release(told);
}

static void expect_question(size_t index, uint64_t generation, uint64_t seq) {
  struct ps_value numbers;
  const struct published *question = to("outcome", index);
  EXPECT(number_in(question, "session") == 41);
  EXPECT(ps_map_find(&question->message.fields, "numbers", &numbers) && numbers.count == 0);
  EXPECT(number_in(question, "generation") == generation && number_in(question, "seq") == seq);
}

static void told_once(void) {
  /* The client has seen more of the first journal than the host knows of. */
  static const pserver_fallback expected[] = {{0, 1, 40, 50}, {0, 2, 5, 7}};
  pserver_client *client = begun();
  read_at(client, 1, 50);
  expect_losses(client, 0, NULL);
  EXPECT(count_to("outcome") == 0);
  read_at(client, 2, 9);
  read_at(client, 3, 1);
  loss_count = 2;
  losses[0] = (pserver_fallback){0, 1, 40, 45};
  losses[1] = (pserver_fallback){0, 2, 5, 7};
  expect_losses(client, 2, expected);
  expect_question(0, 1, 50);
  expect_losses(client, 0, NULL);
  EXPECT(count_to("outcome") == 1);
  closed(client);
}

static void only_what_was_seen(void) {
  pserver_client *client = begun();
  read_at(client, 2, 9);
  read_at(client, 3, 1);
  loss_count = 2;
  /* Of a journal before the one that was read, and behind what was read, where nothing is known to be lost. */
  losses[0] = (pserver_fallback){0, 1, 40, 45};
  losses[1] = (pserver_fallback){0, 2, 20, 19};
  expect_losses(client, 0, NULL);
  expect_question(0, 2, 9);
  closed(client);
}

static void not_what_others_saw(void) {
  pserver_client *client = begun();
  job.at_generation = 1;
  job.at_seq = 50;
  read_at(client, 2, 9);
  EXPECT(number_in(to("pull", 0), "seq") == 50);
  expect_losses(client, 0, NULL);
  EXPECT(count_to("outcome") == 0);
  closed(client);
}

static void asked_again(void) {
  static const pserver_fallback expected[] = {{0, 1, 40, 60}};
  pserver_fallback *told;
  size_t count;
  pserver_client *client = begun();
  read_at(client, 1, 50);
  read_at(client, 2, 9);
  is_answering = false;
  EXPECT_ERROR(TIMEOUT, pserver_fallbacks(client, &told, &count, 3000));
  is_answering = true;
  loss_count = 1;
  losses[0] = (pserver_fallback){0, 1, 40, 60};
  expect_losses(client, 1, expected);
  closed(client);
}

static void none_of_older_hosts(void) {
  pserver_client *client = begun();
  read_at(client, 1, 50);
  read_at(client, 2, 9);
  expect_losses(client, 0, NULL);
  EXPECT(count_to("outcome") == 1);
  closed(client);
}

/** The shard is found in its second journal, by an outcome of a record that was settled before. */
static void replace_the_journal(void) {
  outcome_after(100, NULL, (struct outcome){41, 0, 2, 9, 1, NULL});
}

static void versions_are_forgotten(void) {
  struct ps_value seen;
  pserver_client *client = begun();
  read_at(client, 1, 50);
  EXPECT_OK(send_stored(client, 3000));
  EXPECT(number_in(to(NULL, 0), "seen") == 1);
  replace_the_journal();
  run_for(200);
  EXPECT_OK(send_stored(client, 3000));
  EXPECT(!ps_map_find(&to(NULL, 1)->message.fields, "seen", &seen));
  closed(client);
}

static void enters_anew(void) {
  begin(answer);
  job.mode = "sync";
  pserver_client *client = connected(0);
  EXPECT_OK(send_stored(client, 3000));
  EXPECT(count_to("enter") == 1);
  replace_the_journal();
  run_for(200);
  EXPECT_OK(send_stored(client, 3000));
  EXPECT(count_to("enter") == 2);
  closed(client);
}

/** Returns how many questions about steps the gradient after a read asks. */
static size_t questions_after_a_read(bool is_replaced) {
  begin(answer);
  job.mode = "sync";
  pserver_client *client = connected(0);
  EXPECT_OK(send_stored(client, 3000));
  /* While the read waits for step 1, the shard falls back. */
  if (is_replaced) replace_the_journal();
  read_at(client, 1, 50);
  EXPECT(number_in(to("pull", 0), "step") == 1);
  size_t before = count_to("step");
  EXPECT_OK(send_stored(client, 3000));
  size_t asked = count_to("step") - before;
  closed(client);
  return asked;
}

static void reads_show_no_closed_step(void) {
  EXPECT(questions_after_a_read(false) == 0);
  /* Two shards are asked where they are, and that of the gradient whether step 1 has closed. */
  EXPECT(questions_after_a_read(true) == 3);
}

const struct scenario loss_scenarios[] = {
    {"what was lost is asked at the last position seen of the first journal left, and told once", told_once},
    {"what was lost of earlier journals, and nothing, is not told", only_what_was_seen},
    {"where the job was when it became ready was not seen, so nothing of it is lost", not_what_others_saw},
    {"after a question without an answer the next call asks again", asked_again},
    {"an answer that names no losses has none to tell", none_of_older_hosts},
    {"after a fallback a gradient names no version that was read before", versions_are_forgotten},
    {"after a fallback the next gradient enters the steps anew", enters_anew},
    {"a read during which a shard falls back shows no step to be closed", reads_show_no_closed_step},
    {NULL, NULL}};
