/**
 * libpserver: trains with a parameter server on NATS.
 *
 * Threads: every function may be called from any thread at any time, also concurrently with the same
 * client. It blocks its thread until it is done or its timeout is over. Updates of one thread are applied
 * in the order of its calls, those of different threads in any order.
 *
 * Memory: arguments belong to the caller and must not change during the call. Memory that a call allocates
 * is released with the function that its comment names.
 *
 * Times are in milliseconds; `timeout_ms` may be PSERVER_TIMEOUT_DEFAULT.
 *
 * Names are UTF-8. A NUL in a name, which the TypeScript client allows, is the two bytes C0 80, in
 * arguments and results.
 *
 * Errors: a call that fails returns a code of pserver_errors.h and changes no result; pserver_last_error()
 * and pserver_last_error_details() describe the error. Any call on a client may fail with TIMEOUT, CLOSED,
 * ABORTED, NO_BROKER, NO_HOST and NO_OWNER, also where its comment does not name them. NULL for a required
 * argument, a closed client, and a client of another process (as in the child after a fork) are errors, not
 * crashes.
 */
#ifndef PSERVER_H
#define PSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pserver_errors.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PSERVER_EXPORT __attribute__((visibility("default")))
#else
#define PSERVER_EXPORT
#endif

#define PSERVER_VERSION "0.1.0"

/** The maximum number of dimensions of a tensor. */
#define PSERVER_RANK_MAX 32

/**
 * Stands for a default timeout: the client's own, see pserver_options.call_timeout_ms, unless the call has
 * another one. A default timeout is the time in which the call makes no progress: bytes that leave or come,
 * acknowledgements and answers give the call its whole time again. Any other timeout is that of the whole call.
 */
#define PSERVER_TIMEOUT_DEFAULT ((int64_t)-1)

/** Stands for the rank of a tensor that is an argument: the tensor then has the shape of the parameter. */
#define PSERVER_RANK_OF_PARAMETER ((int32_t)-1)

/**
 * Element types, little-endian. The numbers are those of the protocol; the first six are PaddlePaddle's. A bool is a
 * byte, 0 or 1; another one is refused with BAD_VALUE. Half floats are given and returned as their bits, in two bytes
 * each: IEEE 754's binary16, and the upper half of a float32. The server computes with them as float32, and rounds once.
 */
typedef enum pserver_dtype {
  PSERVER_INT32 = 0,
  PSERVER_UINT32 = 1,
  PSERVER_INT64 = 2,
  PSERVER_UINT64 = 3,
  PSERVER_FLOAT32 = 4,
  PSERVER_FLOAT64 = 5,
  PSERVER_BOOL = 6,
  PSERVER_UINT8 = 7,
  PSERVER_INT8 = 8,
  PSERVER_FLOAT16 = 9,
  PSERVER_BFLOAT16 = 10
} pserver_dtype;

/**
 * How float32 elements are sent: unchanged; in two bytes each, rounded to nearest; or in one byte (int8) or half a byte
 * (e3m0) each, with a scale for each 256 of them.
 */
typedef enum pserver_encoding {
  PSERVER_AS_IS = 0,
  PSERVER_ENCODING_BFLOAT16 = 1,
  PSERVER_ENCODING_FLOAT16 = 2,
  PSERVER_ENCODING_INT8 = 3,
  PSERVER_ENCODING_E3M0 = 4
} pserver_encoding;

/** A tensor in C order. Rank 0 is a scalar, with one element. */
typedef struct pserver_tensor {
  pserver_dtype dtype;
  int32_t rank;
  uint64_t shape[PSERVER_RANK_MAX];
  /** The elements, at any alignment. */
  void *data;
  /** Bytes of all elements. */
  uint64_t bytes;
} pserver_tensor;

/**
 * How a parameter is updated: text, or PaddlePaddle's messages, or neither. Neither means SGD without a
 * learning rate, so that every gradient needs one.
 */
typedef struct pserver_config {
  /** The configuration as JSON or YAML, as for the TypeScript client; NULL: none. */
  const char *text;
  /** Serialized paddle.OptimizerConfig; NULL: none. */
  const void *optimizer_config;
  size_t optimizer_config_bytes;
  /** Serialized paddle.ParameterConfig; NULL: none. */
  const void *parameter_config;
  size_t parameter_config_bytes;
} pserver_config;

/** A client of one job, that is, one trainer. Opaque; never dereference it. */
typedef struct pserver_client pserver_client;

