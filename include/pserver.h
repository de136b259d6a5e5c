/**
 * libpserver: trains with a parameter server on NATS.
 *
 * Every function may be called from any thread at any time, also at once with the same client, and
 * blocks its thread until it is done or its time is over. Updates of one thread are applied in the
 * order of its calls, those of different threads in any order. Arguments belong to the caller and must
 * not change during the call; memory that a call allocates is released with the function that it names.
 *
 * Names are UTF-8. A NUL in a name, which TypeScript allows, is the two bytes C0 80, in both directions.
 *
 * A call that fails returns a code of pserver_errors.h and changes no result; pserver_last_error() and
 * pserver_last_error_details() tell more. NULL where a value is needed, a closed client, and a client
 * that another process has opened (as in the child after a fork) are errors, not crashes.
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

/** Dimensions of a tensor. */
#define PSERVER_RANK_MAX 32

/** As a timeout: the client's own, see pserver_options.call_timeout_ms. */
#define PSERVER_TIMEOUT_DEFAULT ((int64_t)-1)

/** As the rank of a tensor that is passed in: the shape of the parameter, whatever it is. */
#define PSERVER_RANK_OF_PARAMETER ((int32_t)-1)

/** Element types; little-endian. The numbers are those of the protocol. */
typedef enum pserver_dtype {
  PSERVER_INT32 = 0,
  PSERVER_UINT32 = 1,
  PSERVER_INT64 = 2,
  PSERVER_UINT64 = 3,
  PSERVER_FLOAT32 = 4,
  PSERVER_FLOAT64 = 5
} pserver_dtype;

/** How float32 elements are sent: as they are, or in two bytes each, rounded to nearest. */
typedef enum pserver_encoding {
  PSERVER_AS_IS = 0,
  PSERVER_BFLOAT16 = 1,
  PSERVER_FLOAT16 = 2
} pserver_encoding;

/** A tensor in C order. Rank 0 is a scalar of one element. */
typedef struct pserver_tensor {
  pserver_dtype dtype;
  int32_t rank;
  uint64_t shape[PSERVER_RANK_MAX];
  /** Any alignment. */
  void *data;
  uint64_t bytes;
} pserver_tensor;

/**
 * How a parameter is updated. Give text, or Paddle's messages, or nothing. Nothing means SGD without a
 * learning rate, so that every gradient must bring one.
 */
typedef struct pserver_config {
  /** JSON or YAML of the configuration, as the TypeScript client takes it; NULL for none. */
  const char *text;
  /** Serialized paddle.OptimizerConfig; NULL for none. */
  const void *optimizer_config;
  size_t optimizer_config_bytes;
  /** Serialized paddle.ParameterConfig; NULL for none. */
  const void *parameter_config;
  size_t parameter_config_bytes;
} pserver_config;

/** A client of one job: one trainer. Opaque; never dereference it. */
typedef struct pserver_client pserver_client;

