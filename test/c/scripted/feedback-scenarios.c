/* Gradients in int8 and e3m0: what rounding leaves out of one is added to the next one, and when that is forgotten. */
#include <math.h>
#include <string.h>

#include "scripted.h"

/** Elements of "w": a whole group, and a part of one. */
#define ELEMENTS 300
#define GROUPS 2

/** What rounding has left out, as the protocol says. */
static float left_out[ELEMENTS];

static void fill(float values[ELEMENTS], float seed) {
  for (size_t i = 0; i < ELEMENTS; i++) values[i] = sinf(seed + (float)i) * (float)(i % 7);
}

/** Encodes a gradient with what was left out before, and keeps what is left out now. */
static size_t expect_encoded(pserver_encoding encoding, const float values[ELEMENTS], uint8_t *bytes) {
  uint8_t *codes = bytes + GROUPS * sizeof(float);
  for (size_t group = 0; group < GROUPS; group++) {
    float sum[PS_GROUP_ELEMENTS] = {0};
    float sent[PS_GROUP_ELEMENTS];
    float *kept = left_out + group * PS_GROUP_ELEMENTS;
    size_t count = group == 0 ? PS_GROUP_ELEMENTS : ELEMENTS - PS_GROUP_ELEMENTS;
    for (size_t i = 0; i < count; i++) sum[i] = values[group * PS_GROUP_ELEMENTS + i] + kept[i];
    ps_encode_group(encoding, sum, count, bytes + group * sizeof(float), codes);
    EXPECT(ps_decode_group(encoding, bytes + group * sizeof(float), codes, count, sent));
    for (size_t i = 0; i < count && isfinite(sent[0]); i++) kept[i] = sum[i] - sent[i];
    codes += ps_code_bytes(encoding, count);
  }
  return (size_t)(codes - bytes);
}

/** Whether a record has the gradient and what was left out before; notes what is left out now. */
static bool has_gradient(const struct published *record, pserver_encoding encoding, const float values[ELEMENTS]) {
  uint8_t expected[GROUPS * sizeof(float) + ELEMENTS];
  size_t bytes = expect_encoded(encoding, values, expected);
  return record->message.data_bytes == bytes && memcmp(record->message.data, expected, bytes) == 0;
}

static pserver_grad_options options_for(pserver_encoding encoding) {
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = true;
  options.learning_rate = 1;
  options.stored_is_enough = true;
  options.encoding = encoding;
  return options;
}

static pserver_status send_grad(pserver_client *client, const pserver_grad_options *options, float values[ELEMENTS],
                           int64_t timeout_ms) {
  pserver_tensor value = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, values, ELEMENTS * sizeof(float)};
  pserver_gradient grad = {"w", value, NULL, 0};
  return pserver_send_grads(client, &grad, 1, options, timeout_ms);
}

static void store(const struct published *message) {
  if (!serve(message) && is_record(message)) stored_after(1, message, 1, count_to(NULL));
}

static void begin_with(take_message take) {
  begin(take);
  job.row_elements = ELEMENTS;
  memset(left_out, 0, sizeof left_out);
}

static pserver_client *connected_with(take_message take) {
  begin_with(take);
  return connected(0);
}

static void added_to_the_next(void) {
  const pserver_encoding encodings[] = {PSERVER_ENCODING_INT8, PSERVER_ENCODING_E3M0, PSERVER_ENCODING_INT8};
  pserver_client *client = connected_with(store);
  for (size_t i = 0; i < 3; i++) {
    float values[ELEMENTS];
    fill(values, (float)i);
    pserver_grad_options options = options_for(encodings[i]);
    EXPECT_OK(send_grad(client, &options, values, 3000));
    EXPECT(has_gradient(to(NULL, i), encodings[i], values));
  }
  EXPECT(left_out[1] != 0);
  closed(client);
}