/** How to reach the broker and the job. Initialize it with pserver_options_init(). */
typedef struct pserver_options {
  /** Set by pserver_options_init(), so that later versions can add fields. */
  size_t struct_size;
  /**
   * Addresses separated by commas: `nats://host:port`, `tls://…` or `host:port`, with credentials before an
   * `@`, in which `/ @ : ? # % ,` are written as %2F %40 %3A %3F %23 %25 %2C. With `tls://`, which either
   * all addresses have or none, nothing is sent to a broker that offers no TLS. NULL: PSERVER_URL, else
   * NATS_URL, else nats://127.0.0.1:4222.
   */
  const char *url;
  /** Credentials, from the first of these sources that has any: `url`; these fields; NATS_USER,
   * NATS_PASSWORD, NATS_TOKEN, NATS_CREDS, NATS_NKEY and NATS_NKEY_PUBLIC in the environment. */
  const char *user;
  const char *password;
  const char *token;
  /** File with the credentials of a JWT user. */
  const char *creds_file;
  /** File with the seed of an nkey, and its public key. */
  const char *nkey_file;
  const char *nkey_public;
  /** PEM files; if all are NULL: those of NATS_CA, NATS_CERT and NATS_KEY. Any of them requires TLS, as
   * `tls://` does. Without tls_ca, the system's authorities are trusted. */
  const char *tls_ca;
  const char *tls_cert;
  const char *tls_key;
  /** Name of the job: 1 to 40 characters A-Z a-z 0-9 and -. NULL: PSERVER_JOB, else "default". */
  const char *job;
  /** Id of this trainer. After a restart use the same id, so that the trainer continues in its place. Two
   * processes with the same id end each other's sessions. NULL: PSERVER_TRAINER, else an id that is used
   * once. */
  const char *trainer;
  /** Token of this client's inbox below `_INBOX_<job>.<trainer>.`; NULL: a random one. */
  const char *inbox_token;
  /** Timeouts of pserver_connect(), 10,000 by default, and of one attempt, 5,000 by default. */
  int64_t connect_timeout_ms;
  int64_t attempt_timeout_ms;
  /** How long calls with PSERVER_TIMEOUT_DEFAULT may make no progress; 30,000 by default. */
  int64_t call_timeout_ms;
  /** Maximum bytes of elements in flight to the journals, and the same from the hosts; 16 MiB by default. On a
   * slow link fewer are: as many as it has lately carried in 1.5 s, at least 256 KiB or one block. The client
   * uses about twice as much memory. */
  size_t in_flight_bytes;
} pserver_options;

/** Sets the defaults. NULL is ignored. */
PSERVER_EXPORT void pserver_options_init(pserver_options *options);

/**
 * Connects to the broker, by two connections, and joins the job: one is for records and values, and one for what
 * must not wait behind them, such as renewals of the lease. Tries again until connect_timeout_ms is over, also where
 * every address refuses, so that broker, host and trainers can be started in any order. Later the client reconnects
 * by itself, and repeats what was lost with a connection. Close `*client` with pserver_close(). In the child of a process that has called
 * this before the fork, it fails with CLOSED, and so do all calls on clients of the parent; the parent can
 * continue to use them. BAD_NAME, BAD_VALUE, IO for invalid options; NO_BROKER, DENIED; NO_TLS if TLS is
 * required and the broker offers none, or its certificate is refused; NO_HOST if no host answers in time.
 */
PSERVER_EXPORT pserver_status pserver_connect(const pserver_options *options,
                                              pserver_client **client);

/**
 * Refuses new calls, waits for running ones until the timeout, 10,000 by default, ends the remaining ones
 * with CLOSED, releases the trainer's lease and closes the connection. CLOSED for a client that is closed
 * already. If a canceller ends it with ABORTED, the client is closed nevertheless, and the lease expires by
 * itself.
 */
PSERVER_EXPORT pserver_status pserver_close(pserver_client *client, int64_t timeout_ms);

/** How the trainers of a job keep step. */
typedef enum pserver_synchronization {
  PSERVER_ASYNC = 0,
  PSERVER_SYNC = 1,
  PSERVER_SSP = 2,
  /** They contribute to rounds of fragments, each at its own pace. */
  PSERVER_DILOCO = 3
} pserver_synchronization;

/** The state of a client. */
typedef struct pserver_client_info {
  /** Set it to `sizeof(pserver_client_info)`, so that later versions can add fields. */
  size_t struct_size;
  char job[41];
  char trainer[65];
  /** Number of the trainer's session; changes when the client rejoins because its lease was lost. */
  uint64_t session;
  pserver_synchronization synchronization;
  /** With PSERVER_SYNC and PSERVER_SSP: how many trainers must have entered before steps begin. This and the
   * following fields are 0 where they do not apply. */
  uint64_t trainers;
  /** With PSERVER_SYNC: how many trainers a step does not wait for, and whether gradients are summed and not
   * averaged. */
  uint64_t backups;
  bool sums;
  /** With PSERVER_SSP: how many steps a trainer may be ahead. */
  uint64_t staleness;
  /** With PSERVER_DILOCO: how many trainers must have contributed before a round closes, or all members if these are
   * fewer. */
  uint64_t quorum;
  /** With PSERVER_DILOCO: for how long a round that has its quorum waits for others at most. */
  uint64_t grace_cap_ms;
  /** Steps that this trainer has ended, including those that closed before it entered. */
  uint64_t steps_ended;
} pserver_client_info;

/** Returns the state of the client, without a request to hosts. BAD_VALUE for a wrong `struct_size`. */
PSERVER_EXPORT pserver_status pserver_describe(pserver_client *client, pserver_client_info *info);

/** Greater than every `pserver_status`. */
#define PSERVER_STATUS_COUNT 100

