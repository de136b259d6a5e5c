/* Sessions: joining, renewing, rejoining and ending; and requests that are repeated. */
#include <string.h>

#include "scripted.h"

#define LEASE_MS 6000

static void only_serve(const struct published *message) { serve(message); }

static void expect_text(const struct published *message, const char *key, const char *other,
                        bool is_same) {
  struct ps_value text;
  EXPECT(ps_map_find(&message->message.fields, key, &text) && text.type == PS_VALUE_TEXT);
  EXPECT(ps_value_is_text(&text, other) == is_same);
}

static void token_of(const struct published *join, char token[65]) {
  EXPECT(ps_map_copy_text(&join->message.fields, "token", token, 65) && token[0] != '\0');
}

/** The fourth renewal finds a newer session. */
static void supersede_at_last(const struct published *message) {
  if (is_to(message, "renew") && count_to("renew") == 4) error_after(1, message, "SUPERSEDED", 0);
  else serve(message);
}

static void renews(void) {
  static const int64_t waits_ms[] = {LEASE_MS / 3, LEASE_MS / 3, LEASE_MS / 3};
  begin(supersede_at_last);
  job.lease_ms = LEASE_MS;
  pserver_client *client = connected(0);
  int64_t joined_ms = time_ms();
  run_until_lost(broker.client);
  EXPECT(count_to("renew") == 4 && count_to("join") == 1);
  EXPECT(to("renew", 0)->at_ms - joined_ms >= LEASE_MS / 3);
  EXPECT(to("renew", 0)->at_ms - joined_ms < LEASE_MS / 3 + 100);
  expect_gaps("renew", 3, waits_ms);
  for (size_t i = 0; i < 4; i++) EXPECT(number_in(to("renew", i), "session") == 41);
  /* The client can do nothing more. */
  EXPECT_ERROR(SUPERSEDED, push(client, 3000));
  EXPECT_ERROR(SUPERSEDED, get(client, 3000));
  EXPECT(count_to(NULL) == 0 && count_to("status") == 0);
  closed(client);
}

/** The first renewal gets no answer during a whole lease, the second a passing error for some time. */
static void be_away(const struct published *message) {
  if (!is_to(message, "renew")) {
    serve(message);
  } else if (message->at_ms > 3 * LEASE_MS) {
    error_after(1, message, "SUPERSEDED", 0);
  } else if (message->at_ms > 2 * LEASE_MS) {
    error_after(1, message, "JETSTREAM_UNAVAILABLE", 0);
  }
}

static void nothing_transient_ends_it(void) {
  begin(be_away);
  job.lease_ms = LEASE_MS;
  pserver_client *client = connected(0);
  run_until_lost(broker.client);
  EXPECT(count_to("join") == 1);
  EXPECT(to("renew", count_to("renew") - 1)->at_ms > 3 * LEASE_MS);
  EXPECT_ERROR(SUPERSEDED, get(client, 3000));
  closed(client);
}

static void refuse_the_version(const struct published *message) {
  if (is_to(message, "renew")) error_after(1, message, "BAD_VERSION", 0);
  else serve(message);
}

static void a_final_error_ends_it(void) {
  begin(refuse_the_version);
  job.lease_ms = LEASE_MS;
  pserver_client *client = connected(0);
  run_until_lost(broker.client);
  EXPECT(count_to("renew") == 1);
  EXPECT_ERROR(BAD_VERSION, get(client, 3000));
  closed(client);
}

/** The session ends at the first renewal, rejoining takes some time, and then another client joins. */
static void end_at_a_renewal(const struct published *message) {
  if (is_to(message, "renew") && number_in(message, "session") == 41) {
    error_after(1, message, "REJOIN", 0);
  } else if (is_to(message, "renew") && count_to("renew") == 4) {
    error_after(1, message, "SUPERSEDED", 0);
  } else if (is_to(message, "join") && count_to("join") == 2) {
    error_after(1, message, "BUSY", 0);
  } else {
    serve(message);
  }
}

