/* Renewals of the lease: those without an answer, and those of a client that can or shall do nothing more. */
#include <string.h>

#include "scripted.h"

#define LEASE_MS 6000

static void ignore_renewals(const struct published *message) {
  if (!is_to(message, "renew")) serve(message);
}

static void ends_with_the_lease(void) {
  /* Repeats after 1 and 2 s; the renewal ends 6 s after it began, and another one begins 2 s later. */
  static const int64_t waits_ms[] = {1000, 2000, 5000, 1000, 2000};
  begin(ignore_renewals);
  job.lease_ms = LEASE_MS;
  pserver_client *client = connected(0);
  run_for(3 * LEASE_MS);
  EXPECT(count_to("join") == 1);
  expect_gaps("renew", 5, waits_ms);
  closed(client);
}

/** Nobody answers renewals, and a request finds that the first session has ended. */
static void end_during_a_renewal(const struct published *message) {
  if (is_to(message, "begin") && number_in(message, "session") == 41) {
    error_after(1, message, "REJOIN", 0);
  } else {
    ignore_renewals(message);
  }
}

static void one_at_a_time(void) {
  static const int64_t waits_ms[] = {1000, 2000, 5000};
  bool is_selected = false;
  begin(end_during_a_renewal);
  job.lease_ms = LEASE_MS;
  pserver_client *client = connected(0);
  run_for(LEASE_MS / 3 + 500);
  EXPECT(count_to("renew") == 1);
  EXPECT_OK(pserver_begin_init(client, false, 3000, &is_selected));
  EXPECT(count_to("join") == 2);
  run_for(2 * LEASE_MS);
  expect_gaps("renew", 3, waits_ms);
  for (size_t i = 1; i < 4; i++) EXPECT(number_in(to("renew", i), "session") == 42);
  closed(client);
}

/** Nobody answers renewals, and records find that another session has joined. */
static void be_superseded(const struct published *message) {
  if (is_record(message)) outcome_after(1, NULL, (struct outcome){41, 0, 1, 1, 7, "SUPERSEDED"});
  else ignore_renewals(message);
}

/** Another session joins before the first renewal, or while it waits for its answer. */
static void end_by_another(bool is_renewing) {
  const char *text;
  begin(be_superseded);
  job.lease_ms = LEASE_MS;
  pserver_client *client = connected(0);
  if (is_renewing) run_for(LEASE_MS / 3 + 500);
  EXPECT(count_to("renew") == is_renewing);
  EXPECT_ERROR(SUPERSEDED, push(client, 3000));
  EXPECT_ERROR(SUPERSEDED, get(client, 3000));
  pserver_last_error(&text);
  EXPECT(strstr(text, "trainer \"t\": a newer session has joined under this id") != NULL);
  if (is_renewing) serve(to("renew", 0));
  run_for(3 * LEASE_MS);
  EXPECT(count_to("renew") == is_renewing && count_to("join") == 1);
  closed(client);
}

static void superseded(void) {
  end_by_another(false);
  end_by_another(true);
}

static void only_join(const struct published *message) {
  if (is_to(message, "join")) serve(message);
}

static void closing(void) {
  begin(only_join);
  job.lease_ms = LEASE_MS;
  pserver_client *client = connected(0);
  run_for(LEASE_MS / 3 + 500);
  EXPECT(count_to("renew") == 1);
  int64_t start_ms = time_ms();
  EXPECT_OK(pserver_close(client, 0));
  /* It waited for the answer to "leave" for longer than the renewal would have waited for its repeat. */
  EXPECT(time_ms() - start_ms >= 1000);
  EXPECT(count_to("leave") == 1 && count_to("renew") == 1);
  begin(NULL);
}

const struct scenario renewal_scenarios[] = {
    {"a renewal without an answer ends after the time of the lease, and the next one follows",
     ends_with_the_lease},
    {"a renewal under way goes on in the next session, and no second one begins", one_at_a_time},
    {"a client that was superseded renews no longer, and says who has joined", superseded},
    {"a client that is being closed renews no longer", closing},
    {NULL, NULL}};
