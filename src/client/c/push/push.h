#ifndef PUSH_PUSH_H
#define PUSH_PUSH_H

#include <nats/nats.h>
#include <pserver.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/calls.h"
#include "core/core.h"
#include "core/updates.h"
#include "parts/parts.h"
#include "wire/wire.h"

struct ps_parameter_update;
struct ps_part_slice;

/** The contents of one block update: elements of one block; or of a clock or a note. */
struct ps_update_source {
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
  /** The same in an entry of a batch, where the index is packed; without padding. */
  size_t entry_bytes;
  /** The trainer's step; 0: none. */
  uint64_t step;

  /** Set by the sender: the version of the block that the record names; 0: none. */
  uint64_t seen;
  /** Set by the sender: the next entry of the same batch; NULL after the last. */
  struct ps_update_source *next;
};

/** The block updates of one call, which succeeds or fails as a whole. */
struct ps_call_updates {
  struct ps_update_source *sources;
  size_t count;
  struct ps_call_mode mode;
  /** Whether each has a record of its own, whatever its size, so that each can be rejected by itself. */
  bool goes_alone;
  /** Set by the call: number of blocks whose gradients came after their step had closed, if that is not an
   * error. */
  size_t late;
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

/** Checks a tensor that a caller gave for a name. BAD_NAME, BAD_VALUE, BAD_DTYPE, BAD_SHAPE. */
pserver_status ps_check_tensor(const char *name, const pserver_tensor *tensor);
/** Checks that a tensor has the parameter's type, this shape, and so many elements; also BAD_LENGTH. */
pserver_status ps_fit_tensor(const struct ps_parameter *parameter, const pserver_tensor *tensor,
                             const uint64_t *shape, int32_t rank, uint64_t elements);

/** BAD_LENGTH for a tensor with a wrong number of bytes. */
pserver_status ps_fail_length(const char *name, uint64_t expected, uint64_t received);

/** BAD_SHAPE for a shape that no parameter can have; `expected` describes a valid one. */
pserver_status ps_fail_shape(const char *name, const char *expected, const pserver_tensor *received);

/** NON_FINITE if an element is not finite, possibly only as encoded, and the parameter does not allow it. */
pserver_status ps_check_finite(const struct ps_parameter *parameter, pserver_encoding encoding,
                               const void *data, uint64_t elements);

/** Makes the sources of all blocks of the update's parameter; `sources` has memory for them. */
void ps_cut_into_blocks(const struct ps_parameter_update *update, struct ps_update_source *sources);

/** Writes elements, at any alignment, in the update's encoding. */
void ps_write_elements(const struct ps_parameter_update *update, const uint8_t *from, uint64_t elements,
                       uint8_t *target);

/**
 * The sources of one record: a block update, a clock or a note; or a batch, whose entries follow `first` by
 * `next`.
 */
struct ps_update_record {
  struct ps_update_source *first;
  struct ps_update_source *last;
  /** 1, or more for a batch. */
  size_t blocks;
  /** Bytes of all entries as a batch, and the maximum bytes of its header. */
  size_t batch_bytes;
  size_t head_bytes;
};

/** Returns the bytes of all indexes and elements. */
static inline size_t ps_record_data_bytes(const struct ps_update_record *record) {
  return record->blocks > 1 ? record->batch_bytes : record->first->data_bytes;
}

/*
 * A batch is one record with updates of many blocks of a shard. Its header consists of groups, each for one
 * parameter: what its entries have in common, and a row for each entry. The tensor bytes are those of the
 * entries in order, each padded with zeros to a multiple of 8.
 */

/** Returns the maximum bytes of a group of this update in the header, without its rows. */
size_t ps_group_bytes_max(const struct ps_parameter_update *update);

/** Writes the entries of a batch's header that follow those of every record. */
void ps_write_batch_entries(struct ps_draft *draft, const struct ps_update_record *record);

/** Writes the tensor bytes; returns `crc`, the checksum of the bytes before them, updated with them. */
uint32_t ps_write_batch_data(const struct ps_update_record *record, uint8_t *target, uint32_t crc);

/**
 * Returns OK if a call that is over has succeeded, otherwise its error, as last error: the first rejection,
 * with the block that it is about; OUTCOME_UNKNOWN, which names the updates that are applied once or not at
 * all; or what ended the call or kept updates from being stored.
 */
pserver_status ps_call_error(const struct ps_update_call *call, const struct ps_update_record *records,
                             const char *trainer);

/** Limits of batches. */
struct ps_batch_limits {
  /** Whether integers go into batches of their own, because their gradients do not wait for a step. */
  bool separates_integers;
  /** The largest message that the broker accepts. */
  size_t payload_bytes_max;
};

/** Whether elements, at any alignment, are finite, also in this encoding. Integers are. */
bool ps_stays_finite(pserver_dtype dtype, pserver_encoding encoding, const void *data,
                     uint64_t elements);

/** Returns the first element that is not finite, and its index; there must be one. */
double ps_first_non_finite(pserver_dtype dtype, pserver_encoding encoding, const void *data,
                           uint64_t *index);

/** UNSUPPORTED if the parameter's type cannot have the encoding; BAD_VALUE for an unknown one. */
pserver_status ps_check_encoding(const struct ps_parameter *parameter, pserver_encoding encoding);

/** BAD_VALUE about an unknown encoding that was given for `what`. */
pserver_status ps_bad_encoding(const char *what, pserver_encoding encoding);

/** BAD_VALUE for invalid options, which may be NULL. */
pserver_status ps_check_update_options(const struct ps_call *call, const pserver_update_options *options);

/** STATIC if the parameter cannot be updated. */
pserver_status ps_check_changeable(const struct ps_parameter *parameter);

/** BAD_VALUE unless both factors are finite. */
pserver_status ps_check_factors(double alpha, double beta);

/** Checks the elements of an update, and computes their norm if the parameter clips by it. NON_FINITE. */
pserver_status ps_finish_update(struct ps_parameter_update *update, uint64_t elements);

/**
 * Returns the L2 norm of elements, at any alignment, as encoded; 0 for integers. It is NaN or infinite
 * exactly if an encoded element is.
 */
double ps_l2_norm(pserver_dtype dtype, pserver_encoding encoding, const void *data, uint64_t elements);

/** Limits of a note, as in src/protocol/messages/records.ts. */
#define PS_NOTE_BYTES_MAX 4096
#define PS_NOTE_ENTRIES_MAX 64
#define PS_NOTE_NAME_BYTES_MAX 128

/** Packs checked entries as a map. */
void ps_pack_note(struct ps_draft *draft, const pserver_note_entry *entries, size_t count);

/** A set of parameters, compared by name. All zeros: without memory. */
struct ps_parameter_set {
  const struct ps_parameter **slots;
  size_t slot_count;
};

/** Makes an empty set for so many parameters; false if there is no memory. Release it also then. */
bool ps_parameter_set_init(struct ps_parameter_set *set, size_t count);

/** Adds a parameter, which must outlive the set; false if the set has one of its name already. */
bool ps_parameter_set_add(struct ps_parameter_set *set, const struct ps_parameter *parameter);

void ps_parameter_set_release(struct ps_parameter_set *set);

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
void ps_cut_part_push(const struct ps_part_push *push, struct ps_update_source *sources);

/**
 * Writes the tensor bytes of a slice: its index, in numbers of so many bytes, unless it is a whole block,
 * and its elements in the update's encoding.
 */
void ps_write_part(const struct ps_part_slice *slice, const struct ps_parameter_update *update,
                   size_t number_bytes, uint8_t *target);

void ps_part_push_release(struct ps_part_push *push);

/** The numbers that every record begins with. */
struct ps_record_head {
  uint64_t session;
  uint64_t n;
  uint64_t done;
};

/** Memory for one record, which grows as needed. All zeros: empty. The owner frees `bytes`. */
struct ps_record_buffer {
  uint8_t *bytes;
  size_t used;
  size_t capacity;
};

/** Writes the subject that a record is published to. */
void ps_record_subject(const struct ps_identity *identity, const struct ps_update_record *record,
                       char subject[PS_SUBJECT_SIZE]);

/** Returns the version of its block that a gradient was made from, as last read; 0: none. */
uint64_t ps_seen_version(const struct ps_update_source *source);

/** Writes the message of a record to the buffer; copies the elements once. INTERNAL. */
pserver_status ps_write_record(const struct ps_identity *identity, const struct ps_update_record *record,
                               const struct ps_record_head *head, struct ps_record_buffer *buffer);

/** The rows of a gradient, each once, ascending. */
struct ps_row_sums {
  uint64_t *rows;
  size_t count;
  /** The elements of the rows: the caller's own, or `sums`. */
  const uint8_t *values;
  uint8_t *sums;
};

void ps_row_sums_release(struct ps_row_sums *sums);

/**
 * Sends all blocks of updates and waits; `goes_alone`: each in a record of its own, see ps_call_updates.
 * Errors as of ps_sending_begin(). After STALE_EPOCH the updates' parameters are forgotten.
 */
pserver_status ps_send_updates(struct ps_call *call, struct ps_parameter_update *updates, size_t count,
                               struct ps_call_mode mode, bool goes_alone);

/** The same for block updates that are cut already. */
pserver_status ps_send_call(struct ps_call *call, struct ps_call_updates *updates);

/** Forgets the parameters of updates if their error says that they are stale; keeps the last error. */
pserver_status ps_forget_if_stale(struct ps_call *call, const struct ps_call_updates *updates,
                                  pserver_status status);

/** Dependencies of requests for the last closed step. */
struct ps_step_request_deps {
  const struct ps_identity *identity;
  struct ps_requests *requests;
  struct ps_positions *positions;
  struct ps_steps_core *core;
};

/** A request to one shard, on the I/O thread. */
struct ps_step_request {
  const struct ps_step_request_deps *deps;
  struct ps_step_call *call;
  unsigned shard;
  uint64_t revision;
  /** The answer: the last step that has closed. */
  uint64_t closed;
  struct ps_ask ask;
  struct ps_ask_group group;
};

/** Dependencies of ps_update_sender, which they must outlive. */
struct ps_sender_deps {
  const struct ps_identity *identity;
  struct ps_connection *connection;
  struct ps_positions *positions;
  size_t in_flight_bytes_max;
  void *owner;
  /** A host says that the session is over: SUPERSEDED or REJOIN. */
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
  /** Records that wait to be published, one at a time, so that answers and requests do not wait for all. */
  struct ps_queue queue;
  struct ps_timer tick;
};

/** The message of a record: what is needed to write it, each time it is published. */
struct ps_outgoing {
  struct ps_block_update *update;
  struct ps_record_head head;
  struct ps_queue_link place;
};

/** The sending of one call's block updates. The caller owns it, and keeps it until `over`. */
struct ps_sending {
  struct ps_call_updates *updates;
  /** Called once no update is pending, with OK or the last error. May free the sending. */
  void (*over)(struct ps_sending *sending, pserver_status status);
  void *context;

