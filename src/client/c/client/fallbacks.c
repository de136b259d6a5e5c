#include "client/client.h"

#include <stdio.h>
#include <stdlib.h>

/* Asks shards whose journals were replaced which records were lost, as far as this client may have seen
 * them. */

/** A request to a shard whose journal was replaced: `seen` is the last position seen in the old one. */
struct fallback_request {
  unsigned shard;
  struct ps_position seen;
  /** The list that collects all answers. */
  struct answers *answers;
};

/** The fallbacks of all shards asked. */
struct answers {
  const struct ps_client *client;
  pserver_fallback *list;
  size_t count;
};

static pserver_status write_request(struct ps_ask *ask, struct ps_draft *draft) {
  const struct fallback_request *request = ask->context;
  uint64_t session = request->answers->client->session.core.session;
  return ps_write_outcome_request(draft, session, NULL, 0, request->seen);
}

/** Whether the entry is of that generation. */
static bool is_of(const struct ps_value *entry, uint64_t generation) {
  uint64_t found = 0;
  return ps_map_whole(entry, "generation", &found) && found == generation;
}

/**
 * Adds the fallback in an entry, unless it concerns nothing that this client has seen. `next` is the
 * following entry, or NULL.
 */
static pserver_status add(const struct fallback_request *request, const struct ps_value *entry,
                          const struct ps_value *next) {
  struct answers *answers = request->answers;
  pserver_fallback fallback = {.shard = request->shard};
  if (!ps_map_whole(entry, "generation", &fallback.generation) ||
      !ps_map_whole(entry, "from", &fallback.from) || !ps_map_whole(entry, "to", &fallback.to)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "fallbacks: expected lost records; received another list");
  }
  if (fallback.generation < request->seen.generation) return PSERVER_OK;
  /* A position that this client has seen existed, even if the host does not know it. Of several entries of
   * one generation only the last one ends with the journal: the records between them were kept. */
  bool is_last = next == NULL || !is_of(next, fallback.generation);
  bool is_seen = is_last && fallback.generation == request->seen.generation;
  if (is_seen && request->seen.seq > fallback.to) fallback.to = request->seen.seq;
  if (fallback.to < fallback.from) return PSERVER_OK;
  pserver_fallback *grown = realloc(answers->list, (answers->count + 1) * sizeof *grown);
  if (grown == NULL) return ps_no_memory("fallbacks");
  grown[answers->count++] = fallback;
  answers->list = grown;
  return PSERVER_OK;
}

static pserver_status read_answer(struct ps_ask *ask, const struct ps_message *message) {
  const struct fallback_request *request = ask->context;
  struct ps_value list;
  struct ps_value next;
  const uint8_t *at = NULL;
  pserver_status status = PSERVER_OK;
  if (!ps_map_find(&message->fields, "fallbacks", &list)) return PSERVER_OK;
  bool is_more = ps_list_next(&list, &at, &next);
  while (status == PSERVER_OK && is_more) {
    struct ps_value entry = next;
    is_more = ps_list_next(&list, &at, &next);
    status = add(request, &entry, is_more ? &next : NULL);
  }
  return status;
}

/** The requests of one call, one for each replaced journal. */
struct fallback_requests {
  struct answers *answers;
  struct fallback_request *requests;
  struct ps_ask *asks;
  size_t count;
};

static void collect(struct ps_client *client, void *context) {
  struct fallback_requests *all = context;
  for (unsigned shard = 0; shard < PS_SHARDS_MAX; shard++) {
    if (client->replaced_seen[shard].generation == 0) continue;
    struct fallback_request *request = &all->requests[all->count];
    struct ps_ask *ask = &all->asks[all->count++];
    *request = (struct fallback_request){shard, client->replaced_seen[shard], all->answers};
    *ask = (struct ps_ask){.write = write_request, .read = read_answer, .context = request};
    ps_ask_shard(ask, &client->identity, shard, "outcome");
  }
}

/** Forgets the replaced journals whose losses are reported. */
static void settle(struct ps_client *client, void *context) {
  const struct fallback_requests *all = context;
  for (size_t i = 0; i < all->count; i++) {
    client->replaced_seen[all->requests[i].shard] = (struct ps_position){0, 0};
  }
}

static pserver_status ask_all(struct ps_call *call, struct answers *answers) {
  struct fallback_requests all = {.answers = answers,
                                  .requests = calloc(PS_SHARDS_MAX, sizeof *all.requests),
                                  .asks = calloc(PS_SHARDS_MAX, sizeof *all.asks)};
  pserver_status status = PSERVER_OK;
  if (all.requests == NULL || all.asks == NULL) {
    status = ps_no_memory("requests");
  } else {
    ps_run_on_io_thread(call, collect, &all);
    status = ps_run_requests(call, &call->client->control_requests, all.asks, all.count);
    if (status == PSERVER_OK) ps_run_on_io_thread(call, settle, &all);
  }
  free(all.requests);
  free(all.asks);
  return status;
}

pserver_status pserver_fallbacks(pserver_client *handle, pserver_fallback **list, size_t *count,
                                 int64_t timeout_ms) {
  struct ps_call call;
  struct answers answers = {0};
  pserver_status status = ps_call_begin(&call, handle, "pserver_fallbacks", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  answers.client = call.client;
  if (list == NULL || count == NULL) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_fallbacks: expected pointers; received NULL");
  } else {
    status = ask_all(&call, &answers);
  }
  if (status == PSERVER_OK) {
    *list = answers.list;
    *count = answers.count;
  } else {
    free(answers.list);
  }
  return ps_call_end(&call, status);
}

void pserver_fallbacks_release(pserver_fallback *list) { free(list); }