/** How to reach the broker and the job. Fill it with pserver_options_init() first. */
typedef struct pserver_options {
  /** Set by pserver_options_init(): lets later versions add entries. */
  size_t struct_size;
  /** Addresses separated by commas, `nats://host:port`, `tls://…` or `host:port`, with credentials
   * before an `@`; write `/ @ : ? # % ,` of a password as %2F %40 %3A %3F %23 %25 %2C. With `tls://`,
   * which all addresses must have or none, nothing is sent to a broker that offers no TLS. NULL:
   * PSERVER_URL, else NATS_URL, else nats://127.0.0.1:4222. */
  const char *url;
  /** Credentials. The first of these sources that has any is used: url; these entries; NATS_USER,
   * NATS_PASSWORD, NATS_TOKEN, NATS_CREDS, NATS_NKEY and NATS_NKEY_PUBLIC. */
  const char *user;
  const char *password;
  const char *token;
  /** File with the credentials of a JWT user. */
  const char *creds_file;
  /** File with the seed of an nkey, and the public key that belongs to it. */
  const char *nkey_file;
  const char *nkey_public;
  /** PEM files; if all are NULL: NATS_CA, NATS_CERT and NATS_KEY. Any of them asks for TLS, too. Without
   * tls_ca the system's authorities are trusted. */
  const char *tls_ca;
  const char *tls_cert;
  const char *tls_key;
  /** Name of the job: 1 to 40 characters A-Z a-z 0-9 and -. */
  const char *job;
  /** Id of this trainer. Use the same after a restart, to take over what it was doing. Two processes with
   * the same id end each other's sessions. NULL: an id that is used once. */
  const char *trainer;
  /** Token of this client's inbox below `_INBOX_<job>.<trainer>.`; NULL: a random one. */
  const char *inbox_token;
  /** Time of pserver_connect() in all, 10,000 by default, and of one attempt, 5,000. */
  int64_t connect_timeout_ms;
  int64_t attempt_timeout_ms;
  /** Time of calls that are given PSERVER_TIMEOUT_DEFAULT; 30,000 by default. */
  int64_t call_timeout_ms;
  /** Bytes that may be in flight to the journals, and as many from the hosts; 16 MiB by default. The
   * client's own memory is about twice as much. */
  size_t in_flight_bytes;
} pserver_options;

/** Writes the defaults. NULL is ignored. */
PSERVER_EXPORT void pserver_options_init(pserver_options *options);

/**
 * Connects and joins the job. A lost connection is made again, and what was lost with it is repeated.
 * `*client` must be closed. If a process has called this before it forks, it fails in the child at once,
 * with CLOSED, and so do all calls on clients of the parent; the parent can go on using them.
 * BAD_NAME, BAD_VALUE, IO for wrong options; NO_BROKER, DENIED; NO_TLS if TLS is asked for and the broker
 * offers none, or its certificate is refused; NO_HOST if no host answers in time.
 */
PSERVER_EXPORT pserver_status pserver_connect(const pserver_options *options,
                                              pserver_client **client);

/**
 * Refuses new calls, waits for those under way, ends the remaining ones with CLOSED, releases the lease
 * and closes the connection. CLOSED for a client that is closed already. If a canceller ends it with
 * ABORTED, the client is closed all the same, and the lease expires.
 */
PSERVER_EXPORT pserver_status pserver_close(pserver_client *client, int64_t timeout_ms);

/** How the trainers of a job keep step. */
typedef enum pserver_synchronization {
  PSERVER_ASYNC = 0,
  PSERVER_SYNC = 1,
  PSERVER_SSP = 2
} pserver_synchronization;

/** What a client knows about itself. */
typedef struct pserver_client_info {
  /** Set it to `sizeof(pserver_client_info)`: lets later versions add entries. */
  size_t struct_size;
  char job[41];
  char trainer[65];
  /** Number of the trainer's session; another one after its lease was lost. */
  uint64_t session;
  pserver_synchronization synchronization;
  /** With PSERVER_SYNC and PSERVER_SSP: how many trainers must be there before steps begin. This and the
   * following entries are 0 where they do not apply. */
  uint64_t trainers;
  /** With PSERVER_SYNC: how many trainers a step does not wait for, and whether it takes the sum of the
   * gradients instead of their mean. */
  uint64_t backups;
  bool sums;
  /** With PSERVER_SSP: how many steps a trainer may be ahead. */
  uint64_t staleness;
  /** Steps that this trainer has ended, including those that closed before it entered. */
  uint64_t steps_ended;
} pserver_client_info;

/** Fills in what the client knows about itself, without a request. BAD_VALUE for a wrong `struct_size`. */
PSERVER_EXPORT pserver_status pserver_describe(pserver_client *client, pserver_client_info *info);

/* Ending calls of other threads */

/** Ends the calls of the threads that use it. Opaque. */
typedef struct pserver_canceller pserver_canceller;