/** What a client has done since it joined. Bytes are of messages, without subjects and what NATS adds. */
typedef struct pserver_client_stats {
  /** Set it to `sizeof(pserver_client_stats)`, so that later versions can add fields. */
  size_t struct_size;
  /** Calls that have ended. */
  uint64_t calls;
  /** Of these, the calls that have failed, by their status: `failed[PSERVER_ERR_TIMEOUT]`. */
  uint64_t failed[PSERVER_STATUS_COUNT];
  /** Records that were sent, each counted once, and how often one was sent again. */
  uint64_t records;
  uint64_t resent;
  /** Records of which a guard has clipped a gradient or tensor, and that one has set aside: they were not applied. */
  uint64_t clipped;
  uint64_t set_aside;
  /** Requests for values. */
  uint64_t reads;
  uint64_t sent_bytes;
  uint64_t received_bytes;
  /** How often a connection was lost and came back; a client has two. */
  uint64_t reconnects;
} pserver_client_stats;

/**
 * Returns what the client has done, without a request to hosts. BAD_VALUE for a wrong `struct_size`. With the variable
 * PSERVER_STATS_DIR, which `pserver run` sets, pserver_close() leaves the same in a file there.
 */
PSERVER_EXPORT pserver_status pserver_stats(pserver_client *client, pserver_client_stats *stats);

/* Ending calls of other threads */

/** Ends calls of the threads that use it, see pserver_use_canceller(). Opaque. */
typedef struct pserver_canceller pserver_canceller;

/** Makes a canceller, to be freed with pserver_canceller_free(). INTERNAL if there is no memory. */
PSERVER_EXPORT pserver_status pserver_canceller_new(pserver_canceller **canceller);

/**
 * Frees a canceller. No other thread may still use it, or be in pserver_cancel() with it. NULL is ignored.
 */
PSERVER_EXPORT void pserver_canceller_free(pserver_canceller *canceller);

/**
 * Ends with ABORTED the running calls of the threads that use it, also pserver_connect() and
 * pserver_close(), and all calls that they begin until pserver_canceller_rearm(). These calls return at
 * once, except while bytes are written to a broker that accepts none, which takes up to 5 s. An update that
 * was sent is applied once or not at all. May be called from any thread at any time, but not in a signal
 * handler. NULL is ignored.
 */
PSERVER_EXPORT void pserver_cancel(pserver_canceller *canceller);

/** Permits later calls again; calls that were ended stay ended. NULL is ignored. */
PSERVER_EXPORT void pserver_canceller_rearm(pserver_canceller *canceller);

/** Sets the canceller of the calls that this thread begins from now on; NULL: none. */
PSERVER_EXPORT void pserver_use_canceller(pserver_canceller *canceller);

/* Initialization */

/**
 * Asks to initialize the job. If `*selected` is true, this trainer must call pserver_init_param() for every
 * parameter, and then pserver_finish_init(). If false, another trainer has initialized the job or, with
 * `wait` false, is initializing it. With `wait` true it waits until one of these is true. If the selected
 * trainer dies, another one that asks is selected. TIMEOUT names the selected trainer.
 */
PSERVER_EXPORT pserver_status pserver_begin_init(pserver_client *client, bool wait,
                                                 int64_t timeout_ms, bool *selected);

/**
 * Declares a parameter and stores its first values. `config` may be NULL. A call that failed, for instance
 * with OUTCOME_UNKNOWN, may be repeated with the same values. NOT_SELECTED unless this trainer is selected;
 * BAD_NAME, BAD_VALUE, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH, BAD_CONFIG, NON_FINITE for invalid arguments.
 */
PSERVER_EXPORT pserver_status pserver_init_param(pserver_client *client, const char *name,
                                                 const pserver_tensor *value,
                                                 const pserver_config *config, int64_t timeout_ms);

/** A parameter to be initialized. */
typedef struct pserver_new_parameter {
  const char *name;
  /** The first values. */
  pserver_tensor value;
  /** NULL: as in pserver_init_param(). */
  const pserver_config *config;
} pserver_new_parameter;

/**
 * Declares many parameters and stores their first values, with far fewer messages than
 * pserver_init_param(). All are checked before anything is sent. A call that failed may be repeated with
 * the same values, in whole or in part. EMPTY without parameters, BAD_VALUE for a name that occurs twice;
 * otherwise errors as of pserver_init_param().
 */
PSERVER_EXPORT pserver_status pserver_init_params(pserver_client *client,
                                                  const pserver_new_parameter *parameters,
                                                  size_t count, int64_t timeout_ms);

/** Ends the initialization. NOT_SELECTED; INCOMPLETE names blocks that are declared but not stored. */
PSERVER_EXPORT pserver_status pserver_finish_init(pserver_client *client, int64_t timeout_ms);

/**
 * Gives up the initialization for which this trainer is selected: another one that waits is selected, or this
 * one if it asks again; what has been initialized meanwhile is dropped. Does nothing if the job is initialized.
 * For a trainer that has failed to initialize the job and goes on. NOT_SELECTED.
 */
PSERVER_EXPORT pserver_status pserver_abort_init(pserver_client *client, int64_t timeout_ms);