static void not_where_it_is_off(void) {
  float values[ELEMENTS];
  float kept[ELEMENTS];
  fill(values, 1);
  pserver_client *client = connected_with(store);
  pserver_grad_options options = options_for(PSERVER_ENCODING_E3M0);
  EXPECT_OK(send_grad(client, &options, values, 3000));
  EXPECT(has_gradient(to(NULL, 0), options.encoding, values));
  memcpy(kept, left_out, sizeof kept);
  options.no_error_feedback = true;
  EXPECT_OK(send_grad(client, &options, values, 3000));
  memset(left_out, 0, sizeof left_out);
  EXPECT(has_gradient(to(NULL, 1), options.encoding, values));
  /* Nor with encodings in which each element stands for itself. */
  pserver_grad_options exact = options_for(PSERVER_AS_IS);
  EXPECT_OK(send_grad(client, &exact, values, 3000));
  EXPECT(memcmp(to(NULL, 2)->message.data, values, sizeof values) == 0);
  /* What was kept before is still there. */
  memcpy(left_out, kept, sizeof kept);
  options.no_error_feedback = false;
  EXPECT_OK(send_grad(client, &options, values, 3000));
  EXPECT(has_gradient(to(NULL, 3), options.encoding, values));
  closed(client);
}

/** Stores a record the second time that it comes. */
static void store_repeats(const struct published *message) {
  if (!serve(message) && is_record(message) && count_to(NULL) % 2 == 0) {
    stored_after(1, message, 1, count_to(NULL));
  }
}

static void repeated_alike(void) {
  float values[ELEMENTS];
  fill(values, 2);
  pserver_client *client = connected_with(store_repeats);
  pserver_grad_options options = options_for(PSERVER_ENCODING_INT8);
  for (size_t i = 0; i < 2; i++) {
    EXPECT_OK(send_grad(client, &options, values, 20000));
    EXPECT(count_to(NULL) == 2 * i + 2);
    EXPECT(has_gradient(to(NULL, 2 * i), options.encoding, values));
    EXPECT(to(NULL, 2 * i)->count == to(NULL, 2 * i + 1)->count);
    EXPECT(memcmp(to(NULL, 2 * i)->bytes, to(NULL, 2 * i + 1)->bytes, to(NULL, 2 * i)->count) == 0);
  }
  closed(client);
}

/** Whether shards say that the step before has closed. */
static bool is_open;

static void store_in_open_steps(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "step") && is_open) step_after(1, message, 0);
  if (is_record(message)) stored_after(1, message, 1, count_to(NULL));
}

static void kept_where_nothing_is_sent(void) {
  float values[ELEMENTS];
  float other[ELEMENTS];
  fill(values, 3);
  fill(other, 4);
  begin_with(store_in_open_steps);
  job.mode = "sync";
  is_open = true;
  pserver_client *client = connected(0);
  pserver_grad_options options = options_for(PSERVER_ENCODING_E3M0);
  options.end_step = false;
  EXPECT_OK(send_grad(client, &options, values, 3000));
  EXPECT(has_gradient(to(NULL, 0), options.encoding, values));
  /* A gradient that is refused before it is sent changes nothing. */
  other[ELEMENTS - 1] = INFINITY;
  EXPECT_ERROR(NON_FINITE, send_grad(client, &options, other, 3000));
  EXPECT_OK(pserver_exit_steps(client, 3000));
  is_open = false;
  EXPECT_ERROR(TIMEOUT, send_grad(client, &options, values, 3000));
  EXPECT(count_to(NULL) == 1);
  is_open = true;
  EXPECT_OK(send_grad(client, &options, values, 3000));
  EXPECT(has_gradient(to(NULL, 1), options.encoding, values));
  closed(client);
}

static void forgotten_after_a_fallback(void) {
  float values[ELEMENTS];
  fill(values, 5);
  pserver_client *client = connected_with(store);
  pserver_grad_options options = options_for(PSERVER_ENCODING_INT8);
  EXPECT_OK(send_grad(client, &options, values, 3000));
  EXPECT(has_gradient(to(NULL, 0), options.encoding, values));
  /* Another shard, which has none of the parameter, is found in its second journal. */
  outcome_after(100, NULL, (struct outcome){41, 1, 1, 9, 1, NULL});
  outcome_after(100, NULL, (struct outcome){41, 1, 2, 9, 1, NULL});
  run_for(200);
  EXPECT(broker.client->sender.residuals.count == 0);
  EXPECT_OK(send_grad(client, &options, values, 3000));
  memset(left_out, 0, sizeof left_out);
  EXPECT(has_gradient(to(NULL, 1), options.encoding, values));
  closed(client);
}

static const char *guard_action;

/** A guard rejects, clips or sets aside the first record. */
static void guard_first(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  uint64_t n = number_in(message, "n");
  stored_after(1, message, 1, n);
  if (n > 1) applied_after(2, message, n);
  else if (guard_action == NULL) settled_after(2, message, n, "GUARDED", "");
  else guarded_after(2, message, n, guard_action);
}