/** Makes one, to be freed with pserver_canceller_free(). INTERNAL if there is no memory. */
PSERVER_EXPORT pserver_status pserver_canceller_new(pserver_canceller **canceller);

/** Frees one that no other thread uses any more, or cancels; NULL is ignored. */
PSERVER_EXPORT void pserver_canceller_free(pserver_canceller *canceller);

/**
 * Ends, with ABORTED, the running calls of the threads that use it, also pserver_connect() and
 * pserver_close(), and each call that they begin until pserver_canceller_rearm(). These calls stop waiting;
 * only handing bytes to a broker that accepts none can take longer, 5 s at most. An update that was sent is
 * applied once or not at all. May be called from any thread at any time, but not in a signal handler. NULL
 * is ignored.
 */
PSERVER_EXPORT void pserver_cancel(pserver_canceller *canceller);

/** Lets later calls run again; calls that were ended stay ended. NULL is ignored. */
PSERVER_EXPORT void pserver_canceller_rearm(pserver_canceller *canceller);

/** Calls that this thread begins from now on obey this canceller; NULL: none. */
PSERVER_EXPORT void pserver_use_canceller(pserver_canceller *canceller);

/* Initialization */

/**
 * Asks to initialize the job. `*selected` is true: this trainer calls pserver_init_param() for every
 * parameter, then pserver_finish_init(). False: another one has done so, or, with `wait` false, is
 * doing so. A selected trainer that dies is replaced by one that asks. TIMEOUT names the selected one.
 */
PSERVER_EXPORT pserver_status pserver_begin_init(pserver_client *client, bool wait,
                                                 int64_t timeout_ms, bool *selected);

/**
 * Declares a parameter and stores its first values. `config` may be NULL. A call that has failed, with
 * OUTCOME_UNKNOWN for instance, may be repeated with the same values.
 * NOT_SELECTED unless this trainer is selected; BAD_NAME, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH, BAD_CONFIG,
 * NON_FINITE for wrong arguments.
 */
PSERVER_EXPORT pserver_status pserver_init_param(pserver_client *client, const char *name,
                                                 const pserver_tensor *value,
                                                 const pserver_config *config, int64_t timeout_ms);

/** A parameter to be initialized. */
typedef struct pserver_new_parameter {
  const char *name;
  /** Its first values. */
  pserver_tensor value;
  /** NULL: as in pserver_init_param(). */
  const pserver_config *config;
} pserver_new_parameter;

/**
 * pserver_init_param() for many parameters, with far fewer messages. All are checked before anything is sent. A
 * call that has failed may be repeated with the same values, in whole or in part. EMPTY without parameters,
 * BAD_VALUE for a name that occurs twice; else errors as of pserver_init_param().
 */
PSERVER_EXPORT pserver_status pserver_init_params(pserver_client *client,
                                                  const pserver_new_parameter *parameters,
                                                  size_t count, int64_t timeout_ms);

/** Ends the initialization. INCOMPLETE names blocks that are declared but not stored. */
PSERVER_EXPORT pserver_status pserver_finish_init(pserver_client *client, int64_t timeout_ms);

/**
 * Creates a parameter with this value unless it exists; waits for whoever is doing so. `settled`, if
 * not NULL, gets the value that holds now, allocated; see pserver_tensor_release().
 * BAD_DTYPE or BAD_SHAPE if it exists with another type or shape.
 */
PSERVER_EXPORT pserver_status pserver_create(pserver_client *client, const char *name,
                                             const pserver_tensor *value,
                                             const pserver_config *config, int64_t timeout_ms,
                                             pserver_tensor *settled);

/* Updates */

/** A gradient of one parameter: of all of it, or of some of its rows. */
typedef struct pserver_gradient {
  const char *name;
  /** If `rows` is given: the values of these rows, one after the other. */
  pserver_tensor values;
  /** Row numbers of the first dimension, negative ones from its end; repeated ones are added up in
   * order. NULL: all of the parameter. Needs a parameter configured `sparse`. */
  const int64_t *rows;
  size_t row_count;
} pserver_gradient;

