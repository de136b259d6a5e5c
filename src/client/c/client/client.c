#include "client/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes and closes clients, and connects the parts of each. */

/* Clients and their handles. A handle is a number that is looked up, so that a closed or invalid one is an
 * error and not a crash. */

/** The longest timeout, a year, so that times do not overflow. */
#define TIMEOUT_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct ps_client *clients;
static uint64_t clients_made;
/** The process that has connected; 0 before. */
static pid_t owner;

static pserver_status forked(const char *what, pid_t from) {
  return ps_fail(PSERVER_ERR_CLOSED,
                 "%s: this process was forked from %d, which had connected: connect after the fork, not "
                 "before",
                 what, (int)from);
}

/** CLOSED in a forked child, where the threads of cnats and of this library do not exist. */
static pserver_status check_process(const char *what) {
  pid_t owned = __atomic_load_n(&owner, __ATOMIC_SEQ_CST);
  return owned == 0 || owned == getpid() ? PSERVER_OK : forked(what, owned);
}

/**
 * Checks as check_process() does, and notes that this process has connected. To be called before cnats is
 * first used.
 */
static pserver_status claim_process(const char *what) {
  pid_t expected = 0;
  __atomic_compare_exchange_n(&owner, &expected, getpid(), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return check_process(what);
}

static void destroy(struct ps_client *client) {
  ps_io_stop(&client->io);
  ps_session_core_release(&client->session.core);
  ps_sender_free(&client->sender);
  ps_requests_release(&client->requests);
  ps_requests_release(&client->control_requests);
  ps_parameters_release(&client->parameters);
  for (size_t i = 0; i < PS_OPEN_INIT_BUCKETS; i++) {
    while (client->open_inits[i] != NULL) {
      struct ps_open_init *init = client->open_inits[i];
      client->open_inits[i] = init->next;
      free(init);
    }
  }
  ps_calls_release(&client->calls);
  ps_connection_release(&client->connection);
  ps_connection_release(&client->control);
  ps_io_release(&client->io);
  free(client);
}

static void retain_client(struct ps_client *client) {
  pthread_mutex_lock(&registry);
  client->references++;
  pthread_mutex_unlock(&registry);
}

void ps_client_release(struct ps_client *client) {
  pthread_mutex_lock(&registry);
  bool is_last = --client->references == 0;
  pthread_mutex_unlock(&registry);
  if (is_last) destroy(client);
}

pserver_status ps_client_acquire(pserver_client *handle, const char *what, struct ps_client **client) {
  pserver_status status = check_process(what);
  if (status != PSERVER_OK) return status;
  if (handle == NULL) return ps_fail(PSERVER_ERR_CLOSED, "%s: expected a client; received NULL", what);
  pthread_mutex_lock(&registry);
  struct ps_client *found = clients;
  while (found != NULL && (uintptr_t)handle != (uintptr_t)found->number) found = found->next;
  if (found != NULL) found->references++;
  pthread_mutex_unlock(&registry);
  *client = found;
  if (found != NULL) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_CLOSED, "%s: the client is closed, or was never opened", what);
}

/** Registers a client; returns its handle. */
static pserver_client *publish_client(struct ps_client *client) {
  pthread_mutex_lock(&registry);
  client->number = ++clients_made;
  client->next = clients;
  clients = client;
  pthread_mutex_unlock(&registry);
  return (pserver_client *)(uintptr_t)client->number;
}

/** Removes a client from the registry; false if another thread has done so. */
static bool unpublish_client(struct ps_client *client) {
  pthread_mutex_lock(&registry);
  struct ps_client **link = &clients;
  while (*link != NULL && *link != client) link = &(*link)->next;
  bool is_ours = *link != NULL;
  if (is_ours) *link = client->next;
  pthread_mutex_unlock(&registry);
  return is_ours;
}

