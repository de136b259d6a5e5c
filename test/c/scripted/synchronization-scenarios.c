/* Synchronization: what the reply to a join says of it, and what reads and gradients do accordingly. */
#include "scripted.h"

/** What becomes of gradients after the first. */
static const char *later_code;

/** Steps close as soon as this trainer has ended them. */
static void close_steps(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "step")) step_after(1, message, number_in(message, "step"));
  if (is_to(message, "pull")) pulled_after(1, message, 1, 7);
  if (!is_record(message)) return;
  bool is_later = !is_to(message, "clock") && number_in(message, "n") > 1;
  stored_after(1, message, 1, 7);
  settled_after(2, message, 7, is_later ? later_code : NULL, "");
}

static pserver_client *connected_to(const char *mode, uint64_t staleness, uint64_t backups) {
  begin(close_steps);
  later_code = NULL;
  job.shards = 1;
  job.mode = mode;
  job.staleness = staleness;
  job.backups = backups;
  return connected(0);
}

/** The step that a read waits for when this trainer has ended three. */
static uint64_t step_of_reads(const char *mode, uint64_t staleness) {
  pserver_client *client = connected_to(mode, staleness, 0);
  for (int i = 0; i < 3; i++) EXPECT_OK(send_stored(client, 3000));
  EXPECT_OK(get(client, 3000));
  struct ps_value step;
  bool waits = ps_map_find(&to("pull", 0)->message.fields, "step", &step);
  uint64_t number = waits ? number_in(to("pull", 0), "step") : 0;
  closed(client);
  return number;
}

static void reads_wait(void) {
  EXPECT(step_of_reads("async", 0) == 0);
  EXPECT(step_of_reads("sync", 0) == 3);
  EXPECT(step_of_reads("ssp", 0) == 3);
  EXPECT(step_of_reads("ssp", 2) == 1);
  EXPECT(step_of_reads("ssp", 5) == 0);
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
  return pserver_send_grads(client, &grad, 1, &options, 3000);
}

static void late_gradients(void) {
  for (uint64_t backups = 0; backups < 2; backups++) {
    size_t late = 7;
    pserver_client *client = connected_to("sync", 0, backups);
    EXPECT_OK(send_grad(client, &late));
    EXPECT(late == 0);
    later_code = "LATE";
    EXPECT_OK(send_grad(client, &late));
    /* In the step in which the trainer enters again it can be late, too: that is counted. */
    EXPECT(late == 1);
    EXPECT(count_to("enter") == (backups == 0 ? 2 : 1));
    closed(client);
  }
}

const struct scenario synchronization_scenarios[] = {
    {"reads wait for the steps that the trainer has ended, in ssp less the staleness", reads_wait},
    {"a gradient that is late is counted with backups, and without them sent again by a trainer that enters anew",
     late_gradients},
    {NULL, NULL}};