/** How gradients are sent; NULL in its place means all defaults. */
typedef struct pserver_grad_options {
  size_t struct_size;
  /** Overrides the parameters' own rate if `has_learning_rate`. */
  bool has_learning_rate;
  double learning_rate;
  pserver_encoding encoding;
  /** Whether the journal's acknowledgement is enough: a later rejection of a block's update is not reported. */
  bool stored_is_enough;
  /** Whether this ends the trainer's step, in a job whose trainers keep step; true by default. */
  bool end_step;
  /** If not NULL, receives the number of blocks whose gradients were left out because their step had closed:
   * in a job with backup trainers, or in the first step after this trainer has entered. */
  size_t *late_blocks;
} pserver_grad_options;

/** Writes the defaults. NULL is ignored. */
PSERVER_EXPORT void pserver_grad_options_init(pserver_grad_options *options);

/**
 * One step of each parameter's optimizer. All gradients are checked before any is sent: EMPTY,
 * BAD_NAME, UNKNOWN_PARAMETER, NOT_INITIALIZED, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH, BAD_INDEX, NON_FINITE,
 * NO_LEARNING_RATE, UNSUPPORTED. In a job whose trainers keep step, the first gradient makes this trainer
 * a member, and a gradient of a new step waits until the step before has closed. OUTCOME_UNKNOWN at the
 * deadline: the update of each block that was sent is applied once or not at all. Blocks of less than 256 KiB
 * in one shard go together, up to 1 MiB of them, unless the job's rules are older than version 3: these are
 * applied as a whole or not at all.
 */
PSERVER_EXPORT pserver_status pserver_send_grads(pserver_client *client,
                                                 const pserver_gradient *grads, size_t count,
                                                 const pserver_grad_options *options,
                                                 int64_t timeout_ms);

/**
 * Ends the trainer's step, in a job whose trainers keep step, once all its gradients are stored; does
 * nothing in other jobs. pserver_send_grads() does it itself unless `end_step` is false.
 */
PSERVER_EXPORT pserver_status pserver_end_step(pserver_client *client, int64_t timeout_ms);

/** What an entry of a note is. */
typedef enum pserver_note_kind {
  PSERVER_NOTE_NUMBER = 0,
  PSERVER_NOTE_TEXT = 1,
  PSERVER_NOTE_FLAG = 2
} pserver_note_kind;

/** An entry of a note: a name of 1 to 128 bytes of UTF-8, and the value that `kind` says. */
typedef struct pserver_note_entry {
  const char *name;
  pserver_note_kind kind;
  /** Finite. */
  double number;
  /** UTF-8. */
  const char *text;
  bool flag;
} pserver_note_entry;

/**
 * Writes a remark into the journal, behind what this trainer has sent to shard 0 before: up to 64 entries,
 * such as a loss and a step, of 4 KiB together. It changes no parameter; the command `pserver log` shows it in
 * its place and `pserver plot` draws its numbers. The text of an entry "mark" names the note. Acknowledged
 * as an update is. BAD_VALUE, TOO_LARGE before anything is sent; UNSUPPORTED in a job of rules below 4, which
 * `pserver upgrade-rules` raises.
 */
PSERVER_EXPORT pserver_status pserver_note(pserver_client *client, const pserver_note_entry *entries,
                                           size_t count, int64_t timeout_ms);

/** Leaves the job's steps, so that nobody waits for this trainer; its next gradient enters again. */
PSERVER_EXPORT pserver_status pserver_exit_steps(pserver_client *client, int64_t timeout_ms);

/** Overwrites values. Errors as of pserver_send_grads(). */
PSERVER_EXPORT pserver_status pserver_set(pserver_client *client, const char *const *names,
                                          const pserver_tensor *values, size_t count,
                                          int64_t timeout_ms);

