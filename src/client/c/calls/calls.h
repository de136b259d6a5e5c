#ifndef CALLS_CALLS_H
#define CALLS_CALLS_H

/*
 * Calls under way and the tasks that they give to the I/O thread; lifecycle requests and the session;
 * parameters as hosts describe them.
 */

#include "steps/steps.h"
#include "wire/wire.h"

struct ps_client;

/** The calls of one client that are under way. Guarded by the lock of its I/O thread. */
struct ps_calls {
  struct ps_io_thread *io;
  /** The error that ended the client; code OK while it works. */
  struct ps_error error;
  /** Whether new calls are refused. */
  bool is_closing;
  struct ps_call *first;
  /** Number of calls that pserver_close() waits for; `idle` is signalled when it becomes 0. */
  unsigned running;
  pthread_cond_t idle;
  /** Calls of the program that have ended, and those of them that have failed, by their status. */
  uint64_t ended;
  uint64_t failed[PSERVER_STATUS_COUNT];
};

enum ps_call_kind {
  PS_CALL_USUAL,
  /** A call that the client makes itself: allowed while the client closes, which does not wait for it. */
  PS_CALL_INNER,
  /** A call that only looks at the client: allowed also after the client has failed. */
  PS_CALL_LOOK,
};

/**
 * One call under way, on the stack of its thread. It ends at its deadline, when the client fails, or when the
 * thread's canceller is cancelled; everything that it waits for ends with it.
 */
struct ps_call {
  struct ps_calls *calls;
  struct ps_client *client;
  /** The name of the function, for error texts. */
  const char *what;
  int64_t timeout_ms;
  /** Whether the timeout is a default one, which is the time without progress and not that of the whole call. */
  bool follows_progress;
  /** Changed by the I/O thread only, with the lock held. */
  int64_t ends_at_ms;
  enum ps_call_kind kind;
  /** Whether it continues after the client has failed, as leaving the job does. */
  bool is_last;
  pthread_cond_t woken;
  struct ps_cancellable cancellable;
  struct ps_call *next;
};

/** Work of a call on the I/O thread. It is on the stack of the thread that waits for it. */
struct ps_task {
  /** Begins the task, which is over when ps_task_finish() is called, at once or later. */
  void (*begin)(struct ps_task *task);
  /** Ends the task, because its call has ended; `why` is the last error. The task must be over on return. */
  void (*end)(struct ps_task *task, pserver_status why);
  /** Called on the calling thread after progress was noted, once for several such notes; may be NULL. */
  void (*on_progress)(struct ps_task *task);

  /** Set by ps_task_run(). */
  struct ps_call *call;
  struct ps_io_work beginning;
  struct ps_io_work ending;
  bool has_progress;
  bool is_ending;
  bool is_over;
  pserver_status status;
  struct ps_error error;
};

pserver_status ps_calls_init(struct ps_calls *calls, struct ps_io_thread *io);
void ps_calls_release(struct ps_calls *calls);

/** Makes all present and later calls fail with this error; only the first error is kept. Lock not held. */
void ps_calls_fail(struct ps_calls *calls, pserver_status code, const char *text);

/** Begins a call, if its kind allows that now. CLOSED, ABORTED, or the error that ended the client. */
pserver_status ps_call_enter(struct ps_call *call, struct ps_calls *calls, const char *what,
                             int64_t timeout_ms, enum ps_call_kind kind);
void ps_call_leave(struct ps_call *call);

/** Counts a call of the program that ends with this status. Lock not held. */
void ps_calls_count(struct ps_calls *calls, pserver_status status);

/** Notes that a call has made progress, after which it has its whole default timeout again. On the I/O thread. */
void ps_call_progressed(struct ps_call *call);

/** Returns OK while the call may continue, otherwise the reason. On any thread, lock not held. */
pserver_status ps_call_check(struct ps_call *call);

/** Waits for so long; returns early, with an error, if the call ends. */
pserver_status ps_call_sleep(struct ps_call *call, int64_t delay_ms);

/** Returns the milliseconds left, at least 0. */
int64_t ps_call_remaining_ms(const struct ps_call *call);