static void joins_anew(void) {
  char first[65];
  char second[65];
  begin(end_at_a_renewal);
  job.lease_ms = LEASE_MS;
  pserver_client *client = connected(0);
  run_until_lost(broker.client);
  EXPECT(count_to("join") == 3);
  token_of(to("join", 0), first);
  token_of(to("join", 1), second);
  EXPECT(strcmp(first, second) != 0);
  /* A repeat has the same token. */
  expect_text(to("join", 2), "token", second, true);
  EXPECT(count_to("renew") == 4);
  for (size_t i = 1; i < 4; i++) EXPECT(number_in(to("renew", i), "session") == 42);
  /* Counted from the beginning of the join. */
  int64_t waited_ms = to("renew", 1)->at_ms - to("join", 1)->at_ms;
  EXPECT(waited_ms >= LEASE_MS / 3 && waited_ms < LEASE_MS / 3 + 100);
  closed(client);
}

/** A request finds that the first session has ended. */
static void end_at_a_request(const struct published *message) {
  if (is_to(message, "begin") && number_in(message, "session") == 41)
    error_after(1, message, "REJOIN", 0);
  else serve(message);
}

static void requests_under_the_next(void) {
  bool is_selected = false;
  begin(end_at_a_request);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_begin_init(client, false, 3000, &is_selected));
  EXPECT(is_selected && count_to("join") == 2 && count_to("begin") == 2);
  EXPECT(number_in(to("begin", 1), "session") == 42);
  closed(client);
}

/** Every session ends at once. */
static void end_every_session(const struct published *message) {
  if (is_to(message, "begin")) error_after(1, message, "REJOIN", 0);
  else serve(message);
}

static void gives_up_rejoining(void) {
  bool is_selected = false;
  begin(end_every_session);
  pserver_client *client = connected(0);
  EXPECT_ERROR(REJOIN, pserver_begin_init(client, false, 30000, &is_selected));
  EXPECT(count_to("begin") == 4 && count_to("join") == 4);
  closed(client);
}

/** The first session ends at a request, and the first attempt to rejoin gets an error. */
static void refuse_one_join(const struct published *message) {
  if (is_to(message, "join") && count_to("join") == 2) error_after(1, message, "BAD_VERSION", 0);
  else end_at_a_request(message);
}

static void fails_with_the_join(void) {
  bool is_selected = false;
  begin(refuse_one_join);
  pserver_client *client = connected(0);
  EXPECT_ERROR(BAD_VERSION, pserver_begin_init(client, false, 3000, &is_selected));
  EXPECT(count_to("join") == 2 && count_to("begin") == 1);
  EXPECT_OK(pserver_begin_init(client, false, 3000, &is_selected));
  EXPECT(is_selected && count_to("join") == 3 && number_in(to("begin", 2), "session") == 42);
  closed(client);
}

static void be_silent(const struct published *message) {
  if (!is_to(message, "status") || count_to("status") == 6) serve(message);
}

static void repeats_silence(void) {
  static const int64_t waits_ms[] = {1000, 2000, 4000, 4000, 4000};
  pserver_job_info info;
  begin(be_silent);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_job_status(client, &info, 60000));
  EXPECT(count_to("status") == 6);
  expect_gaps("status", 5, waits_ms);
  closed(client);
}

static void be_busy(const struct published *message) {
  if (!is_to(message, "status") || count_to("status") == 8) serve(message);
  else if (count_to("status") % 2 == 0) nobody_after(0, message);
  else error_after(0, message, "BUSY", 0);
}

static void pauses(void) {
  static const int64_t waits_ms[] = {50, 100, 200, 400, 500, 500, 500};
  pserver_job_info info;
  begin(be_busy);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_job_status(client, &info, 60000));
  EXPECT(count_to("status") == 8);
  expect_gaps("status", 7, waits_ms);
  closed(client);
}

static void answer_late(const struct published *message) {
  if (!is_to(message, "status") || count_to("status") > 1) serve(message);
}

static void asks_after_a_reconnect(void) {
  pserver_job_info info;
  begin(answer_late);
  pserver_client *client = connected(0);
  act_after(100, disconnect_now);
  act_after(200, reconnect_now);
  EXPECT_OK(pserver_job_status(client, &info, 60000));
  EXPECT(to("status", 1)->at_ms - to("status", 0)->at_ms < 300);
  closed(client);
}

static void say_nothing(const struct published *message) {
  if (is_to(message, "join") || is_to(message, "leave")) serve(message);
}

