/* A canceller ends every kind of wait of a call at once. */
#include "scripted.h"

#define LATER_MS 500

static pserver_canceller *canceller;

static void cancel(void) { pserver_cancel(canceller); }

static void only_serve(const struct published *message) { serve(message); }

static void store(const struct published *message) {
  if (!serve(message) && is_record(message)) stored_after(10, message, 1, 7);
}

/** Other trainers have not ended the step. */
static void wait_for_others(const struct published *message) {
  if (serve(message) || !is_to(message, "step")) return;
  if (number_in(message, "step") == 0) step_after(1, message, 0);
}

/** A client whose calls obey the canceller, which is cancelled later. */
static pserver_client *cancelled_later(void) {
  EXPECT_OK(pserver_canceller_new(&canceller));
  pserver_client *client = connected(0);
  pserver_use_canceller(canceller);
  act_after(LATER_MS, cancel);
  return client;
}

/** Checks after a call that it was ended in time, and that the next one is not. */
static void end(pserver_client *client, int64_t start_ms) {
  EXPECT(time_ms() - start_ms >= LATER_MS && time_ms() - start_ms < LATER_MS + 100);
  pserver_canceller_rearm(canceller);
  pserver_job_info info;
  EXPECT_OK(pserver_job_status(client, &info, 3000));
  pserver_use_canceller(NULL);
  pserver_canceller_free(canceller);
  closed(client);
}

static void no_ack(void) {
  begin(only_serve);
  pserver_client *client = cancelled_later();
  int64_t start_ms = time_ms();
  EXPECT_ERROR(ABORTED, push(client, 60000));
  end(client, start_ms);
}

static void no_outcome(void) {
  begin(store);
  pserver_client *client = cancelled_later();
  int64_t start_ms = time_ms();
  EXPECT_ERROR(ABORTED, push(client, 60000));
  end(client, start_ms);
}

static void no_room(void) {
  begin(only_serve);
  job.blocks = 10;
  EXPECT_OK(pserver_canceller_new(&canceller));
  pserver_client *client = connected_singly(8);
  pserver_use_canceller(canceller);
  act_after(LATER_MS, cancel);
  int64_t start_ms = time_ms();
  EXPECT_ERROR(ABORTED, push(client, 60000));
  EXPECT(count_to(NULL) == 1);
  end(client, start_ms);
}

static void no_answer(void) {
  begin(only_serve);
  pserver_client *client = cancelled_later();
  int64_t start_ms = time_ms();
  EXPECT_ERROR(ABORTED, get(client, 60000));
  end(client, start_ms);
}

static void no_step(void) {
  begin(wait_for_others);
  job.mode = "sync";
  pserver_client *client = connected(0);
  broker.client->steps.core.ended = 3;
  EXPECT_OK(pserver_canceller_new(&canceller));
  pserver_use_canceller(canceller);
  act_after(LATER_MS, cancel);
  int64_t start_ms = time_ms();
  EXPECT_ERROR(ABORTED, send_stored(client, 60000));
  end(client, start_ms);
}

/** A call of another thread has its turn in the steps. */
static void no_turn(void) {
  begin(wait_for_others);
  job.mode = "sync";
  pserver_client *client = cancelled_later();
  struct ps_step_call other = {.kind = PS_STEP_CALL_END};
  broker.client->steps.core.holder = &other;
  int64_t start_ms = time_ms();
  EXPECT_ERROR(ABORTED, pserver_end_step(client, 60000));
  broker.client->steps.core.holder = NULL;
  end(client, start_ms);
}

/** A call that is cancelled before it begins sends nothing. */
static void at_once(void) {
  begin(only_serve);
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_canceller_new(&canceller));
  cancel();
  pserver_use_canceller(canceller);
  size_t before = count_to("status");
  pserver_job_info info;
  EXPECT_ERROR(ABORTED, pserver_job_status(client, &info, 3000));
  EXPECT(count_to("status") == before);
  pserver_use_canceller(NULL);
  pserver_canceller_free(canceller);
  closed(client);
}

const struct scenario cancel_scenarios[] = {
    {"a cancelled call waits for no PubAck", no_ack},
    {"a cancelled call waits for no outcome", no_outcome},
    {"a cancelled call waits for no room", no_room},
    {"a cancelled call waits for no answer", no_answer},
    {"a cancelled call waits for no step", no_step},
    {"a cancelled call waits for no turn", no_turn},
    {"a call that is cancelled before it begins sends nothing", at_once},
    {NULL, NULL}};