/**
 * Creates a parameter with this value unless it exists; waits while another trainer is creating it. If this
 * trainer is selected to create it and the call fails, it gives that up, for which the call may take 2 s longer,
 * and another trainer is selected.
 * `settled`, if not NULL, receives the present value in allocated memory, to be released with
 * pserver_tensor_release(). BAD_DTYPE or BAD_SHAPE if it exists with another type or shape; otherwise
 * errors as of pserver_init_param().
 */
PSERVER_EXPORT pserver_status pserver_create(pserver_client *client, const char *name,
                                             const pserver_tensor *value,
                                             const pserver_config *config, int64_t timeout_ms,
                                             pserver_tensor *settled);

/* Updates */

/** A gradient of one parameter, or of some of its rows. */
typedef struct pserver_gradient {
  const char *name;
  /** The gradient; with `rows`, the values of these rows, one after the other. */
  pserver_tensor values;
  /** Row numbers of the first dimension; negative ones count from its end, repeated ones are added up in
   * order. NULL: the whole parameter. Rows require a parameter configured as `sparse`. */
  const int64_t *rows;
  size_t row_count;
} pserver_gradient;

/** How gradients are sent. NULL instead of a pointer to it means the defaults. */
typedef struct pserver_grad_options {
  size_t struct_size;
  /** If true, `learning_rate` overrides that of the parameters. */
  bool has_learning_rate;
  double learning_rate;
  pserver_encoding encoding;
  /** Whether the call succeeds once the journal has stored its updates: a later rejection is not reported. */
  bool stored_is_enough;
  /** Whether this ends the trainer's step, in a job whose trainers keep step; true by default. */
  bool end_step;
  /** If not NULL, receives the number of blocks whose gradients were not applied because their step had
   * closed: in a job with backup trainers, or in the first step after this trainer has entered. */
  size_t *late_blocks;
  /**
   * Turns error feedback off. Without it, what rounding to int8 or e3m0 leaves out of a gradient is kept and added to
   * the client's next gradient of these elements in one of the two encodings. That takes as much memory as the
   * parameter. It is kept from when a record is first written, whatever becomes of the record, and dropped when the
   * parameter is initialized again, or the journal of any shard is replaced: see pserver_fallbacks().
   */
  bool no_error_feedback;
} pserver_grad_options;

/** Sets the defaults. NULL is ignored. */
PSERVER_EXPORT void pserver_grad_options_init(pserver_grad_options *options);

/**
 * Makes one optimizer step of each parameter with its gradient. In a job whose trainers keep step, the
 * first gradient makes this trainer a member, and a gradient of a new step waits until the step before has
 * closed. Updates of blocks smaller than 256 KiB in one shard are sent together, up to 1 MiB of them, and
 * are applied as a whole or not at all. All gradients are checked before any is sent: EMPTY, BAD_NAME,
 * BAD_VALUE, UNKNOWN_PARAMETER, NOT_INITIALIZED, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH, BAD_INDEX, NON_FINITE,
 * NO_LEARNING_RATE, STATIC, UNSUPPORTED. OUTCOME_UNKNOWN at the deadline: the update of each block that was
 * sent is applied once or not at all.
 */
PSERVER_EXPORT pserver_status pserver_send_grads(pserver_client *client,
                                                 const pserver_gradient *grads, size_t count,
                                                 const pserver_grad_options *options,
                                                 int64_t timeout_ms);

/**
 * Ends the trainer's step, in a job whose trainers keep step, once all its gradients are stored. Does
 * nothing in other jobs. pserver_send_grads() does this itself unless `end_step` is false.
 */
PSERVER_EXPORT pserver_status pserver_end_step(pserver_client *client, int64_t timeout_ms);

/** The type of an entry of a note. */
typedef enum pserver_note_kind {
  PSERVER_NOTE_NUMBER = 0,
  PSERVER_NOTE_TEXT = 1,
  PSERVER_NOTE_FLAG = 2
} pserver_note_kind;

/** An entry of a note: a name of 1 to 128 bytes of UTF-8, and a value in the field that `kind` selects. */
typedef struct pserver_note_entry {
  const char *name;
  pserver_note_kind kind;
  /** Whole numbers are exact up to 2^53. One that is not finite is kept as the text NaN, Infinity or
   * -Infinity. */
  double number;
  /** UTF-8. */
  const char *text;
  bool flag;
} pserver_note_entry;

/**
 * Writes a note into the journal of shard 0, after what this trainer has sent there before: up to 64
 * entries, such as a loss and a step, of 4 KiB together. It changes no parameter. The command `pserver log`
 * shows it in its place, and `pserver plot` draws its numbers. The text of an entry "mark" names the note.
 * Returns when the note is applied. BAD_VALUE, TOO_LARGE before anything is sent.
 */
PSERVER_EXPORT pserver_status pserver_note(pserver_client *client, const pserver_note_entry *entries,
                                           size_t count, int64_t timeout_ms);

/**
 * Leaves the job's steps or rounds, so that they do not wait for this trainer. Its next gradient or contribution enters
 * them again.
 */
PSERVER_EXPORT pserver_status pserver_exit_steps(pserver_client *client, int64_t timeout_ms);

