#ifndef RECORDS_RECORDS_H
#define RECORDS_RECORDS_H

/*
 * What calls change, as journal records. A call changes parameters (ps_parameter_update), each of which is
 * cut into block updates (ps_block_source). Those of one call are a sending (ps_sending), which joins them in
 * records (ps_record); the core knows a record as a ps_block_update.
 */

#include "steps/steps.h"
#include "tensors/tensors.h"

struct ps_grouped_gradient;
struct ps_parameter_update;
struct ps_part_slice;
struct ps_run;

/**
 * What a contribution to a fragment says besides its elements; see docs/reference/protocol.md, "contribute". Its records
 * also say which part each is.
 */
struct ps_contribution {
  const char *fragment;
  uint64_t base;
  uint64_t steps;
  uint64_t tokens;
  /** Milliseconds that an inner step takes; below 0: not told. */
  double step_ms;
  pserver_contribution_form form;
  /** Its number, higher than those of all earlier ones of the client. */
  uint64_t id;
};

/** The contents of one block update: elements of one block; or of a clock or a note. */
struct ps_block_source {
  /** What it does to which parameter. */
  const struct ps_parameter_update *update;
  /** Index of the block. */
  uint32_t index;
  unsigned shard;
  /** Its elements: `elements` of them at `values`, or those of the slice. `start`: the block's first in the
   * parameter. */
  const uint8_t *values;
  uint64_t start;
  uint64_t elements;
  const struct ps_part_slice *slice;
  /** Bytes of index and elements in a record of its own. */
  size_t data_bytes;
  /** The version of the block that a gradient was made from; 0: none is known. */
  uint64_t seen;
  /** The trainer's step; 0: none. */
  uint64_t step;

  /** The gradient in int8 or e3m0 that it is a part of, with memory for its encoded elements; NULL for all others. */
  struct ps_grouped_gradient *gradient;
  uint8_t *encoded;
  /** Set by ps_encode_gradients(): whether the elements are encoded, and the sum of the squares of what they decode to. */
  bool is_encoded;
  double squares;

  /** Set by the sender: the run that it is an entry of. */
  struct ps_run *run;
};

/** What a record does. */
enum ps_operation {
  PS_UPDATE_INIT,
  PS_UPDATE_SET,
  PS_UPDATE_MIX,
  PS_UPDATE_GRADIENT,
  PS_UPDATE_CLOCK,
  PS_UPDATE_NOTE,
};

/** Whether the record concerns no block: a clock or a note. */
static inline bool ps_is_blockless(enum ps_operation operation) {
  return operation == PS_UPDATE_CLOCK || operation == PS_UPDATE_NOTE;
}

/** What a call does to one parameter. A clock and a note have no parameter. */
struct ps_parameter_update {
  enum ps_operation operation;
  struct ps_parameter *parameter;
  /** Whether the call has an earlier update of the same parameter. */
  bool is_repeated;
  /** All elements of the tensor, or of the part; any alignment. */
  const uint8_t *data;
  pserver_encoding encoding;
  /** L2 norm of all elements that the call sends for the parameter, as encoded, if hosts need it. */
  bool has_norm;
  double norm;
  double alpha;
  double beta;
  bool has_rate;
  double rate;
  /** The checked entries of a note. */
  const pserver_note_entry *note;
  size_t note_count;
  /** Versions of the blocks when they were last read, 0: never; NULL unless it is a gradient. */
  const uint64_t *seen;
};

/** A gradient of one parameter in int8 or e3m0: it is encoded once, because what rounding leaves out is kept. */
struct ps_grouped_gradient {
  /** Its norm, if it has one, is set once all sources are encoded. */
  struct ps_parameter_update *update;
  struct ps_block_source *sources;
  size_t count;
  /** Whether what rounding leaves out is added to the next gradient. */
  bool feeds_back;
};

/**
 * Gives the sources of a gradient in int8 or e3m0 memory for their encoded elements at `*encoded`, which it moves behind
 * that.
 */
void ps_group_gradient(struct ps_grouped_gradient *gradient, uint8_t **encoded);

/** Makes the sources of all blocks of the update's parameter; `sources` has memory for them. */
void ps_cut_into_blocks(const struct ps_parameter_update *update, struct ps_block_source *sources);

/** Writes elements, at any alignment, in an encoding of the update that has no groups. */
void ps_write_elements(const struct ps_parameter_update *update, const uint8_t *from, uint64_t elements,
                       uint8_t *target);

/** Returns the bytes of a source's elements in the update's encoding. */
size_t ps_source_bytes(const struct ps_block_source *source);

/**
 * Writes the elements of a source in the update's encoding. Those of int8 and e3m0 have their scales at `scales`, and
 * their codes at `target`; all others need no `scales`.
 */