pserver_status ps_call_begin(struct ps_call *call, pserver_client *handle, const char *what,
                             int64_t timeout_ms, int64_t default_ms) {
  struct ps_client *client;
  pserver_status status = ps_client_acquire(handle, what, &client);
  if (status != PSERVER_OK) return status;
  bool is_default = timeout_ms == PSERVER_TIMEOUT_DEFAULT;
  if (is_default) {
    timeout_ms = default_ms == 0 ? client->call_timeout_ms : default_ms;
  }
  if (timeout_ms <= 0 || timeout_ms > TIMEOUT_MS_MAX) {
    ps_fail(PSERVER_ERR_BAD_VALUE, "%s: timeout_ms: expected more than 0; received %" PRId64, what,
            timeout_ms);
    ps_detail_text("expected", "more than 0");
    status = ps_detail_signed("received", timeout_ms);
  } else {
    status = ps_call_enter(call, &client->calls, what, timeout_ms, PS_CALL_USUAL);
  }
  if (status == PSERVER_OK) {
    call->client = client;
    call->follows_progress = is_default;
  } else {
    ps_client_release(client);
  }
  return status;
}

pserver_status ps_call_end(struct ps_call *call, pserver_status status) {
  ps_calls_count(call->calls, status);
  ps_call_leave(call);
  ps_client_release(call->client);
  return status;
}

/*
 * Makes clients: connects the parts of a client with each other. Their notifications run on its I/O thread.
 */

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

/** Returns what the message's subject has after the inbox; "" for another subject. */
static const char *name_in_inbox(const char *inbox, natsMsg *message) {
  size_t inbox_bytes = strlen(inbox);
  const char *subject = natsMsg_GetSubject(message);
  /* Do not rely on the broker to send only what was subscribed to. */
  if (strncmp(subject, inbox, inbox_bytes) != 0 || subject[inbox_bytes] != '.') return "";
  return subject + inbox_bytes + 1;
}

static void on_received(void *owner, natsMsg *message) {
  struct ps_client *client = owner;
  const char *name = name_in_inbox(client->identity.inbox, message);
  uint64_t numbers[2] = {0};
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
  client->awaits_host = false;
  ps_outbox_disconnected(client->sender.outbox);
}

static void on_reconnected(void *owner) {
  struct ps_client *client = owner;
  ps_requests_reconnected(&client->requests);
  client->awaits_host = true;
  ps_session_confirm(&client->session);
}

static void on_denied(void *owner, const char *subject) {
  struct ps_client *client = owner;
  ps_requests_denied(&client->requests, subject);
  ps_sender_denied(&client->sender, subject);
}

static void on_confirmed(void *owner, uint64_t number) {
  struct ps_client *client = owner;
  ps_requests_confirmed(&client->requests, number);
  ps_sender_confirmed(&client->sender, number);
}

static void on_moved(void *owner) {
  struct ps_client *client = owner;
  ps_requests_moved(&client->requests);
  ps_sender_moved(&client->sender);
}

/* The connection for lifecycle requests. */

static void on_control_received(void *owner, natsMsg *message) {
  struct ps_client *client = owner;
  const char *name = name_in_inbox(client->identity.control_inbox, message);
  uint64_t numbers[2] = {0};
  if (strncmp(name, "reply.", 6) != 0 || !take_numbers(name, 6, numbers)) return;
  ps_on_reply(&client->control_requests, numbers[0], numbers[1], message);
}

static void on_control_disconnected(void *owner) {
  /* Without it there are no renewals for a while; records and reads continue. */
  (void)owner;
}

static void on_control_reconnected(void *owner) {
  struct ps_client *client = owner;
  ps_requests_reconnected(&client->control_requests);
}

static void on_control_denied(void *owner, const char *subject) {
  struct ps_client *client = owner;
  ps_requests_denied(&client->control_requests, subject);
}

static void on_control_confirmed(void *owner, uint64_t number) {
  struct ps_client *client = owner;
  ps_requests_confirmed(&client->control_requests, number);
}

static void on_control_moved(void *owner) {
  /* Calls ask the same question there until the answer is what they wait for: that is no progress. */
  (void)owner;
}

static bool publish_next(void *owner) {
  struct ps_client *client = owner;
  return ps_sender_publish_next(&client->sender);
}