/** Overwrites the values of parameters. Errors as of pserver_send_grads(). */
PSERVER_EXPORT pserver_status pserver_set(pserver_client *client, const char *const *names,
                                          const pserver_tensor *values, size_t count,
                                          int64_t timeout_ms);

/** Sets a parameter to alpha · its value + beta · `value`. Errors as of pserver_send_grads(). */
PSERVER_EXPORT pserver_status pserver_push(pserver_client *client, const char *name,
                                           const pserver_tensor *value, double alpha, double beta,
                                           pserver_encoding encoding, int64_t timeout_ms);

/** How tensors are written. NULL instead of a pointer to it means the defaults. */
typedef struct pserver_update_options {
  size_t struct_size;
  pserver_encoding encoding;
  /** Whether the call succeeds once the journal has stored its updates: a later rejection is not reported. */
  bool stored_is_enough;
} pserver_update_options;

/** Sets the defaults. NULL is ignored. */
PSERVER_EXPORT void pserver_update_options_init(pserver_update_options *options);

/**
 * Overwrites values as pserver_set() does, with options. UNSUPPORTED for an encoding: values are overwritten
 * exactly.
 */
PSERVER_EXPORT pserver_status pserver_set_with(pserver_client *client, const char *const *names,
                                               const pserver_tensor *values, size_t count,
                                               const pserver_update_options *options,
                                               int64_t timeout_ms);

/** Mixes values as pserver_push() does, with options. */
PSERVER_EXPORT pserver_status pserver_push_with(pserver_client *client, const char *name,
                                                const pserver_tensor *value, double alpha,
                                                double beta, const pserver_update_options *options,
                                                int64_t timeout_ms);

/* Rounds of fragments, in a job with PSERVER_DILOCO; in any other job these calls fail with UNSUPPORTED */

/** What the tensors of a contribution are. */
typedef enum pserver_contribution_form {
  /** What was received less what was learned. */
  PSERVER_DISPLACEMENT = 0,
  /** What was learned: hosts compute the displacement, if no later version has come meanwhile. */
  PSERVER_PARAMETERS = 1
} pserver_contribution_form;

/** What a contribution says besides its tensors. Initialize it with pserver_contribution_init(). */
typedef struct pserver_contribution {
  size_t struct_size;
  /** Name of the fragment. */
  const char *fragment;
  /** The version of the fragment from which the trainer began: that of pserver_pull_fragment(). */
  uint64_t base;
  /** Inner steps, and tokens or examples, since then; at most 2^40. */
  uint64_t steps;
  uint64_t tokens;
  /** How long one of these steps took, by which hosts decide how long others may be waited for; below 0, the default:
   * not told. */
  double step_ms;
  pserver_contribution_form form;
  pserver_encoding encoding;
  /** Turns error feedback off, which is as in pserver_grad_options. */
  bool no_error_feedback;
  /** Of each tensor, whether it is sent as it is instead of in the encoding; NULL: none is. */
  const bool *exact;
} pserver_contribution;

/** Sets the defaults. NULL is ignored. */
PSERVER_EXPORT void pserver_contribution_init(pserver_contribution *contribution);

/**
 * Makes this trainer one that rounds may wait for, before its first contribution, which does the same. No round closes
 * before so many have entered as the job's quorum says. pserver_exit_steps() and pserver_close() end it.
 */
PSERVER_EXPORT pserver_status pserver_enter_rounds(pserver_client *client, int64_t timeout_ms);

/**
 * Contributes what this trainer has learned since it pulled a fragment: a tensor for each parameter of the fragment. The
 * contribution is one transaction, also if it goes in several records, and counts once. `*round` is the round that it
 * counts in, the version that the fragment will have once the round closes; nobody waits for that here. 0: it came too
 * late, because the trainer has contributed from this version before, or a later one is there and the job drops
 * what is late. Contributions to the fragments of one shard go one after the other. Everything is checked before
 * anything is sent: EMPTY, BAD_NAME, BAD_VALUE, UNKNOWN_PARAMETER, NOT_INITIALIZED, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH,
 * NON_FINITE, UNSUPPORTED. BAD_LENGTH unless all parameters of the fragment are there; BUSY if the shard keeps too many
 * contributions, or the round has as many as it may; NOT_SAMPLED if others were drawn for the round, see
 * pserver_sampling(); OUTCOME_UNKNOWN at the deadline if it counts once or not at all.
 */
PSERVER_EXPORT pserver_status pserver_contribute(pserver_client *client, const char *const *names,
                                                 const pserver_tensor *values, size_t count,
                                                 const pserver_contribution *contribution,
                                                 int64_t timeout_ms, uint64_t *round);

/**
 * Tells whether this trainer may contribute to the open round of a fragment, `*round`, or to the first after
 * `min_version`, for which it waits. The trainer becomes a member of rounds for that. Everybody may unless the job draws
 * samples of its members: then a contribution of anybody else is rejected with NOT_SAMPLED, so ask before training.
 * `parameter`: name of a parameter of the fragment. BAD_VALUE for one of another fragment; TIMEOUT.
 */