  /** Set by the sender. */
  struct ps_update_sender *sender;
  struct ps_update_call *call;
  /** One of each for every record. */
  struct ps_update_record *records;
  struct ps_outgoing *outgoing;
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

/** Publishes the record that has waited longest; false if none is waiting. */
bool ps_sender_publish_next(struct ps_update_sender *sender);

/** The broker denied publishing to a subject. */
void ps_sender_denied(struct ps_update_sender *sender, const char *subject);

/** Takes the PubAck of the record with this serial in a slot. */
void ps_on_ack(struct ps_update_sender *sender, uint64_t slot, uint64_t serial, natsMsg *message);

/** Takes outcomes that an owner has sent by itself. */
void ps_on_answers(struct ps_update_sender *sender, natsMsg *message);

/** Takes the reply to a request for outcomes. */
void ps_on_outcome_reply(struct ps_update_sender *sender, unsigned shard, natsMsg *message);

/** Dependencies of ps_steps. */
struct ps_steps_deps {
  const struct ps_lifecycle *lifecycle;
  struct ps_positions *positions;
  struct ps_update_sender *sender;
};

/** Carries out the commands of the step machine. Used on the I/O thread. */
struct ps_steps {
  struct ps_steps_deps deps;
  struct ps_step_request_deps request_deps;
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
 * Sends gradients in the open step, ends the step if `ends_step`, and waits. After an error the step is
 * still open. Errors as of ps_sending_begin(); TIMEOUT, which names the members waited for; NOT_MEMBER if
 * the trainer is no longer a member: the next gradient enters anew.
 */
pserver_status ps_send_in_step(struct ps_call *call, struct ps_steps *steps,
                               struct ps_call_updates *gradients, bool ends_step);

/** Ends the open step, or the trainer's membership, and waits. */
pserver_status ps_run_step_call(struct ps_call *call, struct ps_steps *steps, enum ps_step_call_kind kind);

#endif