static void requests_end(void) {
  pserver_job_info info;
  begin(say_nothing);
  pserver_client *client = connected(0);
  int64_t start_ms = time_ms();
  EXPECT_ERROR(NO_HOST, pserver_job_status(client, &info, 3000));
  EXPECT(time_ms() - start_ms >= 3000 && time_ms() - start_ms < 3100);
  start_ms = time_ms();
  act_after(10, disconnect_now);
  EXPECT_ERROR(NO_BROKER, pserver_job_status(client, &info, 3000));
  EXPECT(time_ms() - start_ms < 3100);
  closed(client);
}

static void leaves(void) {
  begin(only_serve);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_close(client, 0));
  EXPECT(count_to("leave") == 1 && number_in(to("leave", 0), "session") == 41);
  begin(NULL);
}

static void leaves_when_lost(void) {
  begin(refuse_the_version);
  job.lease_ms = LEASE_MS;
  pserver_client *client = connected(0);
  run_until_lost(broker.client);
  EXPECT_ERROR(BAD_VERSION, get(client, 3000));
  EXPECT_OK(pserver_close(client, 0));
  EXPECT(count_to("leave") == 1 && number_in(to("leave", 0), "session") == 41);
  begin(NULL);
}

static void names_its_session(void) {
  struct ps_value session;
  bool is_selected = false;
  pserver_job_info info;
  begin(only_serve);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_job_status(client, &info, 3000));
  EXPECT_OK(pserver_begin_init(client, false, 3000, &is_selected));
  EXPECT(number_in(to("begin", 0), "session") == 41);
  EXPECT(!ps_map_find(&to("join", 0)->message.fields, "session", &session));
  EXPECT(!ps_map_find(&to("status", 0)->message.fields, "session", &session));
  closed(client);
}

/** Hosts say that the job was made anew. */
static void replace_at_renewal(const struct published *message) {
  if (is_to(message, "renew")) error_after(1, message, "JOB_REPLACED", 0);
  else serve(message);
}

/** The session is over, and hosts say when the client joins again that the job was made anew. */
static void replace_at_join(const struct published *message) {
  if (is_to(message, "begin")) error_after(1, message, "REJOIN", 0);
  else if (is_to(message, "join") && count_to("join") == 2) error_after(1, message, "JOB_REPLACED", 0);
  else serve(message);
}

static void can_do_nothing_more(pserver_client *client) {
  EXPECT_ERROR(JOB_REPLACED, push(client, 3000));
  EXPECT_ERROR(JOB_REPLACED, get(client, 3000));
  EXPECT(count_to(NULL) == 0 && count_to("status") == 0);
  closed(client);
}

static void another_job_ends_it(void) {
  struct ps_value none;
  bool is_selected;
  begin(replace_at_renewal);
  job.lease_ms = LEASE_MS;
  pserver_client *client = connected(0);
  EXPECT(!ps_map_find(&to("join", 0)->message.fields, "made", &none));
  run_until_lost(broker.client);
  expect_text(to("renew", 0), "made", job.made, true);
  can_do_nothing_more(client);

  begin(replace_at_join);
  client = connected(0);
  EXPECT_ERROR(JOB_REPLACED, pserver_begin_init(client, false, 3000, &is_selected));
  expect_text(to("join", 1), "made", job.made, true);
  can_do_nothing_more(client);
}

const struct scenario session_scenarios[] = {
    {"a trainer whose job was made anew is told so when it renews or joins again, and ends", another_job_ends_it},
    {"the lease is renewed every third of its time, and SUPERSEDED ends the client", renews},
    {"no renewal that fails for a time ends the session", nothing_transient_ends_it},
    {"a renewal that fails for good ends the client", a_final_error_ends_it},
    {"REJOIN has the client join under another token, and renew the new session", joins_anew},
    {"a request whose session has ended is made again under the next", requests_under_the_next},
    {"a request whose sessions all end is given up", gives_up_rejoining},
    {"a request whose client cannot join again fails with that error, and the next one tries again",
     fails_with_the_join},
    {"a request without an answer is repeated after 1, 2, 4, 4 s", repeats_silence},
    {"a request that nobody takes is asked again after 50 ms, doubled up to 500 ms", pauses},
    {"a request is repeated at once after a reconnect", asks_after_a_reconnect},
    {"a request ends at its deadline", requests_end},
    {"closing gives the lease back", leaves},
    {"closing a client that has failed gives the lease back", leaves_when_lost},
    {"requests name the session, except to join and for the status", names_its_session},
    {NULL, NULL}};