PSERVER_EXPORT pserver_status pserver_sampling(pserver_client *client, const char *fragment,
                                               const char *parameter, uint64_t min_version,
                                               int64_t timeout_ms, uint64_t *round, bool *is_sampled);

/** A fragment of the job. */
typedef struct pserver_fragment {
  char *name;
  /** How many of its rounds have closed. */
  uint64_t version;
  /** Names of its parameters, in their order. */
  char **parameters;
  size_t parameter_count;
} pserver_fragment;

/** Contributions, with the inner steps and tokens that went into them. */
typedef struct pserver_tally {
  uint64_t contributions;
  uint64_t steps;
  uint64_t tokens;
} pserver_tally;

/**
 * What became of a trainer's contributions: processed are all that were complete. Those that are neither merged, nor
 * merged although they were late, nor dropped are in open rounds.
 */
typedef struct pserver_account {
  pserver_tally processed;
  pserver_tally merged;
  pserver_tally late;
  pserver_tally dropped;
} pserver_account;

/**
 * Lists the fragments with their present versions, in the order of their first parameters, by one request to each of
 * their shards; `account`, if not NULL, receives what became of this trainer's contributions. Release `*list`, which is
 * NULL if there are none, with pserver_fragments_release().
 */
PSERVER_EXPORT pserver_status pserver_fragments(pserver_client *client, pserver_fragment **list,
                                                size_t *count, pserver_account *account,
                                                int64_t timeout_ms);
/** Releases a list; NULL is ignored. */
PSERVER_EXPORT void pserver_fragments_release(pserver_fragment *list, size_t count);

/**
 * Reads parameters of a fragment at one version of it, which `*version` receives: the present one, or the first from
 * `min_version` on, for which it waits. Memory and errors as of pserver_get(); BAD_VALUE for a parameter of another
 * fragment; TIMEOUT.
 */
PSERVER_EXPORT pserver_status pserver_pull_fragment(pserver_client *client, const char *fragment,
                                                    const char *const *names, pserver_tensor *tensors,
                                                    size_t count, uint64_t min_version,
                                                    pserver_encoding encoding, int64_t timeout_ms,
                                                    uint64_t *version);

/** Bytes of a name that pserver_balance_fragments() gives, with the final zero. */
#define PSERVER_BALANCED_NAME_SIZE 24

/** A tensor that is to be in a fragment. */
typedef struct pserver_balanced_tensor {
  const char *name;
  uint64_t bytes;
  /** Embeddings have a fragment of their own. */
  bool is_embedding;
  /** Receives the name of its fragment. */
  char fragment[PSERVER_BALANCED_NAME_SIZE];
} pserver_balanced_tensor;

/**
 * Divides tensors among at most `fragments` fragments of nearly the same size, "f0", "f1" and so on, without a request to
 * hosts: the largest tensor first, each into the smallest fragment so far, the first of several; tensors of one size
 * in the order of their names. Embeddings go into one more, "embeddings". All clients compute the same. BAD_VALUE
 * for 0 fragments, and for a name that is NULL or occurs twice.
 */
PSERVER_EXPORT pserver_status pserver_balance_fragments(pserver_balanced_tensor *tensors, size_t count,
                                                        size_t fragments);

/* Reading */

/**
 * Reads the values of parameters; waits until they are initialized. Sees every update of this client that
 * was acknowledged before, and never an older state than an earlier read. If `tensors[i].data` is NULL,
 * memory is allocated, to be released with pserver_tensor_release(). Otherwise `dtype` and `bytes` must be
 * the parameter's, and the values are written there; they are undefined if the call fails. EMPTY, BAD_NAME,
 * UNKNOWN_PARAMETER, NOT_INITIALIZED, UNSUPPORTED; BAD_DTYPE, BAD_LENGTH before anything is read.
 */
PSERVER_EXPORT pserver_status pserver_get(pserver_client *client, const char *const *names,
                                          pserver_tensor *tensors, size_t count,
                                          pserver_encoding encoding, int64_t timeout_ms);

/** How values are read. NULL instead of a pointer to it means the defaults. */
typedef struct pserver_read_options {
  size_t struct_size;
  pserver_encoding encoding;
  /**
   * If not NULL, receives the version of each tensor: 1 after the initialization, and each update adds 1.
   * Blocks are not read at one moment; of several, the highest version. 0 for a part without elements.
   * Undefined if the call fails.
   */
  uint64_t *versions;
} pserver_read_options;

/** Sets the defaults. NULL is ignored. */
PSERVER_EXPORT void pserver_read_options_init(pserver_read_options *options);

/** Reads values as pserver_get() does, with options. */
PSERVER_EXPORT pserver_status pserver_get_with(pserver_client *client, const char *const *names,
                                               pserver_tensor *tensors, size_t count,
                                               const pserver_read_options *options,
                                               int64_t timeout_ms);

/** The version of each block that the tensors of one call were read from. Opaque. */
typedef struct pserver_origins pserver_origins;

/** Values of a parameter, kept from an earlier pserver_get_known(). All zeros: none. */
typedef struct pserver_known {
  /** The values, unchanged since. Their memory is that of the tensor to read into, or does not overlap with
   * it. */
  const void *data;
  /** The origins from the earlier call, and the index of the parameter among its names. */
  const pserver_origins *origins;
  size_t index;
} pserver_known;

