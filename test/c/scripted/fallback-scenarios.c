/* Fallbacks: gradients that the shard rejects as too early, or as made from an undone version, are sent
 * again. */
#include "scripted.h"

static struct outcome outcome_of(const struct published *record, const char *code) {
  return (struct outcome){.session = number_in(record, "session"),
                          .shard = shard_in(record),
                          .generation = 1,
                          .n = number_in(record, "n"),
                          .seq = count_to(NULL),
                          .code = code};
}

/** The first gradient is rejected with this code. */
static const char *first_code;

static void refuse_first(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "step")) {
    step_after(1, message, 0);
  } else if (is_to(message, "pull")) {
    pulled_after(1, message, 1, 0);
  } else if (is_record(message)) {
    stored_after(1, message, 1, count_to(NULL));
    bool is_first = count_to("0") == 1 && !is_to(message, "clock");
    outcome_after(2, NULL, outcome_of(message, is_first ? first_code : NULL));
  }
}

static pserver_status send_grad(pserver_client *client, size_t *late) {
  float values[2] = {1, 2};
  pserver_tensor value = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, values, sizeof values};
  pserver_gradient grad = {"w", value, NULL, 0};
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = true;
  options.learning_rate = 1;
  options.late_blocks = late;
  return pserver_send_grads(client, &grad, 1, &options, 20000);
}

static void early(void) {
  size_t late = 7;
  begin(refuse_first);
  first_code = "EARLY";
  job.mode = "sync";
  pserver_client *client = connected(0);
  EXPECT_OK(send_grad(client, &late));
  EXPECT(late == 0 && count_to("enter") == 2 && count_to("0") == 2);
  /* The step is still the trainer's own: 1. */
  EXPECT(number_in(to("0", 0), "step") == 1 && number_in(to("0", 1), "step") == 1);
  EXPECT(number_in(to("0", 1), "n") == number_in(to("0", 0), "n") + 1);
  EXPECT(broker.client->steps.core.ended == 1);
  closed(client);
}

static void refuse_always(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "step")) {
    step_after(1, message, 0);
  } else if (is_record(message)) {
    stored_after(1, message, 1, count_to(NULL));
    outcome_after(2, NULL, outcome_of(message, is_to(message, "clock") ? NULL : "EARLY"));
  }
}

static void early_again(void) {
  begin(refuse_always);
  job.mode = "sync";
  pserver_client *client = connected(0);
  EXPECT_ERROR(EARLY, send_grad(client, NULL));
  EXPECT(count_to("enter") == 2 && count_to("0") == 2);
  closed(client);
}

static bool names_version(const struct published *record) {
  uint64_t seen;
  return ps_map_whole(&record->message.fields, "seen", &seen);
}

static void undone(void) {
  begin(refuse_first);
  first_code = "BAD_VALUE";
  pserver_client *client = connected(0);
  EXPECT_OK(get(client, 3000));
  EXPECT_OK(send_grad(client, NULL));
  EXPECT(count_to("0") == 2);
  EXPECT(names_version(to("0", 0)) && !names_version(to("0", 1)));
  EXPECT(number_in(to("0", 1), "n") == number_in(to("0", 0), "n") + 1);
  closed(client);
}

static void no_version(void) {
  begin(refuse_first);
  first_code = "BAD_VALUE";
  /* Nothing was read before. */
  pserver_client *client = connected(0);
  EXPECT_ERROR(BAD_VALUE, send_grad(client, NULL));
  EXPECT(count_to("0") == 1 && !names_version(to("0", 0)));
  closed(client);
}

/** The first clock is rejected with a code that is about a parameter, of which a clock has none. */
static void reject_a_clock(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "step")) {
    step_after(1, message, 0);
  } else if (is_record(message)) {
    stored_after(1, message, 1, count_to(NULL));
    bool is_rejected = count_to("clock") == 1 && is_to(message, "clock");
    outcome_after(2, NULL, outcome_of(message, is_rejected ? "STALE_EPOCH" : NULL));
  }
}

static void stale_clock(void) {
  begin(reject_a_clock);
  job.mode = "sync";
  pserver_client *client = connected(0);
  EXPECT_ERROR(STALE_EPOCH, pserver_end_step(client, 20000));
  EXPECT(broker.client->steps.core.ended == 0);
  EXPECT_OK(pserver_end_step(client, 20000));
  EXPECT(broker.client->steps.core.ended == 1 && count_to("enter") == 1);
  closed(client);
}

const struct scenario fallback_scenarios[] = {
    {"a gradient that a shard finds too early is sent again, once it has entered anew", early},
    {"one that is too early then, too, is refused", early_again},
    {"a gradient whose version was undone is sent again without it, under another number", undone},
    {"a gradient that names no version and is refused is not sent again", no_version},
    {"a clock that is rejected as of an older epoch fails the call, and the step stays open", stale_clock},
    {NULL, NULL}};