/** Runs a task on the I/O thread and waits for it. Returns its status, and sets the last error. */
pserver_status ps_task_run(struct ps_call *call, struct ps_task *task);

/** Runs a function that neither blocks nor fails on the I/O thread and waits for it, also after the call
 * has ended. */
void ps_run_on_io_thread(struct ps_call *call, void (*function)(struct ps_client *client, void *context),
                         void *context);

/** Ends a task; unless OK, the last error is the reason. On the I/O thread, which must not use it
 * afterwards. */
void ps_task_finish(struct ps_task *task, pserver_status status);

/**
 * Sends the requests of a call and waits. OK once all are answered; else the first error, or what ended the
 * call.
 */
pserver_status ps_run_requests(struct ps_call *call, struct ps_requests *requests, struct ps_ask *asks,
                               size_t count);

/** How a parameter is cut into blocks: see docs/reference/protocol.md, "Blocks". */
struct ps_layout {
  uint64_t elements;
  uint64_t block_elements;
  uint64_t blocks;
  uint64_t first_shard;
  uint64_t shards;
  /** Whether all blocks lie on the first shard. */
  bool is_pinned;
};

/** A parameter as a host describes it. Never changes, except `references` and `seen`. */
struct ps_parameter {
  unsigned references;
  struct ps_parameter *next;

  char *name;
  size_t name_bytes;
  /** The name as a subject token. */
  char token[PS_TOKEN_SIZE];
  pserver_dtype dtype;
  int32_t rank;
  uint64_t shape[PSERVER_RANK_MAX];
  uint64_t epoch;
  bool is_ready;
  struct ps_layout layout;
  /** Number of block 0: see docs/reference/protocol.md, "Block numbers". */
  uint32_t first_number;
  /** The encoded configuration as the host has sent it, for `init` records. */
  uint8_t *config;
  size_t config_bytes;
  /** The settings in it that the client uses. */
  bool has_rate;
  bool has_optimizer;
  bool is_sparse;
  bool is_static;
  bool allows_non_finite;
  bool clips_norm;
  /** The fragment that it belongs to; NULL: none. */
  char *fragment;
  /** Versions of the blocks when they were last read; 0: never. Atomic. */
  uint64_t *seen;
};

/** Reads a parameter in a reply, with one reference. BAD_MESSAGE, INTERNAL. */
pserver_status ps_read_parameter(const struct ps_value *value, struct ps_parameter **parameter);

/** Adds a reference. On any thread, as the functions below. */
void ps_parameter_ref(struct ps_parameter *parameter);
/** Drops a reference; the parameter is freed with its last one. NULL is ignored. */
void ps_parameter_unref(struct ps_parameter *parameter);

/** Whether the parameter has this name of so many bytes. */
bool ps_has_name(const struct ps_parameter *parameter, const char *name, size_t bytes);

/** Returns the number of the block with this index, by which batches and batched reads name it. */
uint32_t ps_number_of_block(const struct ps_parameter *parameter, uint64_t index);

/** Returns the shard of the block with this index. */
unsigned ps_shard_of_block(const struct ps_parameter *parameter, uint64_t index);

/** Returns the number of elements of the block with this index. */
uint64_t ps_block_elements(const struct ps_parameter *parameter, uint64_t index);

/** Returns the number of elements of one row of the first dimension; 1 for a scalar. */
uint64_t ps_row_elements(const struct ps_parameter *parameter);

/** Whether every block consists of whole rows. */
bool ps_is_cut_between_rows(const struct ps_parameter *parameter);

/** Names that calls have given together, and their parameters. All zeros: none. */
struct ps_name_list {
  /** The names one after the other, each with its final zero. */
  char *names;
  struct ps_parameter **parameters;
  size_t count;
};

/** Lists of names that are remembered. */
#define PS_NAME_LISTS 4

/**
 * The initialized parameters that the client knows, by name. Calling threads look them up before they use the
 * I/O thread, so the table has its own lock. Trainers give the same names in every step: so the last long lists
 * of names are remembered, and names given again are only compared. Lists hold references, and are forgotten when any
 * parameter is.
 */