static void forgotten_after_a_guard(void) {
  static const char *const actions[] = {NULL, "clip", "set-aside"};
  for (size_t i = 0; i < 3; i++) {
    float values[ELEMENTS];
    fill(values, 5);
    guard_action = actions[i];
    pserver_client *client = connected_with(guard_first);
    pserver_grad_options options = options_for(PSERVER_ENCODING_INT8);
    options.stored_is_enough = i == 2;
    pserver_status sent = send_grad(client, &options, values, 3000);
    EXPECT(sent == (guard_action == NULL ? PSERVER_ERR_GUARDED : PSERVER_OK));
    run_for(10);
    EXPECT(broker.client->sender.residuals.count == 0);
    EXPECT_OK(send_grad(client, &options, values, 3000));
    memset(left_out, 0, sizeof left_out);
    EXPECT(has_gradient(to(NULL, 1), options.encoding, values));
    EXPECT(broker.client->sender.residuals.count == 1);
    closed(client);
  }
}

/** The parameter has been initialized again since the first gradient. */
static void store_anew(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  stored_after(1, message, 1, count_to(NULL));
  bool is_stale = number_in(message, "epoch") != job.epoch;
  settled_after(2, message, count_to(NULL), is_stale ? "STALE_EPOCH" : NULL, "");
}

static void forgotten_when_initialized_again(void) {
  float values[ELEMENTS];
  fill(values, 6);
  pserver_client *client = connected_with(store_anew);
  pserver_grad_options options = options_for(PSERVER_ENCODING_INT8);
  options.stored_is_enough = false;
  EXPECT_OK(send_grad(client, &options, values, 3000));
  EXPECT(has_gradient(to(NULL, 0), options.encoding, values));
  job.epoch++;
  EXPECT_ERROR(STALE_EPOCH, send_grad(client, &options, values, 3000));
  EXPECT_OK(send_grad(client, &options, values, 3000));
  memset(left_out, 0, sizeof left_out);
  EXPECT(has_gradient(to(NULL, 2), options.encoding, values));
  EXPECT(broker.client->sender.residuals.count == 1);
  closed(client);
}

/** The parameter is looked up again, and is the same. */
static void kept_when_looked_up_again(void) {
  float values[ELEMENTS];
  struct ps_parameter *found = NULL;
  const char *name = "w";
  const char *missing;
  fill(values, 7);
  pserver_client *client = connected_with(store);
  pserver_grad_options options = options_for(PSERVER_ENCODING_INT8);
  for (size_t i = 0; i < 2; i++) {
    EXPECT_OK(send_grad(client, &options, values, 3000));
    EXPECT(has_gradient(to(NULL, i), options.encoding, values));
    EXPECT(ps_parameters_take(&broker.client->parameters, &name, 1, &found, &missing, 1) == 0);
    ps_forget_parameters(&broker.client->parameters, &found, 1);
    ps_parameters_unref(&found, 1);
  }
  EXPECT(count_to("status") == 2);
  closed(client);
}

#define ROW_ELEMENTS 30
#define ROWS 10

/** Rows keep what is left out of them; their groups are those of the rows that a record has. */
static void kept_by_row(void) {
  float values[2 * ROW_ELEMENTS];
  for (size_t i = 0; i < 2 * ROW_ELEMENTS; i++) values[i] = sinf((float)i);
  begin_with(store);
  job.row_elements = ROW_ELEMENTS;
  job.block_rows = ROWS;
  job.config_entry = "sparse";
  pserver_client *client = connected(0);
  pserver_grad_options options = options_for(PSERVER_ENCODING_E3M0);
  const int64_t lists[][2] = {{7, 2}, {2, 3}, {3, -3}};
  for (size_t call = 0; call < 3; call++) {
    pserver_tensor value = {PSERVER_FLOAT32, 2, {2, ROW_ELEMENTS}, values, sizeof values};
    pserver_gradient grad = {"w", value, lists[call], 2};
    EXPECT_OK(pserver_send_grads(client, &grad, 1, &options, 3000));
    float sum[PS_GROUP_ELEMENTS] = {0};
    float sent[PS_GROUP_ELEMENTS];
    uint8_t expected[sizeof(float) + ROW_ELEMENTS];
    bool is_descending = lists[call][0] == 7;
    for (size_t row = 0; row < 2; row++) {
      int64_t number = (lists[call][is_descending ? 1 - row : row] + ROWS) % ROWS;
      for (size_t i = 0; i < ROW_ELEMENTS; i++) {
        sum[row * ROW_ELEMENTS + i] = values[(is_descending ? 1 - row : row) * ROW_ELEMENTS + i] +
                                      left_out[(size_t)number * ROW_ELEMENTS + i];
      }
    }
    ps_encode_group(options.encoding, sum, 2 * ROW_ELEMENTS, expected, expected + sizeof(float));
    ps_decode_group(options.encoding, expected, expected + sizeof(float), 2 * ROW_ELEMENTS, sent);
    for (size_t row = 0; row < 2; row++) {
      int64_t number = (lists[call][is_descending ? 1 - row : row] + ROWS) % ROWS;
      for (size_t i = 0; i < ROW_ELEMENTS; i++) {
        left_out[(size_t)number * ROW_ELEMENTS + i] = sum[row * ROW_ELEMENTS + i] - sent[row * ROW_ELEMENTS + i];
      }
    }
    /* Two row numbers, and the elements behind them. */
    const struct ps_message *message = &to(NULL, call)->message;
    EXPECT(message->data_bytes == 8 + sizeof expected);
    EXPECT(memcmp(message->data + 8, expected, sizeof expected) == 0);
  }
  closed(client);
}