static void on_lost(void *owner, pserver_status code, const char *text) {
  struct ps_client *client = owner;
  ps_calls_fail(&client->calls, code, text);
}

static void retain(void *owner) { retain_client(owner); }

static void release(void *owner) { ps_client_release(owner); }

/* The session, the outbox and positions. */

static void on_session_ended(void *owner) {
  struct ps_client *client = owner;
  ps_outbox_pause(client->sender.outbox);
}

static void on_session_began(void *owner, uint64_t session, const struct ps_job_terms *terms,
                             int64_t now_ms) {
  struct ps_client *client = owner;
  struct ps_synchronization synchronization = terms->synchronization;
  bool waits_for_steps = synchronization.mode == PS_SYNC_SYNC;
  /* Trainers that contribute to fragments keep no step: gradients of other parameters are applied as they come. */
  if (synchronization.mode == PS_SYNC_DILOCO) synchronization.mode = PS_SYNC_ASYNC;
  ps_steps_core_session_began(&client->steps.core, session, terms->shards, synchronization);
  ps_sender_start(&client->sender, session, waits_for_steps, now_ms);
}

/** Sends on after the connection for records was lost. */
static void on_session_held(void *owner) {
  struct ps_client *client = owner;
  if (!client->awaits_host) return;
  client->awaits_host = false;
  ps_outbox_reconnected(client->sender.outbox, ps_now_ms());
}

static void on_session_over(void *owner, struct ps_failure *failure) {
  struct ps_client *client = owner;
  ps_session_core_ended(&client->session.core, failure);
}

/**
 * Reacts to a replaced journal. Steps that were closed in the shard may be open again until this trainer has
 * entered them again, and versions that it has read may be undone, as may the gradients whose rounding errors are
 * kept. pserver_fallbacks() will ask what was lost.
 */
static void on_journal_replaced(void *owner, unsigned shard, struct ps_position seen) {
  struct ps_client *client = owner;
  if (client->replaced_seen[shard].generation == 0) client->replaced_seen[shard] = seen;
  ps_steps_core_fell_back(&client->steps.core, shard);
  ps_forget_seen_versions(&client->parameters);
  ps_residuals_forget(&client->sender.residuals);
}

/** Initializes the connections of a client. INTERNAL. */
static pserver_status compose_connections(struct ps_client *client) {
  client->connection_listener = (struct ps_connection_listener){.owner = client,
                                                                .received = on_received,
                                                                .disconnected = on_disconnected,
                                                                .reconnected = on_reconnected,
                                                                .lost = on_lost,
                                                                .denied = on_denied,
                                                                .confirmed = on_confirmed,
                                                                .moved = on_moved,
                                                                .retain = retain,
                                                                .release = release};
  client->control_listener = (struct ps_connection_listener){.owner = client,
                                                          .received = on_control_received,
                                                          .disconnected = on_control_disconnected,
                                                          .reconnected = on_control_reconnected,
                                                          .lost = on_lost,
                                                          .denied = on_control_denied,
                                                          .confirmed = on_control_confirmed,
                                                          .moved = on_control_moved,
                                                          .retain = retain,
                                                          .release = release};
  pserver_status status = ps_connection_init(&client->connection, &client->io,
                                             &client->connection_listener, client->identity.inbox);
  pserver_status other =
      ps_connection_init(&client->control, &client->io, &client->control_listener, client->identity.control_inbox);
  return status == PSERVER_OK ? other : status;
}