/** value = alpha · value + beta · tensor. Errors as of pserver_send_grads(). */
PSERVER_EXPORT pserver_status pserver_push(pserver_client *client, const char *name,
                                           const pserver_tensor *value, double alpha, double beta,
                                           pserver_encoding encoding, int64_t timeout_ms);

/** How tensors are written; NULL in its place means all defaults. */
typedef struct pserver_update_options {
  size_t struct_size;
  pserver_encoding encoding;
  /** Whether the journal's acknowledgement is enough: a later rejection of a block's update is not reported. */
  bool stored_is_enough;
} pserver_update_options;

/** Writes the defaults. NULL is ignored. */
PSERVER_EXPORT void pserver_update_options_init(pserver_update_options *options);

/** pserver_set() with options. UNSUPPORTED for an encoding: values are overwritten exactly. */
PSERVER_EXPORT pserver_status pserver_set_with(pserver_client *client, const char *const *names,
                                               const pserver_tensor *values, size_t count,
                                               const pserver_update_options *options,
                                               int64_t timeout_ms);

/** pserver_push() with options. */
PSERVER_EXPORT pserver_status pserver_push_with(pserver_client *client, const char *name,
                                                const pserver_tensor *value, double alpha,
                                                double beta, const pserver_update_options *options,
                                                int64_t timeout_ms);

/* Reading */

/**
 * Reads the values of parameters; waits until they are initialized. If `tensors[i].data` is NULL, memory
 * is allocated, see pserver_tensor_release(). Otherwise `dtype` and `bytes` must be the parameter's
 * (BAD_DTYPE, BAD_LENGTH, before anything is read) and the values are written there; if the call fails
 * these are undefined. Sees every update of this client that was acknowledged before, and never an older
 * state than an earlier read.
 */
PSERVER_EXPORT pserver_status pserver_get(pserver_client *client, const char *const *names,
                                          pserver_tensor *tensors, size_t count,
                                          pserver_encoding encoding, int64_t timeout_ms);

/** How values are read; NULL in its place means all defaults. */
typedef struct pserver_read_options {
  size_t struct_size;
  pserver_encoding encoding;
  /** If not NULL, receives for each tensor the changes of the parameter since it was initialized, which counts
   * as the first: each update adds 1. Of several blocks, which are not read at one moment, that of the most
   * changed one; 0 of a part without elements. Undefined if the call fails. */
  uint64_t *versions;
} pserver_read_options;

/** Writes the defaults. NULL is ignored. */
PSERVER_EXPORT void pserver_read_options_init(pserver_read_options *options);

/** pserver_get() with options. */
PSERVER_EXPORT pserver_status pserver_get_with(pserver_client *client, const char *const *names,
                                               pserver_tensor *tensors, size_t count,
                                               const pserver_read_options *options,
                                               int64_t timeout_ms);

/** What the tensors of one call were read from: the version of each of their blocks. Opaque. */
typedef struct pserver_origins pserver_origins;

/** Values that the caller has of a parameter, from an earlier pserver_get_known(). Zeros: none. */
typedef struct pserver_known {
  /** The values, not changed since; they lie apart from the tensor that is read into, or are just there. */
  const void *data;
  /** The origins that the earlier call gave, and the place of the parameter among its names. */
  const pserver_origins *origins;
  size_t index;
} pserver_known;

/**
 * pserver_get_with() of what has changed since an earlier read: blocks that still have the version that
 * `known[i]` says are not sent again. Where `tensors[i].data` is NULL, it stays so if no block has changed:
 * the known values are the present ones. Otherwise memory is allocated and has all values, those of unchanged
 * blocks copied from the known ones, as it is in memory of the caller's. `known` may be NULL; an entry counts
 * only for the same parameter and initialization, the same encoding, and the same client. `*origins` is
 * given for the next such call, and freed with pserver_origins_free(). BAD_VALUE for an index that the earlier
 * call had no name for.
 */
