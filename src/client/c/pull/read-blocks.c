/* Blocks are read: asked for in requests that are made anew, of what is left, after each error that asking
 * again can help. */
#include <stdlib.h>

#include "calls/client.h"
#include "calls/parameters.h"
#include "calls/request-task.h"
#include "pull/block-read.h"
#include "pull/read-plan.h"
#include "pull/read-requests.h"

/** A call's reads, and how those of each shard are asked for now. */
struct reading {
  struct ps_call *call;
  struct ps_block_read *reads;
  size_t count;
  struct ps_read_plan_options options;
  /** Whether a pull from the shard was answered after nobody had listened to batched reads. */
  bool has_owner[PS_SHARDS_MAX];
};

static void set_ways(struct reading *reading, enum ps_read_way way) {
  for (int shard = 0; shard < PS_SHARDS_MAX; shard++) reading->options.way[shard] = way;
}

/** Batched reads do not get through to this client, and will not. */
static void read_singly(struct reading *reading) {
  __atomic_store_n(&reading->call->client->reads_singly, true, __ATOMIC_RELAXED);
  set_ways(reading, PS_READ_SINGLY);
}

/** Parameters of a request's blocks that have not come, each once, as blocks of one follow each other. */
static size_t list_stale(const struct ps_read_request *request, struct ps_parameter **stale,
                         const char **names) {
  size_t count = 0;
  for (size_t i = 0; i < request->count; i++) {
    struct ps_parameter *parameter = request->blocks[i]->parameter;
    if (request->blocks[i]->is_done || (count > 0 && stale[count - 1] == parameter)) continue;
    stale[count] = parameter;
    names[count++] = parameter->name;
  }
  return count;
}

/** What was read of a parameter is of no use. */
static void note_replaced(struct reading *reading, const struct ps_parameter *parameter) {
  for (size_t i = 0; i < reading->count; i++) {
    if (reading->reads[i].parameter == parameter) *reading->reads[i].is_replaced = true;
  }
}

/** Looks parameters up again, and notes those that were initialized anew. */
static pserver_status find_again(struct reading *reading, struct ps_parameter *const *stale,
                                 const char *const *names, size_t count, struct ps_parameter **fresh) {
  struct ps_call *call = reading->call;
  ps_forget_parameters(&call->client->parameters, stale, count);
  pserver_status status = ps_find_parameters(call, names, count, true, fresh);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    if (fresh[i]->epoch != stale[i]->epoch) note_replaced(reading, stale[i]);
  }
  return status;
}

static pserver_status look_again(struct reading *reading, const struct ps_read_request *request) {
  struct ps_parameter **stale = calloc(request->count, sizeof *stale);
  struct ps_parameter **fresh = calloc(request->count, sizeof *fresh);
  const char **names = calloc(request->count, sizeof *names);
  pserver_status status = PSERVER_OK;
  if (stale == NULL || fresh == NULL || names == NULL) {
    status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu names", request->count);
  } else {
    size_t count = list_stale(request, stale, names);
    status = find_again(reading, stale, names, count, fresh);
    ps_parameters_unref(fresh, count);
  }
  free(stale);
  free(fresh);
  free(names);
  return status;
}

/** Does what the error of a request asks for; OK if what is left is to be asked for again. */
static pserver_status react(struct reading *reading, const struct ps_read_request *request) {
  if (request->problem == PS_READ_IS_STALE) return look_again(reading, request);
  /* An owner that answers pulls only was not given the subject of batched reads. */
  bool is_for_good = request->problem == PS_READ_IS_DENIED || reading->has_owner[request->shard];
  if (is_for_good) read_singly(reading);
  else reading->options.way[request->shard] = PS_READ_FIRST;
  return PSERVER_OK;
}

/** The request whose error has ended the others; NULL if something else has. */
static const struct ps_read_request *find_problem(const struct ps_read_plan *plan) {
  for (size_t i = 0; i < plan->count; i++) {
    if (plan->requests[i].problem != PS_READ_GOES_ON) return &plan->requests[i];
  }
  return NULL;
}

static pserver_status ask_all(struct ps_call *call, const struct ps_read_plan *plan) {
  struct ps_client *client = call->client;
  struct ps_ask *asks = calloc(plan->count, sizeof *asks);
  if (asks == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu requests", plan->count);
  for (size_t i = 0; i < plan->count; i++) {
    plan->requests[i].client = client;
    ps_ask_for_read(&plan->requests[i], &asks[i]);
  }
  pserver_status status = ps_run_requests(call, &client->requests, asks, plan->count);
  free(asks);
  return status;
}

/** Notes which owners have answered a pull while nobody listened to their batched reads. */
static void note_owners(struct reading *reading, const struct ps_read_plan *plan) {
  for (size_t i = 0; i < plan->count; i++) {
    const struct ps_read_request *request = &plan->requests[i];
    bool is_first = reading->options.way[request->shard] == PS_READ_FIRST;
    if (!is_first || !request->blocks[0]->is_done) continue;
    reading->has_owner[request->shard] = true;
    reading->options.way[request->shard] = PS_READ_TOGETHER;
  }
}

/** Asks for what is left, once; OK if all of that has come, or has to be asked for again. */
static pserver_status read_left(struct reading *reading) {
  struct ps_read_plan plan;
  pserver_status status = ps_plan_reads(reading->reads, reading->count, &reading->options, &plan);
  if (status == PSERVER_OK) {
    status = ask_all(reading->call, &plan);
    note_owners(reading, &plan);
    const struct ps_read_request *problem = status == PSERVER_OK ? NULL : find_problem(&plan);
    if (problem != NULL) status = react(reading, problem);
  }
  ps_read_plan_release(&plan);
  return status;
}

static bool is_any_left(const struct reading *reading) {
  for (size_t i = 0; i < reading->count; i++) {
    if (ps_read_is_wanted(&reading->reads[i])) return true;
  }
  return false;
}

pserver_status ps_read_blocks(struct ps_call *call, struct ps_block_read *reads, size_t count) {
  struct ps_client *client = call->client;
  bool is_singly = !ps_session_takes_batches(&client->session) ||
                   __atomic_load_n(&client->reads_singly, __ATOMIC_RELAXED);
  struct reading reading = {
      .call = call,
      .reads = reads,
      .count = count,
      .options = {.message_bytes_max = ps_last_payload_bytes_max(&client->connection)}};
  set_ways(&reading, is_singly ? PS_READ_SINGLY : PS_READ_TOGETHER);
  pserver_status status = PSERVER_OK;
  while (status == PSERVER_OK && is_any_left(&reading)) status = read_left(&reading);
  return status;
}