struct ps_parameters {
  pthread_mutex_t lock;
  /** A power of two of them. */
  struct ps_parameter **buckets;
  size_t bucket_count;
  size_t count;
  struct ps_name_list lists[PS_NAME_LISTS];
  /** The list that makes room for the next one. */
  size_t list_turn;
};

/** Initializes a table that is all zeros. INTERNAL. */
pserver_status ps_parameters_init(struct ps_parameters *parameters);
void ps_parameters_release(struct ps_parameters *parameters);

/**
 * Fills the NULL entries of `found` with the parameters that are known, one reference each, up to the name after
 * which `capacity` names of unknown ones are listed in `missing`; returns the number of names listed. A name may be
 * NULL: it is unknown.
 */
size_t ps_parameters_take(struct ps_parameters *parameters, const char *const *names, size_t count,
                          struct ps_parameter **found, const char **missing, size_t capacity);

/** Stores a parameter, in place of one of the same name; takes over a reference. */
void ps_parameters_remember(struct ps_parameters *parameters, struct ps_parameter *parameter);

/** Forgets parameters whose epochs may have changed; NULL entries are ignored. */
void ps_forget_parameters(struct ps_parameters *parameters, struct ps_parameter *const *forgotten,
                          size_t count);

/** Forgets the versions that blocks had when they were read. */
void ps_forget_seen_versions(struct ps_parameters *parameters);

/** Drops one reference to each parameter and sets it to NULL; NULL entries are ignored. */
void ps_parameters_unref(struct ps_parameter **parameters, size_t count);

/** Reads the parameters in a reply, at most `capacity`. BAD_MESSAGE, INTERNAL. */
pserver_status ps_read_parameter_list(const struct ps_message *message, struct ps_parameter **parameters,
                                      size_t capacity, size_t *count);

/** Returns the name of a state in messages. */
const char *ps_state_name(pserver_state state);

/** Reads the state of the job, or of a parameter. BAD_MESSAGE. */
pserver_status ps_read_state(const struct ps_value *fields, pserver_state *state);

/** Size of a buffer for the time at which a job was made, with the final zero. */
#define PS_MADE_SIZE 40

/** Dependencies of lifecycle requests. */
struct ps_lifecycle {
  const struct ps_identity *identity;
  struct ps_requests *requests;
  struct ps_session_core *core;
  /** When the job was made that was joined, by which hosts tell it from another one of its name; "" before. */
  char made[PS_MADE_SIZE];
};

/** Writes the entries of a request after `session`. */
typedef void (*ps_write_entries)(void *context, struct ps_draft *draft);
/** Reads the reply. */
typedef pserver_status (*ps_read_reply)(void *context, const struct ps_message *message);

/** A request to the hosts of the job, on the I/O thread. */
struct ps_lifecycle_request {
  const char *verb;
  /** `write` and `read` may be NULL. */
  ps_write_entries write;
  ps_read_reply read;
  void *context;
  /** Whether it carries the session. */
  bool has_session;
  /** Whether it is repeated in the next session if its session has ended, as the session core decides. */
  bool is_asked_again;
  /** Time at which the owner ends it by ps_lifecycle_end(). */
  int64_t ends_at_ms;
  /** Called once: with OK or the last error, NO_HOST if nobody answered in time. May free the request. */
  void (*over)(struct ps_lifecycle_request *request, pserver_status status);
  void *owner;

  /** Set by the functions below. */
  const struct ps_lifecycle *lifecycle;
  struct ps_session_request core;
  struct ps_ask ask;
  struct ps_ask_group group;
  /** Number of the session that its answer says is over; 0 if it says none. */
  uint64_t received;
  /** Whether it is over; used for requests of calls. */
  bool is_over;
};

/** Sends a request under the current session. */
void ps_lifecycle_begin(const struct ps_lifecycle *lifecycle, struct ps_lifecycle_request *request);

/** Ends a request that is under way with the last error. */
void ps_lifecycle_end(struct ps_lifecycle_request *request, pserver_status status);

/** Returns the last error as the failure of a request, with one reference; never NULL. */
struct ps_failure *ps_lifecycle_failure(const struct ps_lifecycle_request *request);