void ps_write_source(const struct ps_block_source *source, uint8_t *scales, uint8_t *target);

/** Copies elements of a source to `target`: `count` of them from `first` on. They are of float32. */
void ps_gather_floats(const struct ps_block_source *source, uint64_t first, size_t count, float *target);

/**
 * What rounding has left out of this client's gradients of a parameter, by element: added to the next gradient of the
 * same elements. Of one epoch.
 */
struct ps_residual {
  struct ps_residual *next;
  uint64_t epoch;
  float *values;
  size_t name_bytes;
  char name[];
};

/** Lists of residuals, by the hash of the parameter's name: a power of two of them. */
#define PS_RESIDUAL_BUCKETS 4096

/** The residuals of a client. Used on the I/O thread only. All zeros: none. */
struct ps_residuals {
  struct ps_residual *buckets[PS_RESIDUAL_BUCKETS];
  size_t count;
};

/** Frees all residuals: rounding errors of gradients that are undone must not be made good. */
void ps_residuals_forget(struct ps_residuals *residuals);

/** The numbers that every record begins with. */
struct ps_record_header {
  uint64_t session;
  uint64_t n;
  uint64_t done;
};

/*
 * A batch is one record with updates of many blocks of a shard, its entries. Those with elements of one type and of
 * one form are a run. The header has a map for each run; the tensor bytes have the columns of each run, with a number
 * for each entry, and behind them the elements of all its entries.
 */

/** What the elements of an entry are: all of the block, some rows, or some elements of some rows. */
enum ps_entry_form { PS_ENTRY_WHOLE, PS_ENTRY_ROWS, PS_ENTRY_ELEMENTS };

/** A run of a batch; in a record that is no batch, its only source. */
struct ps_run {
  pserver_dtype dtype;
  enum ps_entry_form form;
  pserver_encoding encoding;
  /** Its entries, in the order of the call. */
  const struct ps_block_source **sources;
  size_t entries;
  /** Elements of all entries, and how many row numbers and offsets in a row they name. */
  uint64_t elements;
  size_t rows;
  size_t inner;
  /** Whether one of them has a norm, or a version that it was made from. */
  bool has_norms;
  bool has_seen;
  /** The next run of the record; NULL after the last. */
  struct ps_run *next;
};

/**
 * A record of a call: what is needed to write it, each time it is published. Its sources are one block
 * update, a clock or a note; or the entries of a batch.
 */
struct ps_record {
  struct ps_run *runs;
  /** The sources of all runs, one run after the other: `blocks` of them, 1, or more for a batch. */
  const struct ps_block_source **sources;
  size_t blocks;
  /** The contribution that it is a part of, and which; NULL for any other record. */
  const struct ps_contribution *contribution;
  size_t part;
  size_t parts;
  /** The update that was added last. Bytes of the elements and lists of all entries of a batch. */
  const struct ps_block_source *last;
  size_t value_bytes;

  /** Set when it is published. */
  struct ps_block_update *update;
  struct ps_record_header header;
  bool names_versions;
  struct ps_queue_link place;
};

/** Returns the first source of a record. */
static inline const struct ps_block_source *ps_first_source(const struct ps_record *record) {
  return record->sources[0];
}

/** Whether a record has the form of a batch, with columns: one with several blocks, or a part of a contribution. */
static inline bool ps_has_columns(const struct ps_record *record) {
  return record->blocks > 1 || record->contribution != NULL;
}

/** Returns the bytes of a record that count as in flight: about those of its tensor bytes. */
size_t ps_record_data_bytes(const struct ps_record *record);

/** Whether an update of the record has a version that it was made from, to be named in the record. */
bool ps_record_has_versions(const struct ps_record *record);

/**
 * Returns OK if a call that is over has succeeded, otherwise its error, as last error: the first rejection,
 * with the block that it is about; OUTCOME_UNKNOWN, which names the updates that are applied once or not at
 * all; or what ended the call or kept updates from being stored.
 */
pserver_status ps_call_error(const struct ps_update_call *call, const struct ps_record *records,
                             const char *trainer);

/** Limits of batches. */
struct ps_batch_limits {
  /** Whether integers go into batches of their own, because their gradients do not wait for a step. */
  bool separates_integers;
  /** The largest message that the broker accepts. */
  size_t payload_bytes_max;
};

struct ps_sending;

/**
 * Makes the records of a sending: the small updates of a shard go into as few batches as the limits permit; a large
 * update, or a single small one, has a record of its own, unless it is a part of a contribution. Within a shard, small updates of one type and form keep
 * their order, and so do large ones. False if there is no memory; ps_release_records() frees them, also then.
 */