/** Connects the parts of a client. */
static pserver_status compose(struct ps_client *client, size_t in_flight_bytes) {
  pserver_status status = compose_connections(client);
  if (status != PSERVER_OK) return status;
  client->io.run_idle = publish_next;
  client->io.idle_context = client;
  ps_requests_init(&client->requests, &client->connection, in_flight_bytes);
  ps_requests_init(&client->control_requests, &client->control, in_flight_bytes);
  client->positions_listener =
      (struct ps_positions_listener){.owner = client, .journal_replaced = on_journal_replaced};
  client->positions.listener = &client->positions_listener;
  ps_session_init(&client->session, &(struct ps_session_deps){.identity = &client->identity,
                                                              .requests = &client->control_requests,
                                                              .timers = &client->io.timers,
                                                              .owner = client,
                                                              .ended = on_session_ended,
                                                              .began = on_session_began,
                                                              .held = on_session_held,
                                                              .lost = on_lost});
  ps_steps_init(&client->steps, &(struct ps_steps_deps){.session = &client->session,
                                                        .positions = &client->positions,
                                                        .sender = &client->sender});
  return ps_sender_init(&client->sender, &(struct ps_sender_deps){.identity = &client->identity,
                                                                  .connection = &client->connection,
                                                                  .positions = &client->positions,
                                                                  .in_flight_bytes_max = in_flight_bytes,
                                                                  .owner = client,
                                                                  .session_over = on_session_over});
}

/**
 * Makes glibc's allocator keep up to about twice so many freed bytes. cnats allocates memory for every
 * received message; by default the allocator returns large ones to the system, whose pages would be mapped
 * again each time. Has no effect if the process has set the allocator's parameters, or uses another
 * allocator.
 */
static void keep_freed_memory(size_t bytes) {
  /* When a block that was mapped by itself is freed, glibc raises its threshold to that size: see
   * M_MMAP_THRESHOLD in mallopt(3). No page of the block is touched. */
  void *volatile block = malloc(bytes);
  free(block);
}

/** Makes a client with one reference and a running I/O thread, not connected yet. INTERNAL. */
static pserver_status new_client(const struct ps_identity *identity, const pserver_options *options,
                                 struct ps_client **made) {
  struct ps_client *client = calloc(1, sizeof *client);
  if (client == NULL) return ps_no_memory("a client");
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

/* pserver_connect() and pserver_close(). */

/** Defaults of the options and of pserver_close(). */
#define CONNECT_MS 10000
#define ATTEMPT_MS 5000
#define CALL_MS 30000
#define CLOSE_MS 10000
#define IN_FLIGHT_BYTES ((size_t)16 * 1024 * 1024)
/** Time to give the lease back. */
#define LEAVE_MS 1000

void pserver_options_init(pserver_options *options) {
  if (options == NULL) return;
  *options = (pserver_options){.struct_size = sizeof *options,
                               .connect_timeout_ms = CONNECT_MS,
                               .attempt_timeout_ms = ATTEMPT_MS,
                               .call_timeout_ms = CALL_MS,
                               .in_flight_bytes = IN_FLIGHT_BYTES};
}

/** The job of whoever names none. */
#define JOB_DEFAULT "default"

static const char *job_of(const pserver_options *options) {
  const char *job = options->job == NULL ? ps_from_environment("PSERVER_JOB") : options->job;
  return job == NULL ? JOB_DEFAULT : job;
}

static pserver_status check_options(const pserver_options *options) {
  if (options == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_connect: expected options; received NULL");
  }
  pserver_status status = ps_check_struct_size("pserver_connect", sizeof *options, options->struct_size,
                                               "pserver_options_init");
  if (status != PSERVER_OK) return status;
  if (options->connect_timeout_ms <= 0 || options->attempt_timeout_ms <= 0 ||
      options->call_timeout_ms <= 0 || options->in_flight_bytes == 0) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "pserver_connect: expected timeouts and in_flight_bytes of more than 0");
  }
  return ps_check_job_name(job_of(options));
}

/** Writes an id that is used once: host name, process id and a random part. */
static void unique_trainer(char id[PS_ID_SIZE]) {
  char host[PS_ID_SIZE];
  if (gethostname(host, sizeof host - 32) != 0) host[0] = '\0';
  host[sizeof host - 32] = '\0';
  for (char *c = host; *c != '\0'; c++) {
    bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!is_plain) *c = '-';
  }
  snprintf(id, PS_ID_SIZE, "%.31s-%d-%08" PRIx64, host, (int)getpid(), ps_random_bits() & UINT32_MAX);
}

