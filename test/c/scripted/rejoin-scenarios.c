/* Sessions that follow one another, errors about earlier ones, and replies to a join that fit none. */
#include <string.h>

#include "scripted.h"

static pserver_status begin_init(pserver_client *client, int64_t timeout_ms) {
  bool is_selected = false;
  return pserver_begin_init(client, false, timeout_ms, &is_selected);
}

static bool is_begin_of(const struct published *message, uint64_t session) {
  return is_to(message, "begin") && number_in(message, "session") == session;
}

static void end_two_sessions(const struct published *message) {
  bool is_over = is_begin_of(message, 41) || is_begin_of(message, 42);
  if (is_over) error_after(1, message, "REJOIN", 0);
  else serve(message);
}

static void tokens(void) {
  char token[3][65];
  begin(end_two_sessions);
  pserver_client *client = connected(0);
  EXPECT_OK(begin_init(client, 3000));
  EXPECT(count_to("join") == 3);
  for (size_t i = 0; i < 3; i++) {
    EXPECT(ps_map_copy_text(&to("join", i)->message.fields, "token", token[i], sizeof token[i]));
    EXPECT(strlen(token[i]) == 32);
    for (size_t j = 0; j < i; j++) EXPECT(strcmp(token[i], token[j]) != 0);
  }
  closed(client);
}

/** Session 41 ends; afterwards an answer about it comes once more. */
static void answer_late(const struct published *message) {
  if (is_begin_of(message, 41)) error_with(1, message, "REJOIN", "received", 41);
  else if (is_to(message, "begin") && count_to("begin") == 2)
    error_with(1, message, "SUPERSEDED", "received", 41);
  else serve(message);
}

static void errors_about_earlier_ones(void) {
  begin(answer_late);
  pserver_client *client = connected(0);
  EXPECT_OK(begin_init(client, 3000));
  EXPECT(count_to("join") == 2 && count_to("begin") == 3);
  closed(client);
}

/** Session 41 ends; afterwards another client joins. */
static void supersede_the_second(const struct published *message) {
  if (is_begin_of(message, 41)) error_with(1, message, "REJOIN", "received", 41);
  else if (is_to(message, "begin")) error_after(1, message, "SUPERSEDED", 0);
  else serve(message);
}

static void errors_about_no_session(void) {
  begin(supersede_the_second);
  pserver_client *client = connected(0);
  EXPECT_ERROR(SUPERSEDED, begin_init(client, 3000));
  EXPECT(count_to("begin") == 2);
  EXPECT_ERROR(SUPERSEDED, begin_init(client, 3000));
  EXPECT(count_to("begin") == 2);
  closed(client);
}

static bool is_join_answered;

/** Session 41 ends, and nobody answers the second join for now. */
static void leave_the_join_open(const struct published *message) {
  if (is_begin_of(message, 41)) error_after(1, message, "REJOIN", 0);
  else if (!is_to(message, "join") || count_to("join") == 1 || is_join_answered) serve(message);
}

static void ended_requests(void) {
  begin(leave_the_join_open);
  is_join_answered = false;
  pserver_client *client = connected(0);
  EXPECT_ERROR(TIMEOUT, begin_init(client, 3000));
  is_join_answered = true;
  run_for(10000);
  /* The client has joined; the request whose call has ended is not made again. */
  EXPECT(broker.client->session.core.session == 42 && count_to("begin") == 1);
  EXPECT_OK(begin_init(client, 3000));
  EXPECT(count_to("begin") == 2);
  closed(client);
}

static void attempts_end(void) {
  char first[65];
  char token[65];
  begin(leave_the_join_open);
  is_join_answered = false;
  pserver_client *client = connected(0);
  EXPECT_ERROR(TIMEOUT, begin_init(client, 3000));
  /* The attempt is given up after 30 s; the next one is another session, if the first was begun unnoticed. */
  run_for(30000);
  size_t joins = count_to("join");
  EXPECT(ps_map_copy_text(&to("join", 1)->message.fields, "token", first, sizeof first));
  EXPECT(ps_map_copy_text(&to("join", joins - 1)->message.fields, "token", token, sizeof token));
  EXPECT(strcmp(first, token) != 0);
  EXPECT(to("join", joins - 1)->at_ms - to("join", 1)->at_ms >= 30000);
  is_join_answered = true;
  EXPECT_OK(begin_init(client, 10000));
  closed(client);
}

/** A host ends session 41 at block 0, the broker refuses block 1 for now, and the next join takes some time. */
static void join_slowly(const struct published *message) {
  if (is_to(message, "join") && count_to("join") > 1 && count_to("join") < 6) {
    nobody_after(1, message);
  } else if (!serve(message) && is_record(message) && number_in(message, "session") == 41) {
    if (block_in(message) == 1) refused_after(10, message, 10077, "maximum bytes exceeded");
    else outcome_after(20, NULL, (struct outcome){41, 0, 1, 1, 5, "REJOIN"});
  } else if (is_record(message)) {
    stored_after(1, message, 1, 8);
    applied_after(2, message, 8);
  }
}

static void between_sessions(void) {
  begin(join_slowly);
  job.blocks = 2;
  pserver_client *client = connected_singly(0);
  EXPECT_OK(push(client, 10000));
  EXPECT(count_to("join") == 6 && count_to(NULL) == 4);
  for (size_t i = 0; i < 4; i++) EXPECT(number_in(to(NULL, i), "session") == (i < 2 ? 41 : 42));
  closed(client);
}

static void only_serve(const struct published *message) { serve(message); }

static void replies_to_join(void) {
  for (int i = 0; i < 5; i++) {
    pserver_options options;
    pserver_client *client = NULL;
    pserver_options_init(&options);
    options.url = "nats://broker";
    options.job = "mnist";
    begin(only_serve);
    if (i == 0) job.session = 0;
    if (i == 1) job.shards = 0;
    if (i == 2) job.shards = 257;
    if (i == 3) job.lease_ms = 0;
    if (i == 4) job.shards = 256;
    pserver_status status = pserver_connect(&options, &client);
    EXPECT(status == (i == 4 ? PSERVER_OK : PSERVER_ERR_BAD_MESSAGE));
    EXPECT(count_to("join") == 1);
    if (client != NULL) closed(client);
  }
  begin(NULL);
}

const struct scenario rejoin_scenarios[] = {
    {"every session has a token of its own", tokens},
    {"an error about an earlier session has the request made again under the present one",
     errors_about_earlier_ones},
    {"an error that names no session is about the present one", errors_about_no_session},
    {"a request whose call has ended is not made again in the next session", ended_requests},
    {"an attempt to join again ends after 30 s, and the next one has another token", attempts_end},
    {"nothing is sent between two sessions", between_sessions},
    {"a reply to a join without session, lease or 1 to 256 shards is an error", replies_to_join},
    {NULL, NULL}};
