/* Answers about records: what they say besides outcomes, and what of a message counts. */
#include <string.h>

#include "scripted.h"

static uint64_t reply_generation;
static uint64_t reply_seq;

/** A record is stored at 7; the reply to the question says where the copy that was applied is. */
static void reply_elsewhere(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "pull")) {
    pulled_after(1, message, number_in(message, "generation"), number_in(message, "seq"));
  } else if (is_record(message)) {
    stored_after(1, message, 1, 7);
  } else {
    outcome_after(1, message, (struct outcome){41, 0, reply_generation, 1, reply_seq, NULL});
  }
}

static void expect_read_at(uint64_t generation, uint64_t seq) {
  begin(reply_elsewhere);
  reply_generation = generation;
  reply_seq = seq;
  pserver_client *client = connected(0);
  EXPECT_OK(push(client, 30000));
  EXPECT(count_to("outcome") == 1);
  EXPECT_OK(get(client, 3000));
  EXPECT(number_in(to("pull", 0), "generation") == generation);
  EXPECT(number_in(to("pull", 0), "seq") == seq);
  closed(client);
}

static void positions_of_replies(void) {
  expect_read_at(1, 9);
  expect_read_at(2, 3);
}

/** How long the answer to each question says to wait. */
static uint64_t hints_ms[3];

static void be_busy(const struct published *message) {
  if (serve(message)) return;
  size_t questions = count_to("outcome");
  if (is_record(message)) stored_after(1, message, 1, 7);
  else if (questions > 3) outcome_after(1, message, (struct outcome){41, 0, 1, 1, 7, NULL});
  else error_with(1, message, "BUSY", "retryAfterMs", hints_ms[questions - 1]);
}

static void hints(void) {
  static const int64_t waits_ms[] = {700, 200, 5000};
  begin(be_busy);
  hints_ms[0] = 700;
  hints_ms[1] = 20;
  hints_ms[2] = 60000;
  pserver_client *client = connected(0);
  EXPECT_OK(push(client, 30000));
  EXPECT(count_to("outcome") == 4);
  expect_gaps("outcome", 3, waits_ms);
  closed(client);
}

/** The question of session 41 is answered when session 42 has begun. */
static void answer_a_question_late(const struct published *message) {
  if (is_to(message, "begin") && number_in(message, "session") == 41) {
    error_after(1, message, "REJOIN", 0);
  } else if (is_to(message, "outcome")) {
    error_with(1000, message, "SUPERSEDED", "received", 41);
  } else if (!serve(message) && is_record(message)) {
    stored_after(1, message, 1, 7);
    if (number_in(message, "session") == 42) applied_after(2, message, 7);
  }
}

static void late_ends_of_sessions(void) {
  bool is_selected = false;
  begin(answer_a_question_late);
  pserver_client *client = connected(0);
  EXPECT_OK(send_stored(client, 3000));
  run_for(1500);
  EXPECT(count_to("outcome") == 1 && number_in(to("outcome", 0), "session") == 41);
  EXPECT_OK(pserver_begin_init(client, false, 3000, &is_selected));
  EXPECT(count_to("join") == 2);
  run_for(1500);
  EXPECT_OK(push(client, 3000));
  EXPECT(count_to("join") == 2);
  closed(client);
}

static void refuse_without_text(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  settled_after(1, message, 7, "BAD_VALUE", count_to(NULL) == 1 ? "" : "too hot");
}

static void texts(void) {
  const char *text;
  begin(refuse_without_text);
  pserver_client *client = connected(0);
  EXPECT_ERROR(BAD_VALUE, push(client, 3000));
  pserver_last_error(&text);
  EXPECT(strstr(text, "BAD_VALUE") != NULL);
  EXPECT_ERROR(BAD_VALUE, push(client, 3000));
  pserver_last_error(&text);
  EXPECT(strstr(text, "too hot") != NULL);
  closed(client);
}

static void pack_row(struct ps_draft *draft, size_t entries, uint64_t n) {
  ps_pack_list(draft, entries);
  if (entries > 0) ps_pack_whole(draft, n);
  for (size_t i = 1; i < entries; i++) ps_pack_whole(draft, 7);
}

/** Outcomes of both records in one message, with rows between them that are none. */
static void send_both(const struct published *message) {
  if (serve(message) || !is_record(message) || count_to(NULL) < 2) return;
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "shard", 0);
  ps_draft_whole(&draft, "generation", 1);
  ps_draft_whole(&draft, "session", 41);
  ps_draft_key(&draft, "outcomes");
  ps_pack_list(&draft, 5);
  pack_row(&draft, 3, 1);
  pack_row(&draft, 0, 0);
  pack_row(&draft, 1, 2);
  ps_pack_text(&draft, "x", 1);
  pack_row(&draft, 3, 2);
  EXPECT_OK(ps_draft_end(&draft));
  bytes_after(1, "_INBOX_mnist.t.life.applied", draft.buffer.data, draft.buffer.size);
  ps_draft_release(&draft);
}

static void rows(void) {
  begin(send_both);
  job.shards = 1;
  job.blocks = 2;
  pserver_client *client = connected_singly(0);
  EXPECT_OK(push(client, 1000));
  EXPECT(count_to(NULL) == 2 && count_to("outcome") == 0);
  closed(client);
}

const struct scenario answer_scenarios[] = {
    {"the position in a reply about outcomes is what reads ask for", positions_of_replies},
    {"a question is asked again after the time that the error names, up to 5 s", hints},
    {"a late SUPERSEDED about an earlier session does not end the present one", late_ends_of_sessions},
    {"a rejection without a text is told by its code", texts},
    {"rows of a message that are no outcomes leave the others", rows},
    {NULL, NULL}};