static pserver_status name_client(const pserver_options *options, struct ps_identity *identity) {
  char made[PS_ID_SIZE];
  char token[PS_ID_SIZE];
  unique_trainer(made);
  const char *trainer = options->trainer;
  if (trainer == NULL) trainer = ps_from_environment("PSERVER_TRAINER");
  if (trainer == NULL) trainer = made;
  pserver_status status = ps_escape_id(trainer, identity->id);
  if (status != PSERVER_OK) return status;
  snprintf(identity->trainer, sizeof identity->trainer, "%s", trainer);
  snprintf(identity->job, sizeof identity->job, "%s", job_of(options));
  snprintf(token, sizeof token, "%08" PRIx64, ps_random_bits() & UINT32_MAX);
  if (options->inbox_token != NULL) status = ps_escape_id(options->inbox_token, token);
  if (status != PSERVER_OK) return ps_fail_prefixed("inbox_token: ");
  snprintf(identity->inbox, sizeof identity->inbox, "_INBOX_%s.%s.%s", identity->job, identity->id, token);
  snprintf(identity->control_inbox, sizeof identity->control_inbox, "_INBOX_%s.%s.%s-control", identity->job,
           identity->id, token);
  return PSERVER_OK;
}

static pserver_status make_client(const pserver_options *options, struct ps_client **made) {
  struct ps_identity identity;
  pserver_status status = name_client(options, &identity);
  return status == PSERVER_OK ? new_client(&identity, options, made) : status;
}

/** Begins a call of the client itself. */
static pserver_status begin_inner(struct ps_call *call, struct ps_client *client, const char *what,
                                  int64_t timeout_ms) {
  pserver_status status = ps_call_enter(call, &client->calls, what, timeout_ms, PS_CALL_INNER);
  call->client = client;
  return status;
}

static pserver_status join(struct ps_client *client, int64_t ends_at_ms) {
  struct ps_call call;
  int64_t left = ends_at_ms - ps_now_ms();
  pserver_status status = begin_inner(&call, client, "pserver_connect", left > 0 ? left : 1);
  if (status != PSERVER_OK) return status;
  status = ps_join_job(&call, &client->session);
  ps_call_leave(&call);
  return status;
}

static void stop(struct ps_client *client, void *context) {
  (void)context;
  ps_session_stop(&client->session);
}

/** Ends the session and gives its lease back. */
static pserver_status leave(struct ps_client *client) {
  struct ps_call call;
  pserver_status status = begin_inner(&call, client, "leave", LEAVE_MS);
  if (status != PSERVER_OK) return status;
  call.is_last = true;
  ps_run_on_io_thread(&call, stop, NULL);
  status = ps_leave_job(&call, &client->session);
  ps_call_leave(&call);
  return status;
}

/**
 * Disconnects and releases a client that has no handle and no calls. May block while its threads wait for the
 * broker.
 */
static void finish(struct ps_client *client) {
  ps_io_stop(&client->io);
  ps_disconnect(&client->connection);
  if (client->has_control) ps_disconnect(&client->control);
  if (client->session.core.session > 0) ps_stats_leave(client);
  ps_client_release(client);
}

/** Waits until no call runs: failed ones end on the I/O thread, which therefore must not end before. */
static void finish_when_idle(struct ps_client *client) {
  struct ps_calls *calls = &client->calls;
  pthread_mutex_lock(&client->io.lock);
  while (calls->running > 0) ps_condition_wait(&calls->idle, &client->io.lock, PS_NEVER_MS);
  pthread_mutex_unlock(&client->io.lock);
  finish(client);
}

static void *finish_apart(void *closure) {
  finish_when_idle(closure);
  nats_ReleaseThreadMemory();
  return NULL;
}

/**
 * Disconnects and releases a client on another thread once no call runs any more, so that this one waits neither
 * for the broker nor for calls.
 */
static void finish_later(struct ps_client *client) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, finish_apart, client) == 0) pthread_detach(thread);
  else finish_when_idle(client);
}