PSERVER_EXPORT pserver_status pserver_get_known(pserver_client *client, const char *const *names,
                                                pserver_tensor *tensors, size_t count,
                                                const pserver_known *known,
                                                pserver_origins **origins,
                                                const pserver_read_options *options,
                                                int64_t timeout_ms);

/** Frees what a call gave, once no call uses it any more. It may outlive its client. NULL is ignored. */
PSERVER_EXPORT void pserver_origins_free(pserver_origins *origins);

/** Frees `data` that a call allocated and sets it to NULL. NULL and a tensor without data are ignored. */
PSERVER_EXPORT void pserver_tensor_release(pserver_tensor *tensor);

/* Parts */

/** Indices of one dimension; negative ones count from its end, repeats and any order are allowed. */
typedef struct pserver_indices {
  const int64_t *values;
  size_t count;
} pserver_indices;

/**
 * As pserver_get(), reads the elements at the cartesian product of `indices`, one list for each of the
 * `rank` dimensions, into a tensor whose shape is the lists' lengths. An empty list gives an empty
 * tensor. BAD_INDEX for a wrong index.
 */
PSERVER_EXPORT pserver_status pserver_pull_part(pserver_client *client, const char *name,
                                                const pserver_indices *indices, size_t rank,
                                                pserver_tensor *part, int64_t timeout_ms);

/**
 * value = alpha · value + beta · part for these elements; the others stay. For an element that is named
 * repeatedly the last value counts. An empty list does nothing. BAD_INDEX for a wrong index.
 */
PSERVER_EXPORT pserver_status pserver_push_part(pserver_client *client, const char *name,
                                                const pserver_tensor *part,
                                                const pserver_indices *indices, size_t rank,
                                                double alpha, double beta, int64_t timeout_ms);

/** pserver_pull_part() with options; `versions` has room for one. */
PSERVER_EXPORT pserver_status pserver_pull_part_with(pserver_client *client, const char *name,
                                                     const pserver_indices *indices, size_t rank,
                                                     pserver_tensor *part,
                                                     const pserver_read_options *options,
                                                     int64_t timeout_ms);

/** pserver_push_part() with options. */
PSERVER_EXPORT pserver_status pserver_push_part_with(pserver_client *client, const char *name,
                                                     const pserver_tensor *part,
                                                     const pserver_indices *indices, size_t rank,
                                                     double alpha, double beta,
                                                     const pserver_update_options *options,
                                                     int64_t timeout_ms);

/* The job */

/** What a job is doing. */
typedef enum pserver_state {
  PSERVER_UNINITIALIZED = 0,
  PSERVER_INITIALIZING = 1,
  PSERVER_READY = 2
} pserver_state;

/** The state of a job. */
typedef struct pserver_job_info {
  pserver_state state;
  uint64_t epoch;
  uint32_t shards;
  /** The trainer that initializes or initialized the job, "" if there is none. */
  char by[65];
  /** Number of this life of the trainer. */
  uint64_t session;
} pserver_job_info;

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
 * pserver_job_status(), and the ends of the journals when the job became ready: `positions` has room for
 * PSERVER_SHARDS_MAX, and `*position_count` is the number of shards, or 0 before the job is ready.
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

/** Every parameter, in order of names; `*list` is released with pserver_list_release(). */
PSERVER_EXPORT pserver_status pserver_list(pserver_client *client, pserver_parameter_info **list,
                                           size_t *count, int64_t timeout_ms);
PSERVER_EXPORT void pserver_list_release(pserver_parameter_info *list, size_t count);

/** A parameter, and how it is updated and stored. */
typedef struct pserver_parameter_details {
  pserver_parameter_info info;
  /** The configuration, a JSON object with all defaults written out. */
  char *config;
  /** Elements of each block but the last. Block i is on shard (first_shard + i) modulo `shards`. */
  uint64_t block_elements;
  uint32_t first_shard;
  uint32_t shards;
} pserver_parameter_details;