/** All blocks of a gradient that is clipped have the norm of what all of it decodes to. */
static void norm_of_what_is_sent(void) {
  float values[2 * ELEMENTS];
  fill(values, 8);
  fill(values + ELEMENTS, 9);
  begin_with(store);
  job.blocks = 2;
  job.config_entry = "clipNorm";
  pserver_client *client = connected(0);
  pserver_grad_options options = options_for(PSERVER_ENCODING_E3M0);
  for (size_t call = 0; call < 2; call++) {
    pserver_tensor value = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, values, sizeof values};
    pserver_gradient grad = {"w", value, NULL, 0};
    EXPECT_OK(pserver_send_grads(client, &grad, 1, &options, 3000));
    double squares = 0;
    for (size_t block = 0; block < 2; block++) {
      float sent[ELEMENTS];
      const struct ps_message *message = &to(NULL, 2 * call + block)->message;
      EXPECT(ps_decode_elements(options.encoding, message->data, ELEMENTS, sent));
      for (size_t i = 0; i < ELEMENTS; i++) squares += (double)sent[i] * (double)sent[i];
    }
    for (size_t block = 0; block < 2; block++) {
      struct ps_value norm;
      EXPECT(ps_map_find(&to(NULL, 2 * call + block)->message.fields, "norm", &norm));
      EXPECT(fabs(norm.number - sqrt(squares)) < 1e-9 * sqrt(squares));
    }
  }
  closed(client);
}

/** A group that is not finite is sent as it is, and keeps what was left out of it before. */
static void kept_by_groups_that_are_not_finite(void) {
  float values[ELEMENTS];
  float other[ELEMENTS];
  fill(values, 10);
  memcpy(other, values, sizeof other);
  other[3] = NAN;
  begin_with(store);
  job.config_entry = "allowNonFinite";
  pserver_client *client = connected(0);
  pserver_grad_options options = options_for(PSERVER_ENCODING_INT8);
  float *const gradients[] = {values, other, values};
  for (size_t i = 0; i < 3; i++) {
    EXPECT_OK(send_grad(client, &options, gradients[i], 3000));
    EXPECT(has_gradient(to(NULL, i), options.encoding, gradients[i]));
  }
  closed(client);
}

const struct scenario feedback_scenarios[] = {
    {"what rounding leaves out of a gradient is added to the next one", added_to_the_next},
    {"it is neither added nor kept where error feedback is off", not_where_it_is_off},
    {"a record is repeated with the bytes that it had, and its rounding error counts once", repeated_alike},
    {"a gradient of which nothing is sent leaves it as it was", kept_where_nothing_is_sent},
    {"after a fallback of any shard it is forgotten", forgotten_after_a_fallback},
    {"after a guard has held a gradient back or clipped it, it is forgotten", forgotten_after_a_guard},
    {"when the parameter is initialized again it is forgotten", forgotten_when_initialized_again},
    {"when the parameter is looked up again it is kept", kept_when_looked_up_again},
    {"it is kept of the rows that a gradient has", kept_by_row},
    {"the norm of a gradient is that of what it decodes to", norm_of_what_is_sent},
    {"a group that is not finite leaves it as it was", kept_by_groups_that_are_not_finite},
    {NULL, NULL}};