static pserver_status connect_and_join(struct ps_client *client, const pserver_options *options) {
  char name[PS_JOB_BYTES_MAX + PS_ID_SIZE + 32];
  const struct ps_identity *identity = &client->identity;
  int64_t ends_at_ms = ps_now_ms() + options->connect_timeout_ms;
  snprintf(name, sizeof name, "pserver %s %s", identity->job, identity->trainer);
  pserver_status status = ps_connect(&client->connection, name, options, ends_at_ms);
  if (status != PSERVER_OK) {
    ps_client_release(client);
    return status;
  }
  snprintf(name, sizeof name, "pserver %s %s control", identity->job, identity->trainer);
  status = ps_connect(&client->control, name, options, ends_at_ms);
  client->has_control = status == PSERVER_OK;
  if (status == PSERVER_OK) status = join(client, ends_at_ms);
  if (status == PSERVER_OK) return status;
  struct ps_error error = *ps_last_error();
  if (status == PSERVER_ERR_ABORTED) finish_later(client);
  else finish(client);
  return ps_fail_with(&error);
}

pserver_status pserver_connect(const pserver_options *options, pserver_client **handle) {
  struct ps_client *client = NULL;
  pserver_status status = check_process("pserver_connect");
  if (status == PSERVER_OK) status = check_options(options);
  if (status != PSERVER_OK) return status;
  if (handle == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_connect: client: expected a pointer; received NULL");
  }
  status = claim_process("pserver_connect");
  if (status == PSERVER_OK) status = make_client(options, &client);
  if (status == PSERVER_OK) status = connect_and_join(client, options);
  if (status == PSERVER_OK) *handle = publish_client(client);
  return status;
}

/** Waits for the calls under way; false if the closing thread's canceller ends the wait. Lock held. */
static bool await_idle(struct ps_calls *calls, const struct ps_cancellable *cancellable,
                       int64_t until_ms) {
  while (calls->running > 0 && ps_now_ms() < until_ms && !cancellable->is_cancelled) {
    ps_condition_wait(&calls->idle, &calls->io->lock, until_ms);
  }
  return !cancellable->is_cancelled;
}

/**
 * Refuses new calls, waits for running ones, fails those left at `until_ms` and waits until they have returned; false
 * if aborted.
 */
static bool end_calls(struct ps_calls *calls, int64_t until_ms) {
  struct ps_cancellable cancellable;
  ps_cancellable_enter(&cancellable, &calls->io->lock, &calls->idle);
  pthread_mutex_lock(&calls->io->lock);
  calls->is_closing = true;
  await_idle(calls, &cancellable, until_ms);
  pthread_mutex_unlock(&calls->io->lock);
  ps_calls_fail(calls, PSERVER_ERR_CLOSED, "the client is closed");
  pthread_mutex_lock(&calls->io->lock);
  bool is_waited_for = await_idle(calls, &cancellable, PS_NEVER_MS);
  pthread_mutex_unlock(&calls->io->lock);
  ps_cancellable_leave(&cancellable);
  return is_waited_for;
}

pserver_status pserver_close(pserver_client *handle, int64_t timeout_ms) {
  struct ps_client *client;
  pserver_status status = ps_client_acquire(handle, "pserver_close", &client);
  if (status != PSERVER_OK) return status;
  if (timeout_ms == PSERVER_TIMEOUT_DEFAULT) timeout_ms = CLOSE_MS;
  if (timeout_ms < 0 || !unpublish_client(client)) {
    ps_client_release(client);
    return timeout_ms < 0 ? ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_close: timeout_ms: expected 0 or more")
                          : ps_fail(PSERVER_ERR_CLOSED, "pserver_close: the client is closed");
  }
  bool is_waited_for =
      end_calls(&client->calls, ps_now_ms() + (timeout_ms < INT32_MAX ? timeout_ms : INT32_MAX));
  /* Drops the reference of the registry; finish() drops that of this thread. */
  ps_client_release(client);
  if (is_waited_for) is_waited_for = leave(client) != PSERVER_ERR_ABORTED;
  if (is_waited_for) {
    finish(client);
    return PSERVER_OK;
  }
  finish_later(client);
  return ps_fail(PSERVER_ERR_ABORTED,
                 "pserver_close: aborted by the caller; the client is closed, its lease will expire");
}