bool ps_make_records(struct ps_sending *sending, const struct ps_batch_limits *limits);
void ps_release_records(struct ps_sending *sending);

/** An update of a part, cut into slices, one for each message. */
struct ps_part_push {
  const struct ps_parameter_update *update;
  struct ps_part_plan plan;
  struct ps_part_slice *slices;
  /** The block of each slice. */
  uint32_t *blocks;
  size_t count;
  size_t capacity;
  /** Memory that the slices point into. */
  uint64_t *row_from;
  uint64_t *inner_from;
  /** All offsets within a row, if rows have to be cut. */
  uint32_t *columns;
  uint64_t *column_from;
};

/** Cuts an update of whole rows of a sparse parameter into one slice for each block. Release it also after
 * an error. */
pserver_status ps_prepare_row_push(const struct ps_parameter_update *update, const uint64_t *rows,
                                   size_t count, struct ps_part_push *push);

/**
 * Cuts an update of the elements in `push->plan`. A block gets several slices only if its index and
 * elements are more than `bytes_max` bytes. Release it also after an error.
 */
pserver_status ps_prepare_part_push(const struct ps_parameter_update *update, size_t bytes_max,
                                    struct ps_part_push *push);

/** Makes the sources of the block updates; `sources` has memory for `push->count` of them. */
void ps_cut_part_push(const struct ps_part_push *push, struct ps_block_source *sources);

void ps_part_push_release(struct ps_part_push *push);

/**
 * Encodes the gradients of a record that have memory for it and are not encoded yet, with what rounding has left out
 * of gradients before, and keeps what it leaves out of these. So repeats of the record have the same bytes. Computes
 * the norms that hosts need. INTERNAL if there is no memory.
 */
pserver_status ps_encode_gradients(struct ps_residuals *residuals, const struct ps_record *record);

/** Memory for one record, which grows as needed. All zeros: empty. The owner frees `bytes`. */
struct ps_record_buffer {
  uint8_t *bytes;
  size_t used;
  size_t capacity;
};

/** Writes the subject that a record is published to. */
void ps_record_subject(const struct ps_identity *identity, const struct ps_record *record,
                       char subject[PS_SUBJECT_SIZE]);

/** Returns the word that a note holds for a number that is not finite; NULL for the others. */
const char *ps_number_word(double number);

/** Writes the message of a record to the buffer; copies the elements once. INTERNAL. */
pserver_status ps_write_record(const struct ps_identity *identity, const struct ps_record *record,
                               struct ps_record_buffer *buffer);

/** Dependencies of ps_update_sender, which they must outlive. */
struct ps_sender_deps {
  const struct ps_identity *identity;
  struct ps_connection *connection;
  struct ps_positions *positions;
  size_t in_flight_bytes_max;
  void *owner;
  /** Tells that a host says that the session is over: SUPERSEDED or REJOIN. */
  void (*session_over)(void *owner, struct ps_failure *failure);
};

/**
 * Carries out the commands of the outbox that need a connection, a clock or memory for messages, on the I/O
 * thread. A record is written when nothing else is due, and written again, with the same bytes, for each
 * repeat.
 */
struct ps_update_sender {
  struct ps_sender_deps deps;
  struct ps_outbox *outbox;
  struct ps_outbox_commands commands;
  struct ps_outbox_listener listener;
  struct ps_batch_limits limits;
  /** Memory for the record that is being published. */
  struct ps_record_buffer buffer;
  /** What rounding has left out of gradients. */
  struct ps_residuals residuals;
  /** Records that wait to be published, one at a time, so that answers and requests do not wait for all. */
  struct ps_queue queue;
  struct ps_timer tick;
  /** Whether a record is being written from the buffer; which one, NULL if it was released meanwhile. */
  bool is_writing;
  struct ps_record *written;
  struct ps_publication publication;
  char subject[PS_SUBJECT_SIZE];
  char reply[PS_REPLY_SIZE];
  /** Whether a PING waits until all records up to this number are handed over; the number of the question then. */
  bool is_ping_due;
  uint64_t ping_number;
  uint64_t question;
  /** The sendings under way. Whether the broker has stored a record since their progress was last noted. */
  struct ps_queue sendings;
  bool has_stored;
  /** Records that were sent, and how often one was sent again. */
  uint64_t records;
  uint64_t resent;
};

/** The sending of one call's block updates. The caller owns it, and keeps it until `over`. */
struct ps_sending {
  struct ps_block_source *sources;
  size_t count;
  struct ps_call_mode mode;
  /** Whether each has a record of its own, whatever its size, so that each can be rejected by itself. */
  bool goes_alone;
  /** The contribution that its gradients are, all of one shard: they go together whatever their sizes. NULL: none. */
  const struct ps_contribution *contribution;
  /** Called once no update is pending, with OK or the last error. May free the sending. */
  void (*over)(struct ps_sending *sending, pserver_status status);
  void *context;
  /** The call that waits for it, which is told of progress. */
  struct ps_call *waiting;

