/*
 * Makes clients: connects the parts of a client with each other. Their notifications run on its I/O thread.
 */
#include "calls/new-client.h"

#include <stdlib.h>
#include <string.h>

#include "wire/clock.h"

/** Reads a number; returns the text after the dot that follows it. NULL if there is no number. */
static const char *take_number(const char *text, uint64_t *number) {
  char *end = NULL;
  if (text == NULL || *text < '0' || *text > '9') return NULL;
  *number = strtoull(text, &end, 10);
  return *end == '.' ? end + 1 : end;
}

/** Reads two numbers after the first `skipped` characters; false if there are none. */
static bool take_numbers(const char *name, size_t skipped, uint64_t numbers[2]) {
  return take_number(take_number(name + skipped, &numbers[0]), &numbers[1]) != NULL;
}

/* The connection. */

static void on_received(void *owner, natsMsg *message) {
  struct ps_client *client = owner;
  const char *inbox = client->identity.inbox;
  size_t inbox_bytes = strlen(inbox);
  const char *subject = natsMsg_GetSubject(message);
  uint64_t numbers[2] = {0};
  /* Do not rely on the broker to send only what was subscribed to. */
  if (strncmp(subject, inbox, inbox_bytes) != 0 || subject[inbox_bytes] != '.') return;
  const char *name = subject + inbox_bytes + 1;
  if (strncmp(name, "reply.", 6) == 0) {
    if (take_numbers(name, 6, numbers)) {
      ps_on_reply(&client->requests, numbers[0], numbers[1], message);
    }
  } else if (strncmp(name, "ack.", 4) == 0) {
    if (take_numbers(name, 4, numbers)) ps_on_ack(&client->sender, numbers[0], numbers[1], message);
  } else if (strcmp(name, "applied") == 0) {
    ps_on_answers(&client->sender, message);
  } else if (strncmp(name, "outcome.", 8) == 0) {
    if (take_number(name + 8, &numbers[0]) != NULL && numbers[0] < PS_SHARDS_MAX) {
      ps_on_outcome_reply(&client->sender, (unsigned)numbers[0], message);
    }
  }
}

static void on_disconnected(void *owner) {
  struct ps_client *client = owner;
  ps_outbox_disconnected(client->sender.outbox);
}

static void on_reconnected(void *owner) {
  struct ps_client *client = owner;
  ps_requests_reconnected(&client->requests);
  ps_outbox_reconnected(client->sender.outbox, ps_now_ms());
}

static void on_denied(void *owner, const char *subject) {
  struct ps_client *client = owner;
  ps_requests_denied(&client->requests, subject);
  ps_sender_denied(&client->sender, subject);
}

static bool publish_next(void *owner) {
  struct ps_client *client = owner;
  return ps_sender_publish_next(&client->sender);
}

static void on_lost(void *owner, pserver_status code, const char *text) {
  struct ps_client *client = owner;
  ps_calls_fail(&client->calls, code, text);
}

static void retain(void *owner) { ps_client_retain(owner); }

static void release(void *owner) { ps_client_release(owner); }

/* The session, the outbox and positions. */

static void on_session_ended(void *owner) {
  struct ps_client *client = owner;
  ps_outbox_pause(client->sender.outbox);
}

static void on_session_began(void *owner, uint64_t session, const struct ps_job_terms *terms,
                             int64_t now_ms) {
  struct ps_client *client = owner;
  ps_steps_core_session_began(&client->steps.core, session, terms->shards, terms->synchronization);
  bool waits_for_steps = terms->synchronization.mode == PS_SYNC_SYNC;
  ps_sender_start(&client->sender, session, terms->rules >= PS_RULES_WITH_BATCHES, waits_for_steps,
                  now_ms);
}

static void on_session_over(void *owner, struct ps_failure *failure) {
  struct ps_client *client = owner;
  ps_session_core_ended(&client->session.core, failure);
}

/**
 * Reacts to a replaced journal. Steps that were closed in the shard may be open again until this trainer
 * enters anew, and versions that it has read may be undone. pserver_fallbacks() will ask what was lost.
 */
static void on_journal_replaced(void *owner, unsigned shard, struct ps_position seen) {
  struct ps_client *client = owner;
  if (client->replaced_seen[shard].generation == 0) client->replaced_seen[shard] = seen;
  ps_steps_core_fell_back(&client->steps.core, shard);
  ps_forget_seen_versions(&client->parameters);
}

/** Connects the parts of a client. */
static pserver_status compose(struct ps_client *client, size_t in_flight_bytes) {
  client->connection_listener = (struct ps_connection_listener){.owner = client,
                                                                .received = on_received,
                                                                .disconnected = on_disconnected,
                                                                .reconnected = on_reconnected,
                                                                .lost = on_lost,
                                                                .denied = on_denied,
                                                                .retain = retain,
                                                                .release = release};
  ps_connection_init(&client->connection, &client->io, &client->connection_listener,
                     client->identity.inbox);
  client->io.run_idle = publish_next;
  client->io.idle_context = client;
  client->requests =
      (struct ps_requests){.connection = &client->connection, .window_max = in_flight_bytes};
  client->positions_listener =
      (struct ps_positions_listener){.owner = client, .journal_replaced = on_journal_replaced};
  client->positions.listener = &client->positions_listener;
  ps_session_init(&client->session, &(struct ps_session_deps){.identity = &client->identity,
                                                              .requests = &client->requests,
                                                              .timers = &client->io.timers,
                                                              .owner = client,
                                                              .ended = on_session_ended,
                                                              .began = on_session_began,
                                                              .lost = on_lost});
  ps_steps_init(&client->steps, &(struct ps_steps_deps){.lifecycle = &client->session.lifecycle,
                                                        .positions = &client->positions,
                                                        .sender = &client->sender});
  return ps_sender_init(&client->sender,
                        &(struct ps_sender_deps){.identity = &client->identity,
                                                 .connection = &client->connection,
                                                 .positions = &client->positions,
                                                 .in_flight_bytes_max = in_flight_bytes,
                                                 .owner = client,
                                                 .session_over = on_session_over});
}

/**
 * Makes glibc's allocator keep up to about twice so many freed bytes. cnats allocates memory for every
 * received message; by default the allocator returns large ones to the system, and their pages would be
 * mapped anew each time. Has no effect if the process has set the allocator's parameters, or uses another
 * allocator.
 */
static void keep_freed_memory(size_t bytes) {
  /* When a block that was mapped by itself is freed, glibc raises its threshold to that size: see
   * M_MMAP_THRESHOLD in mallopt(3). No page of the block is touched. */
  void *volatile block = malloc(bytes);
  free(block);
}

pserver_status ps_client_new(const struct ps_identity *identity, const pserver_options *options,
                             struct ps_client **made) {
  struct ps_client *client = calloc(1, sizeof *client);
  if (client == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for a client");
  client->references = 1;
  client->identity = *identity;
  client->call_timeout_ms = options->call_timeout_ms;
  pserver_status status = ps_io_init(&client->io);
  if (status != PSERVER_OK) {
    free(client);
    return status;
  }
  status = ps_calls_init(&client->calls, &client->io);
  if (status == PSERVER_OK) status = ps_parameters_init(&client->parameters);
  if (status == PSERVER_OK) status = compose(client, options->in_flight_bytes);
  if (status == PSERVER_OK) status = ps_io_start(&client->io);
  if (status != PSERVER_OK) {
    ps_client_release(client);
    return status;
  }
  keep_freed_memory(options->in_flight_bytes);
  *made = client;
  return PSERVER_OK;
}