/**
 * Reads parameters as pserver_get_with() does, but hosts do not send blocks that still have the version in
 * `known[i]`. If `tensors[i].data` is NULL and no block has changed, it stays NULL: the known values are
 * the present ones. In all other cases the tensor receives all values, in the caller's memory or in
 * allocated memory; those of unchanged blocks are copied from the known ones. `known` may be NULL; an entry
 * is ignored unless it is from the same client and of the same parameter, initialization and encoding.
 * `*origins` is for the next such call, and to be freed with pserver_origins_free(). BAD_VALUE for an index
 * beyond the names of the earlier call; otherwise errors as of pserver_get().
 */
PSERVER_EXPORT pserver_status pserver_get_known(pserver_client *client, const char *const *names,
                                                pserver_tensor *tensors, size_t count,
                                                const pserver_known *known,
                                                pserver_origins **origins,
                                                const pserver_read_options *options,
                                                int64_t timeout_ms);

/** Frees origins that no call uses any more. They may outlive their client. NULL is ignored. */
PSERVER_EXPORT void pserver_origins_free(pserver_origins *origins);

/**
 * Frees `data` that a call has allocated, and sets it to NULL. NULL and a tensor without data are ignored.
 */
PSERVER_EXPORT void pserver_tensor_release(pserver_tensor *tensor);

/* Parts */

/** Indices of one dimension; negative ones count from its end, repeats and any order are allowed. */
typedef struct pserver_indices {
  const int64_t *values;
  size_t count;
} pserver_indices;

/**
 * Reads the elements at the cartesian product of `indices`, one list for each of the `rank` dimensions,
 * into a tensor whose shape is the lengths of the lists. An empty list gives an empty tensor. Memory,
 * consistency and errors as of pserver_get(); BAD_INDEX for an invalid index, TOO_LARGE for 2^32 elements
 * or more.
 */
PSERVER_EXPORT pserver_status pserver_pull_part(pserver_client *client, const char *name,
                                                const pserver_indices *indices, size_t rank,
                                                pserver_tensor *part, int64_t timeout_ms);

/**
 * Sets these elements to alpha · their value + beta · `part`; the others stay unchanged. If an element is
 * named repeatedly, the last value counts. An empty list does nothing. Errors as of pserver_send_grads();
 * BAD_INDEX for an invalid index, TOO_LARGE for 2^32 elements or more.
 */
PSERVER_EXPORT pserver_status pserver_push_part(pserver_client *client, const char *name,
                                                const pserver_tensor *part,
                                                const pserver_indices *indices, size_t rank,
                                                double alpha, double beta, int64_t timeout_ms);

/** Reads a part as pserver_pull_part() does, with options; `versions` has one entry. */
PSERVER_EXPORT pserver_status pserver_pull_part_with(pserver_client *client, const char *name,
                                                     const pserver_indices *indices, size_t rank,
                                                     pserver_tensor *part,
                                                     const pserver_read_options *options,
                                                     int64_t timeout_ms);

/** Changes a part as pserver_push_part() does, with options. */
PSERVER_EXPORT pserver_status pserver_push_part_with(pserver_client *client, const char *name,
                                                     const pserver_tensor *part,
                                                     const pserver_indices *indices, size_t rank,
                                                     double alpha, double beta,
                                                     const pserver_update_options *options,
                                                     int64_t timeout_ms);

/* The job */

/** The state of a job's initialization. */
typedef enum pserver_state {
  PSERVER_UNINITIALIZED = 0,
  PSERVER_INITIALIZING = 1,
  PSERVER_READY = 2
} pserver_state;

/** A job. */
typedef struct pserver_job_info {
  pserver_state state;
  /** Number of the initialization. */
  uint64_t epoch;
  uint32_t shards;
  /** The trainer that initializes or has initialized the job; "" if there is none. */
  char by[65];
  /** Number of this client's session. */
  uint64_t session;
} pserver_job_info;

/** Asks a host for the state of the job. */
PSERVER_EXPORT pserver_status pserver_job_status(pserver_client *client, pserver_job_info *info,
                                                 int64_t timeout_ms);

/** The maximum number of shards of a job. */
#define PSERVER_SHARDS_MAX 256

/** A position in the journal of a shard. */
typedef struct pserver_position {
  uint64_t generation;
  uint64_t seq;
} pserver_position;

/**
 * Asks a host for the state of the job, and for the ends of its journals when it became ready. `positions`
 * has memory for PSERVER_SHARDS_MAX of them; `*position_count` becomes the number of shards, or 0 before
 * the job is ready.
 */
PSERVER_EXPORT pserver_status pserver_job_positions(pserver_client *client, pserver_job_info *info,
                                                    pserver_position *positions,
                                                    size_t *position_count, int64_t timeout_ms);

/** A parameter of a job. */
typedef struct pserver_parameter_info {
  char *name;
  pserver_dtype dtype;
  int32_t rank;
  uint64_t shape[PSERVER_RANK_MAX];
  uint64_t elements;
  uint64_t blocks;
  uint64_t epoch;
  bool ready;
} pserver_parameter_info;