  /** Set by the sender: number of blocks whose gradients came after their step had closed, if that is not an
   * error. */
  size_t late;
  /** Set by the sender: number of blocks that are applied, or may be. */
  size_t taken;
  /** Set by the sender: the highest version in an outcome; that of a contribution is its round. */
  uint64_t version;
  struct ps_update_sender *sender;
  struct ps_update_call *call;
  /** One for each update of the call, and memory that they point into. */
  struct ps_record *records;
  size_t record_count;
  struct ps_run *runs;
  const struct ps_block_source **ordered;
  /** Blocks without a fate when progress was last noted. */
  size_t pending;
  struct ps_queue_link place;
};

/** Initializes a sender that waits for the first session. INTERNAL. */
pserver_status ps_sender_init(struct ps_update_sender *sender, const struct ps_sender_deps *deps);
/** Sends in this session from now on; numbers start again at 1. The flag applies to calls that begin later. */
void ps_sender_start(struct ps_update_sender *sender, uint64_t session, bool separates_integers,
                     int64_t now_ms);
/** Frees what the sender holds; no call may be under way. */
void ps_sender_free(struct ps_update_sender *sender);

/**
 * Sends block updates, small ones of a shard together, until all are applied, or stored if that is enough.
 * The sources and what they refer to must not change until it is over. Fails with the first rejection; with
 * OUTCOME_UNKNOWN, which names the updates, if it ends before their outcomes are known; with what ended it,
 * or kept updates from being stored, if none can be applied. On the I/O thread, as the functions below.
 */
void ps_sending_begin(struct ps_update_sender *sender, struct ps_sending *sending);

/** Ends a sending that is under way with the last error. */
void ps_sending_end(struct ps_sending *sending);

/** Publishes the record that has waited longest; false if none is waiting, or another is being written. */
bool ps_sender_publish_next(struct ps_update_sender *sender);

/** Takes the broker's answer to the PINGs up to this number: see ps_link_ask(). */
void ps_sender_confirmed(struct ps_update_sender *sender, uint64_t number);

/** Notes that bytes have left or come on the connection, which is progress for what is not stored yet. */
void ps_sender_moved(struct ps_update_sender *sender);

/** Writes a request for the outcomes of numbers of a session, to be answered once this position is folded. */
pserver_status ps_write_outcome_request(struct ps_draft *draft, uint64_t session, const uint64_t *numbers,
                                        size_t count, struct ps_position at);

/** Takes the broker's denial to publish to a subject. */
void ps_sender_denied(struct ps_update_sender *sender, const char *subject);

/** Takes the PubAck of the record with this serial in a slot. */
void ps_on_ack(struct ps_update_sender *sender, uint64_t slot, uint64_t serial, natsMsg *message);

/** Takes outcomes that an owner has sent by itself. */
void ps_on_answers(struct ps_update_sender *sender, natsMsg *message);

/** Takes the reply to a request for outcomes. */
void ps_on_outcome_reply(struct ps_update_sender *sender, unsigned shard, natsMsg *message);

/** Dependencies of ps_steps. */
struct ps_steps_deps {
  struct ps_session *session;
  struct ps_positions *positions;
  struct ps_update_sender *sender;
};

/** Carries out the commands of the step machine. Used on the I/O thread. */
struct ps_steps {
  struct ps_steps_deps deps;
  struct ps_steps_core core;
  struct ps_steps_commands commands;
  /** How often the trainer has asked to exit. */
  uint64_t exits;
  /** The call that is being ended; NULL as soon as it is over. */
  const struct ps_step_task *ending;
};

/** Initializes the steps of a client that has not joined. */
void ps_steps_init(struct ps_steps *steps, const struct ps_steps_deps *deps);

/**
 * Sends gradients in the open step, ends the step if `ends_step`, and waits. After an error the step is still
 * open. A trainer that has lost its place in the steps enters again, once in a call. Errors as of
 * ps_sending_begin(); TIMEOUT, which names the members waited for; NOT_MEMBER or LATE if the step had taken a part
 * of the gradients when it closed without the trainer.
 */
pserver_status ps_send_in_step(struct ps_call *call, struct ps_steps *steps, struct ps_sending *gradients,
                               bool ends_step);

/** Ends the open step, or the trainer's membership, and waits. */
pserver_status ps_run_step_call(struct ps_call *call, struct ps_steps *steps, enum ps_step_call_kind kind);

#endif