/**
 * Sends the requests of a call, all at once, and waits for all answers. Returns the first error. Sets the
 * requests' `over`, `owner` and `ends_at_ms`.
 */
pserver_status ps_run_lifecycles(struct ps_call *call, const struct ps_lifecycle *lifecycle,
                                 struct ps_lifecycle_request *requests, size_t count);

/**
 * Sends a request, again in the next session if its session ends, and waits. Returns the error in the reply;
 * NO_HOST if nobody answers in time. `write` and `read` may be NULL.
 */
pserver_status ps_request_lifecycle(struct ps_call *call, const struct ps_lifecycle *lifecycle,
                                    const char *verb, ps_write_entries write, ps_read_reply read,
                                    void *context);

/** Commands of the session core, see ps_session_commands. */
void ps_repeat_request(void *owner, struct ps_session_request *request);
void ps_fail_request(void *owner, struct ps_session_request *request, struct ps_failure *failure);

/** Settings of the job, from the reply to a join. */
struct ps_job_terms {
  unsigned shards;
  struct ps_synchronization synchronization;
  uint64_t trainers;
  /** In `diloco`: how many trainers must have contributed before a round closes. */
  uint64_t quorum;
  /** In `diloco`: the longest grace. */
  uint64_t grace_cap_ms;
  /** Whether the gradients of a step are summed, not averaged. */
  bool sums;
};

/** Dependencies of a session. */
struct ps_session_deps {
  const struct ps_identity *identity;
  struct ps_requests *requests;
  struct ps_timers *timers;
  void *owner;
  /** Tells that the session has ended: nothing may be published under it. */
  void (*ended)(void *owner);
  /** Tells that a session has begun, the first or a later one. */
  void (*began)(void *owner, uint64_t session, const struct ps_job_terms *terms, int64_t now_ms);
  /** Tells that a host of the job that was joined has given or renewed the lease. */
  void (*held)(void *owner);
  /** Tells that the client can do nothing more. */
  void (*lost)(void *owner, pserver_status code, const char *text);
};

struct ps_session;

/** One attempt to join; hosts recognize its repeats by the token. */
struct ps_join {
  struct ps_session *session;
  int64_t begun_ms;
  char token[40];
  char made[PS_MADE_SIZE];
  uint64_t number;
  int64_t lease_ms;
  struct ps_job_terms terms;
};

/** A request that no call waits for. */
struct ps_background_request {
  struct ps_lifecycle_request request;
  struct ps_timer deadline;
  int64_t begun_ms;
  int64_t timeout_ms;
  bool is_under_way;
};

/** Carries out the commands of the session core: requests and timers. Used on the I/O thread. */
struct ps_session {
  struct ps_session_deps deps;
  struct ps_lifecycle lifecycle;
  struct ps_session_core core;
  struct ps_session_commands commands;
  struct ps_session_listener listener;
  struct ps_job_terms terms;
  struct ps_timer renewal;
  /** When the last request was sent by which hosts have given or renewed the lease. */
  int64_t held_at_ms;
  struct ps_background_request renewing;
  struct ps_background_request joining;
  struct ps_join join;
};

/** Initializes the session of a client that has not joined. */
void ps_session_init(struct ps_session *session, const struct ps_session_deps *deps);

/** Joins the job in a new session, and waits. NO_HOST if no host answers in time. */
pserver_status ps_join_job(struct ps_call *call, struct ps_session *session);

/** Gives the lease back, and waits. Without an answer it expires by itself. */
pserver_status ps_leave_job(struct ps_call *call, struct ps_session *session);

/** Notes that hosts have given or renewed the lease by a request that was made at this time. On the I/O thread. */
void ps_session_note_held(struct ps_session *session, int64_t asked_ms);

/**
 * Renews the lease now, unless that is under way: the broker may hold another job by now. Nothing before the first join,
 * which will tell. On the I/O thread.
 */
void ps_session_confirm(struct ps_session *session);

/** Whether the lease may have run out: for its whole time no host has confirmed that it was renewed. On the I/O thread. */
bool ps_session_may_be_out(const struct ps_session *session);

/** Stops renewing and joining. On the I/O thread. */
void ps_session_stop(struct ps_session *session);

#endif