/** Lists all parameters, in order of names. Release `*list` with pserver_list_release(). */
PSERVER_EXPORT pserver_status pserver_list(pserver_client *client, pserver_parameter_info **list,
                                           size_t *count, int64_t timeout_ms);
/** Releases a list; NULL is ignored. */
PSERVER_EXPORT void pserver_list_release(pserver_parameter_info *list, size_t count);

/** A parameter, its configuration and its blocks. */
typedef struct pserver_parameter_details {
  pserver_parameter_info info;
  /** The configuration, a JSON object with all defaults filled in. */
  char *config;
  /** Elements of each block except the last. */
  uint64_t block_elements;
  /** The shard of block 0. Block i is in shard (first_shard + i) modulo `shards`, or, if `pinned`, in `first_shard` too. */
  uint32_t first_shard;
  uint32_t shards;
  /** Whether all blocks are in one shard, as those of a parameter in a fragment are. */
  bool pinned;
} pserver_parameter_details;

/** Lists all parameters with all details. Release `*list` with pserver_list_details_release(). */
PSERVER_EXPORT pserver_status pserver_list_details(pserver_client *client,
                                                   pserver_parameter_details **list, size_t *count,
                                                   int64_t timeout_ms);
/** Releases a list; NULL is ignored. */
PSERVER_EXPORT void pserver_list_details_release(pserver_parameter_details *list, size_t count);

/** Records of a shard's journal that were lost. Updates in them may have been acknowledged. */
typedef struct pserver_fallback {
  uint32_t shard;
  /** Generation of the replaced journal; `from` and `to` are the first and last sequence number lost. */
  uint64_t generation;
  uint64_t from;
  uint64_t to;
} pserver_fallback;

/**
 * Lists what shards have lost, since the last such call, of what this client may have written or read. A
 * shard falls back when its journal is replaced, for instance by `pserver recover`. Sends requests only to
 * shards whose journals this client knows to be replaced, so it may be called after any error, or from time
 * to time. After a failed call the next one asks again. Release `*list`, which is NULL if nothing was lost,
 * with pserver_fallbacks_release().
 *
 * In a job whose trainers keep step, the next gradient enters the steps again. The client itself sends a
 * gradient again that a shard rejects as too early, or because it was made from a version that is undone.
 */
PSERVER_EXPORT pserver_status pserver_fallbacks(pserver_client *client, pserver_fallback **list,
                                                size_t *count, int64_t timeout_ms);
/** Releases a list; NULL is ignored. */
PSERVER_EXPORT void pserver_fallbacks_release(pserver_fallback *list);

/**
 * Makes a host write the model to a file below its model directory. The default timeout is 10 minutes. The
 * ending of the name chooses the format: .safetensors, .npz, .tar; a name that ends in / or has no ending is
 * a directory. If the call ends early, the host stops writing, and a file that existed before is kept. BAD_PATH, IO or DISK_FULL if the host reports them.
 */
PSERVER_EXPORT pserver_status pserver_save(pserver_client *client, const char *path,
                                           int64_t timeout_ms);

/** A model file that a host has written. */
typedef struct pserver_saved_model {
  /** Set it to `sizeof(pserver_saved_model)`, so that later versions can add fields. */
  size_t struct_size;
  /** Absolute path on the machine of the host. */
  char file[4097];
  uint64_t bytes;
  char format[65];
  /** Id of the host. */
  char host[65];
} pserver_saved_model;

/** Reports the bytes of values written so far, and of all values. Called about twice a second, on the
 * thread that made the call. May call pserver_cancel(), but no other function of the library. */
typedef void (*pserver_on_progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);

/** Saves the model as pserver_save() does. Reports progress unless `on_progress` is NULL; describes the
 * file unless `saved` is NULL. */
PSERVER_EXPORT pserver_status pserver_save_model(pserver_client *client, const char *path,
                                                 pserver_on_progress on_progress, void *context,
                                                 pserver_saved_model *saved, int64_t timeout_ms);

/* Errors */

/** Returns the code of the last call of this thread that failed, and its message unless `message` is NULL;
 * valid until the next call that fails. PSERVER_OK and "" before the first. */
PSERVER_EXPORT pserver_status pserver_last_error(const char **message);

/**
 * Returns details of the last error of this thread, as a JSON object: `expected` and `received`,
 * `parameter`, `shard`, `index` and others, as in the TypeScript client's `details`, and those that hosts
 * send; "{}" if there are none. UTF-8, at most 8 KiB; entries that do not fit are left out. Valid until the
 * next call that fails.
 */
PSERVER_EXPORT const char *pserver_last_error_details(void);

/** Returns the code's name in the protocol, such as "BAD_NAME"; "OK" for 0, "UNKNOWN" for an unknown code. */
PSERVER_EXPORT const char *pserver_status_name(pserver_status status);

/** Whether the same call can succeed later. */
PSERVER_EXPORT bool pserver_is_retryable(pserver_status status);

/** Returns the version of the library in use; PSERVER_VERSION is that of the header. */
PSERVER_EXPORT const char *pserver_version(void);

#ifdef __cplusplus
}
#endif

#endif