/** The same list with all details; `*list` is released with pserver_list_details_release(). */
PSERVER_EXPORT pserver_status pserver_list_details(pserver_client *client,
                                                   pserver_parameter_details **list, size_t *count,
                                                   int64_t timeout_ms);
PSERVER_EXPORT void pserver_list_details_release(pserver_parameter_details *list, size_t count);

/** Records of a shard's journal that were lost, and with them acknowledged updates. */
typedef struct pserver_fallback {
  uint32_t shard;
  /** Generation of the replaced journal; `from` and `to` are sequence numbers in it. */
  uint64_t generation;
  uint64_t from;
  uint64_t to;
} pserver_fallback;

/**
 * What shards have lost, since the last such call, of what this client may have written or read: a shard
 * falls back when its journal is replaced, for instance by `pserver recover`. Asks only shards whose journal
 * this client knows to have been replaced; otherwise it costs nothing, so call it after any error, or from
 * time to time. After a failed call the next one asks the same again. `*list`, NULL if there is nothing, is
 * released with pserver_fallbacks_release(). In a job whose trainers keep step, the next gradient enters
 * again. The library resends a gradient that a shard finds too early, or made from an undone version.
 */
PSERVER_EXPORT pserver_status pserver_fallbacks(pserver_client *client, pserver_fallback **list,
                                                size_t *count, int64_t timeout_ms);
PSERVER_EXPORT void pserver_fallbacks_release(pserver_fallback *list);

/**
 * Asks a host to write the model to a file below its model directory; by default this may take 10 minutes.
 * The ending chooses the format: .safetensors, .npz, .h5 or .hdf5, .tar; a name that ends in / or has no
 * ending is a directory. BAD_PATH, IO or DISK_FULL if the host reports it. If the call ends early, the host
 * stops writing, and a file that was there before stays.
 */
PSERVER_EXPORT pserver_status pserver_save(pserver_client *client, const char *path,
                                           int64_t timeout_ms);

/** A model file that a host has written. */
typedef struct pserver_saved_model {
  /** Set it to `sizeof(pserver_saved_model)`: lets later versions add entries. */
  size_t struct_size;
  /** Path below the model directory of the host. */
  char file[4097];
  uint64_t bytes;
  char format[65];
  /** Id of the host, "" if the host is older than this library. */
  char host[65];
} pserver_saved_model;

/** Called on the calling thread, about twice a second, with the bytes of values written so far, and in all.
 * May call pserver_cancel(), but no other function of the library. */
typedef void (*pserver_on_progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);

/** pserver_save() that reports its progress, unless `on_progress` is NULL, and describes the file, unless
 * `saved` is NULL. */
PSERVER_EXPORT pserver_status pserver_save_model(pserver_client *client, const char *path,
                                                 pserver_on_progress on_progress, void *context,
                                                 pserver_saved_model *saved, int64_t timeout_ms);

/* Errors */

/** Code of the last call of this thread that failed, and its message if `message` is not NULL: valid
 * until the next call that fails. PSERVER_OK and "" before the first. */
PSERVER_EXPORT pserver_status pserver_last_error(const char **message);

/**
 * What the last error of this thread is about, as a JSON object: `expected` and `received`, `parameter`,
 * `shard`, `index` and others, like the TypeScript client's `details` and those that hosts send; "{}" if
 * there is nothing. UTF-8, at most 8 KiB: entries that do not fit are left out. Valid until the next call
 * that fails.
 */
PSERVER_EXPORT const char *pserver_last_error_details(void);

/** The code's name in the protocol, such as "BAD_NAME"; "OK" for 0, "UNKNOWN" for any other number. */
PSERVER_EXPORT const char *pserver_status_name(pserver_status status);

/** Whether the same call, unchanged, can succeed later. */
PSERVER_EXPORT bool pserver_is_retryable(pserver_status status);

/** Version of the library in use; PSERVER_VERSION is that of the header. */
PSERVER_EXPORT const char *pserver_version(void);

#ifdef __cplusplus
}
#endif

#endif
