/* Initialization of many parameters by one call. */
#include <string.h>

#include "scripted.h"

#define TIMEOUT_MS 20000
/** More parameters than one request can name. */
#define PARAMETERS 300
#define PER_REQUEST 256
/** As many parameters of 2 KiB as fit into a message of 256 KiB with 64 KiB of other entries. */
#define PER_SMALL_REQUEST 96

static char names[PARAMETERS][8];
static float values[2] = {1, 2};
/** The rejection of the first record of each shard; NULL: it is applied. */
static const char *first_code;

static void take_init(const struct published *message) {
  if (is_to(message, "declare")) {
    declared_after(50, message);
  } else if (!serve(message) && is_record(message)) {
    uint64_t n = number_in(message, "n");
    stored_after(1, message, 1, n);
    outcome_after(2, NULL,
                  (struct outcome){41, shard_in(message), 1, n, n, n == 1 ? first_code : NULL});
  }
}

static pserver_client *selected(void) {
  bool is_selected = false;
  begin(take_init);
  first_code = NULL;
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_begin_init(client, true, TIMEOUT_MS, &is_selected));
  EXPECT(is_selected);
  return client;
}

static pserver_status init(pserver_client *client, size_t first, size_t count) {
  pserver_new_parameter parameters[PARAMETERS];
  for (size_t i = 0; i < count; i++) {
    snprintf(names[i], sizeof names[i], "p%zu", first + i);
    parameters[i] = (pserver_new_parameter){
        names[i], {PSERVER_FLOAT32, 2, {1, 2}, values, sizeof values}, NULL};
  }
  return pserver_init_params(client, parameters, count, TIMEOUT_MS);
}

static size_t declared_in(size_t request) {
  struct ps_value list;
  EXPECT(ps_map_find(&to("declare", request)->message.fields, "parameters", &list));
  return list.count;
}

static void few_messages(void) {
  pserver_client *client = selected();
  EXPECT_OK(init(client, 0, PARAMETERS));
  /* The second request does not wait for the answer to the first. */
  EXPECT(count_to("declare") == 2 && to("declare", 1)->at_ms == to("declare", 0)->at_ms);
  EXPECT(declared_in(0) == PER_REQUEST && declared_in(1) == PARAMETERS - PER_REQUEST);
  EXPECT(count_to("batch") == 1 && count_to(NULL) == 1);
  closed(client);
}

/** The smallest limit: the host's reply, which is larger than the declarations, must fit, too. */
static void few_parameters_a_message(void) {
  begin(take_init);
  bool is_selected = false;
  broker.max_payload = 262144;
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_begin_init(client, true, TIMEOUT_MS, &is_selected));
  EXPECT_OK(init(client, 0, PARAMETERS));
  EXPECT(count_to("declare") == 4);
  for (size_t i = 0; i < 3; i++) EXPECT(declared_in(i) == PER_SMALL_REQUEST);
  EXPECT(declared_in(3) == PARAMETERS - 3 * PER_SMALL_REQUEST);
  closed(client);
}

/** Blocks of repeated attempts are sent singly, those of first attempts together. */
static void after_a_failure(void) {
  pserver_client *client = selected();
  first_code = "NON_FINITE";
  EXPECT_ERROR(NON_FINITE, init(client, 0, 10));
  EXPECT(count_to(NULL) == 1);
  EXPECT_OK(init(client, 5, 10));
  EXPECT(count_to("batch") == 2 && count_to(NULL) == 1 + 5 + 1);
  /* A parameter whose initialization has succeeded is no longer open. */
  EXPECT_OK(init(client, 5, 10));
  EXPECT(count_to("batch") == 3 && count_to(NULL) == 7 + 1);
  closed(client);
}

static void refuse_declarations(const struct published *message) {
  if (!is_to(message, "declare")) serve(message);
  else if (count_to("declare") == 1) error_after(1, message, "QUOTA", 0);
  else declared_after(1, message);
}

static void stores_nothing_unless_all_are_declared(void) {
  bool is_selected = false;
  begin(refuse_declarations);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_begin_init(client, true, TIMEOUT_MS, &is_selected));
  EXPECT_ERROR(QUOTA, init(client, 0, PARAMETERS));
  EXPECT(count_to(NULL) == 0);
  closed(client);
}

/** The error of the second request comes first. */
static void refuse_both(const struct published *message) {
  if (!is_to(message, "declare")) serve(message);
  else if (count_to("declare") == 1) error_after(9, message, "BAD_VALUE", 0);
  else error_after(1, message, "QUOTA", 0);
}

static void tells_the_first_error(void) {
  bool is_selected = false;
  begin(refuse_both);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_begin_init(client, true, TIMEOUT_MS, &is_selected));
  EXPECT_ERROR(QUOTA, init(client, 0, PARAMETERS));
  closed(client);
}

static void answer_no_declaration(const struct published *message) {
  if (!is_to(message, "declare")) serve(message);
}

static void ends_at_the_deadline(void) {
  bool is_selected = false;
  begin(answer_no_declaration);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_begin_init(client, true, TIMEOUT_MS, &is_selected));
  EXPECT_ERROR(NO_HOST, init(client, 0, PARAMETERS));
  EXPECT(count_to(NULL) == 0);
  closed(client);
}

/** This trainer is selected to create a parameter whose record gets no answer; the broker's hosts answer the rest. */
static void select_to_create(const struct published *message) {
  if (is_to(message, "create")) created_after(1, message);
  else serve(message);
}

static pserver_status create(pserver_client *client, int64_t timeout_ms) {
  pserver_tensor value = {PSERVER_FLOAT32, 2, {1, 2}, values, sizeof values};
  return pserver_create(client, "w", &value, NULL, timeout_ms, NULL);
}

static void expect_given_up(void) {
  struct ps_value name;
  EXPECT(count_to("abort") == 1 && number_in(to("abort", 0), "epoch") == job.epoch);
  EXPECT(ps_map_find(&to("abort", 0)->message.fields, "parameter", &name) && ps_value_is_text(&name, "w"));
}

static void gives_up_what_it_fails_to_create(void) {
  begin(select_to_create);
  pserver_client *client = connected(0);
  EXPECT_ERROR(OUTCOME_UNKNOWN, create(client, 1000));
  EXPECT(count_to(NULL) == 1);
  expect_given_up();
  closed(client);
}

static pserver_canceller *canceller;

static void cancel_now(void) { pserver_cancel(canceller); }

static void gives_up_when_cancelled(void) {
  begin(select_to_create);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_canceller_new(&canceller));
  pserver_use_canceller(canceller);
  act_after(500, cancel_now);
  EXPECT_ERROR(ABORTED, create(client, 30000));
  EXPECT(time_ms() < 1000);
  expect_given_up();
  pserver_canceller_rearm(canceller);
  closed(client);
  pserver_use_canceller(NULL);
  pserver_canceller_free(canceller);
}

const struct scenario init_scenarios[] = {
    {"a trainer that is selected to create a parameter and fails gives that up", gives_up_what_it_fails_to_create},
    {"so does one whose call is cancelled", gives_up_when_cancelled},
    {"many parameters are declared and stored with few messages", few_messages},
    {"no request has more parameters than a reply of the broker's largest message", few_parameters_a_message},
    {"after a failure what was tried before goes by itself", after_a_failure},
    {"nothing is stored unless all are declared", stores_nothing_unless_all_are_declared},
    {"of several errors the first to come is told", tells_the_first_error},
    {"declarations without an answer end at the deadline", ends_at_the_deadline},
    {NULL, NULL}};
