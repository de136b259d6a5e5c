/* Publishing: what the broker takes no longer, or denies, while records of a call are under way. */
#include <string.h>

#include "scripted.h"

#define PART_ROWS ((size_t)60000)

static void only_serve(const struct published *message) { serve(message); }

static void take_at_once(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  stored_after(0, message, 1, count_to(NULL));
  applied_after(0, message, count_to(NULL));
}

/** Adds to 60,000 rows of one element each, of 100,000. */
static pserver_status push_part(pserver_client *client, int64_t timeout_ms) {
  int64_t *rows = malloc(PART_ROWS * sizeof *rows);
  float *values = calloc(PART_ROWS, sizeof *values);
  int64_t column = 1;
  for (size_t i = 0; i < PART_ROWS; i++) rows[i] = (int64_t)i;
  pserver_indices indices[2] = {{rows, PART_ROWS}, {&column, 1}};
  pserver_tensor part = {PSERVER_FLOAT32, 2, {PART_ROWS, 1}, values, PART_ROWS * sizeof *values};
  pserver_status status = pserver_push_part(client, "w", &part, indices, 2, 0, 1, timeout_ms);
  free(rows);
  free(values);
  return status;
}

/** The next broker takes less. */
static void reconnect_to_another(void) {
  broker.max_payload = 262144;
  reconnect_now();
}

static void cut_after_a_reconnect(void) {
  begin(take_at_once);
  job.block_rows = 100000;
  pserver_client *client = connected(0);
  EXPECT_OK(push_part(client, 3000));
  EXPECT(count_to(NULL) == 1);
  disconnect_now();
  reconnect_to_another();
  run_for(100);
  EXPECT_OK(push_part(client, 3000));
  EXPECT(count_to(NULL) == 1 + 3);
  closed(client);
}

static void batches_after_a_reconnect(void) {
  begin(take_at_once);
  job.blocks = 5;
  pserver_client *client = connected(0);
  EXPECT_OK(push(client, 3000));
  EXPECT(count_to(NULL) == 2 && count_to("batch") == 2);
  /* Two blocks and the largest header of a batch are longer. */
  disconnect_now();
  reconnect_now();
  broker.max_payload = 1024;
  run_for(100);
  EXPECT_OK(push(client, 3000));
  EXPECT(count_to(NULL) == 2 + 5 && count_to("batch") == 2);
  closed(client);
}

static void too_large_for_another(void) {
  begin(only_serve);
  job.block_rows = 100000;
  pserver_client *client = connected(0);
  act_after(100, disconnect_now);
  act_after(200, reconnect_to_another);
  EXPECT_ERROR(TOO_LARGE, push_part(client, 30000));
  EXPECT(time_ms() < 1000 && count_to(NULL) == 1);
  closed(client);
}

/** The broker denies publishing to the subject of the last record. */
static void deny_the_last(void) {
  char text[256];
  snprintf(text, sizeof text, "Permissions Violation for Publish to \"%s\"",
           to(NULL, count_to(NULL) - 1)->subject);
  free(broker.error);
  broker.error = strdup(text);
  broker.on_error(CONNECTION, SUBSCRIPTION, NATS_NOT_PERMITTED, broker.connection);
}

static void denied_in_pieces(void) {
  begin(only_serve);
  job.block_rows = 100000;
  broker.max_payload = 262144;
  pserver_client *client = connected(0);
  speed_up();
  act_after(50, deny_the_last);
  EXPECT_ERROR(DENIED, push_part(client, 30000));
  EXPECT(time_ms() < 1000 && count_to(NULL) == 3);
  closed(client);
}

static void denied_after_the_call(void) {
  begin(only_serve);
  pserver_client *client = connected(0);
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 100));
  EXPECT(count_to(NULL) == 1);
  /* The record of the first call may still be in the connection's buffers, that of the second one is, too. */
  act_after(50, deny_the_last);
  EXPECT_ERROR(DENIED, push(client, 3000));
  EXPECT(count_to(NULL) == 2);
  closed(client);
}

const struct scenario publish_scenarios[] = {
    {"a part is cut into what the broker takes since the last reconnect", cut_after_a_reconnect},
    {"a batch is not larger than what the broker takes since the last reconnect",
     batches_after_a_reconnect},
    {"a record that is too large for the broker of the last reconnect fails its call at once",
     too_large_for_another},
    {"a denied subject ends all records of a call that go to it", denied_in_pieces},
    {"a denied subject ends a call, and leaves those that are over", denied_after_the_call},
    {NULL, NULL}};
