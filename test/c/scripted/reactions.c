/* The reactions of the client to each code in the answer to each kind of request. */
#include <string.h>

#include "scripted.h"
#include "wire/wire.h"
/* Tables of the types above. */
#include "vectors.h"

#define TIMEOUT_MS 20000

/** The code of the first answer; later answers are without errors. */
static const char *code;

static bool refuse_first(const struct published *message, const char *verb) {
  if (!is_to(message, verb) || count_to(verb) > 1) return false;
  error_after(1, message, code, strcmp(code, "JOURNAL_REPLACED") == 0 ? 2 : 0);
  return true;
}

static void at_lifecycle(const struct published *message) {
  if (!refuse_first(message, "begin")) serve(message);
}

static void at_pull(const struct published *message) {
  if (serve(message) || refuse_first(message, "pull")) return;
  pulled_after(1, message, 2, 0);
}

static void new_step_after(const struct published *message) {
  struct ps_draft draft;
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "generation", 2);
  ps_draft_whole(&draft, "seq", 0);
  ps_draft_whole(&draft, "revision", 1);
  ps_draft_whole(&draft, "step", 0);
  EXPECT_OK(ps_draft_end(&draft));
  bytes_after(1, message->reply, draft.buffer.data, draft.buffer.size);
  ps_draft_release(&draft);
}

static void at_step(const struct published *message) {
  if (serve(message) || refuse_first(message, "step")) return;
  if (is_to(message, "step")) {
    new_step_after(message);
  } else if (is_record(message)) {
    stored_after(1, message, 1, 1);
    applied_after(2, message, 1);
  }
}

static void at_outcome(const struct published *message) {
  if (serve(message) || refuse_first(message, "outcome")) return;
  bool is_old = number_in(message, "session") == 41;
  if (is_record(message)) {
    stored_after(1, message, 1, 1);
    if (!is_old) applied_after(2, message, 1);
  } else {
    outcome_after(1, message, (struct outcome){41, 0, 1, 1, 1, NULL});
  }
}

/** The outcome of the first session's record is the error. */
static void at_record(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  uint64_t session = number_in(message, "session");
  stored_after(1, message, 1, 1);
  outcome_after(2, NULL, (struct outcome){session, 0, 1, 1, 1, session == 41 ? code : NULL});
}

/** Whether the client has failed for good after the call. */
static bool has_ended(void) { return broker.client->calls.error.code != PSERVER_OK; }

/** Determines what the client did about the first answer to `verb`, from what it published, and when. */
static const char *observed(const char *verb, pserver_status status, pserver_status expected) {
  if (has_ended()) return count_to(verb) == 1 && status == expected ? "end" : "died";
  if (count_to("join") > 1) return "rejoin";
  if (count_to(verb) == 1) return status == expected ? "fail" : "another failure";
  if (status != PSERVER_OK) return "failed later";
  const struct published *second = to(verb, 1);
  uint64_t generation = 0;
  ps_map_whole(&second->message.fields, "generation", &generation);
  if (count_to("status") > 1) return "look-up";
  if (count_to("enter") > 1) return "enter";
  if (generation == 2) return "replaced";
  int64_t gap_ms = second->at_ms - to(verb, 0)->at_ms;
  return gap_ms < 50 ? "again without a pause" : gap_ms < 400 ? "again" : "later";
}

static const char *ask(const char *kind, pserver_status expected) {
  bool is_selected;
  pserver_client *client;
  const char *seen;
  if (strcmp(kind, "lifecycle") == 0) {
    begin(at_lifecycle);
    client = connected(0);
    seen = observed("begin", pserver_begin_init(client, false, TIMEOUT_MS, &is_selected), expected);
  } else if (strcmp(kind, "pull") == 0) {
    begin(at_pull);
    client = connected(0);
    seen = observed("pull", get(client, TIMEOUT_MS), expected);
  } else if (strcmp(kind, "step") == 0) {
    begin(at_step);
    job.mode = "sync";
    job.shards = 1;
    client = connected(0);
    seen = observed("step", pserver_end_step(client, TIMEOUT_MS), expected);
  } else if (strcmp(kind, "outcome") == 0) {
    begin(at_outcome);
    client = connected(0);
    seen = observed("outcome", push(client, TIMEOUT_MS), expected);
  } else {
    begin(at_record);
    client = connected(0);
    seen = observed(NULL, push(client, TIMEOUT_MS), expected);
  }
  closed(client);
  return seen;
}

static void reacts(void) {
  size_t differences = 0;
  for (size_t i = 0; i < sizeof reactions / sizeof reactions[0]; i++) {
    code = reactions[i].code;
    const char *seen = ask(reactions[i].kind, reactions[i].status);
    if (strcmp(seen, reactions[i].reaction) == 0) continue;
    fprintf(stderr, "%s, %s: expected %s; observed %s\n", reactions[i].kind, code, reactions[i].reaction,
            seen);
    differences++;
  }
  EXPECT(differences == 0);
}

const struct scenario reaction_scenarios[] = {
    {"every code of an error does what the shared vectors say", reacts}, {NULL, NULL}};
