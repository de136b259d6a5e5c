#ifndef CORE_UPDATES_H
#define CORE_UPDATES_H

#include <pserver_errors.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A position in a shard's journal; `generation` 0: none. */
struct ps_position {
  uint64_t generation;
  uint64_t seq;
};

/** Whether `a` is later than `b` in the same shard. */
static inline bool ps_is_later(struct ps_position a, struct ps_position b) {
  return a.generation != b.generation ? a.generation > b.generation : a.seq > b.seq;
}

/**
 * An error in the core, which decides by the code and the numbers below and passes the texts on unread.
 * Several updates and calls can fail for one reason, so a failure counts its references. Functions borrow
 * the failures that they are given, and take a reference to those that they keep.
 */
struct ps_failure {
  pserver_status code;
  /** The position that the error says was expected; 0 where it says none. */
  struct ps_position expected;
  /** The session that the error says is over; 0 if it says none. */
  uint64_t received;
  const char *text;
  /** A JSON object; "" for an empty one. */
  const char *details;
  /** 0 for a failure that is never freed. */
  unsigned references;
};

/** Makes a failure with one reference and copies of the texts; NULL if there is no memory. */
struct ps_failure *ps_failure_new(pserver_status code, const char *text, const char *details);

/** Adds a reference; returns the failure. NULL is ignored. */
struct ps_failure *ps_failure_keep(struct ps_failure *failure);

/** Drops a reference; the failure is freed with its last one. NULL is ignored. */
void ps_failure_drop(struct ps_failure *failure);

/** Stores a reference to a failure, or NULL, and drops the reference stored there before. */
void ps_failure_set(struct ps_failure **place, struct ps_failure *failure);

/** Stores a reference to a failure unless one is stored there already. */
void ps_failure_set_first(struct ps_failure **place, struct ps_failure *failure);

/** A member of what can be queued. All zeros: in no queue. */
struct ps_queue_link {
  /** What it is a member of, while that is queued. */
  void *item;
  struct ps_queue_link *next;
};

/** A queue whose links are in its items: it allocates no memory. All zeros: empty. */
struct ps_queue {
  struct ps_queue_link *first;
  struct ps_queue_link *last;
  size_t count;
};

/** Whether the item that the link is in is queued. */
bool ps_is_queued(const struct ps_queue_link *link);

/** Appends the item that the link is in; false if it was queued already. */
bool ps_queue_append(struct ps_queue *queue, struct ps_queue_link *link, void *item);

/** Removes an item of this queue; false if it was not queued. Takes constant time for the first one. */
bool ps_queue_remove(struct ps_queue *queue, struct ps_queue_link *link);

/** Removes the first item and returns it; NULL if there is none. */
void *ps_queue_take(struct ps_queue *queue);

/** Returns the first item; NULL if there is none. */
void *ps_queue_first(const struct ps_queue *queue);

/** A time that never comes. */
#define PS_NEVER_MS INT64_MAX

/** A time before all others; its distance to any of them does not overflow. */
#define PS_LONG_AGO_MS (INT64_MIN / 2)

/** What became of a block update; pending until that is settled. */
enum ps_fate {
  PS_FATE_PENDING,
  PS_FATE_APPLIED,
  PS_FATE_LATE,
  PS_FATE_REJECTED,
  PS_FATE_UNKNOWN,
  PS_FATE_UNSENT,
};

/** How a call's updates count. */
struct ps_call_mode {
  /** Whether a PubAck is enough: the call does not wait for outcomes. */
  bool is_done_when_stored;
  /** Whether a gradient that came too late for its step is counted as late instead of failing the call. */
  bool counts_late;
  /** Whether a block that is initialized already counts as applied. */
  bool counts_present;
};

/** What the outbox has to know of a record before it is sent. */
struct ps_update_size {
  /** Less than PS_SHARDS_MAX. */
  unsigned shard;
  /** Blocks that its record updates: 1, or more for a batch. Its outcome counts for each of them. */
  size_t blocks;
  /** Bytes of its elements, which count as in flight. */
  size_t data_bytes;
  /** Whether its message names the version of the block that a gradient was made from. */
  bool names_version;
};

/**
 * One record that a call sends: an update of one block, a batch for several blocks of a shard, a clock, or
 * a note. Invariant: it is in at most one ps_update_list: the updates of its shard that wait, the records
 * in flight, or the records stored in its shard.
 */
struct ps_block_update {
  struct ps_update_call *call;
  /** Its index in the call's `updates`. */
  size_t index;
  unsigned shard;
  size_t blocks;
  size_t data_bytes;
  /** Whether its next message names the version of the block that a gradient was made from. */
  bool names_version;
  enum ps_fate fate;

  /** Its number in the session and shard; 0 until it is sent. */
  uint64_t n;
  /** Whether its number is open: sent, and neither settled nor given up. */
  bool is_open;
  /** Whether a host did not apply it because its session had ended. */
  bool is_rejoined;
  /** Whether the outbox holds a reference to the call for it: while it is open or in flight. */
  bool is_held;

  /** Its slot among the records in flight; -1 if it is not in flight. */
  int32_t slot;
  /** Distinguishes it from every other record that has been in the slot. */
  uint64_t serial;
  /** Whether the shell holds its message, so that it can be repeated. */
  bool has_message;
  /** How often it was published, and how often the broker refused to store it. */
  unsigned sends;
  unsigned refusals;
  /** Number of its last publication among all publications of the outbox. */
  uint64_t send_number;
  int64_t sent_at_ms;
  /** When to publish it again after a refusal; PS_NEVER_MS if the broker has not refused it. */
  int64_t retry_at_ms;
  int64_t retry_delay_ms;
  /** Why the broker refused it the last time; NULL if it has not. */
  struct ps_failure *obstacle;

  /** Where it is stored; generation 0 if it is not known to be stored. */
  struct ps_position stored;
  /** When to ask for its outcome. */
  int64_t ask_at_ms;

  /** Its neighbours in its list; only that list changes them. */
  struct ps_block_update *previous;
  struct ps_block_update *next;
};

/**
 * The updates of one call, which succeeds or fails as a whole. Invariant: `pending + applied + late +
 * rejected + unknown + unsent` is the number of blocks of all its updates.
 *
 * The shell holds a reference to it, at least until `call_over`. The outbox holds one for each update that
 * is open or in flight, possibly longer.
 */
struct ps_update_call {
  /** Chosen by the shell. */
  uint64_t id;
  /** The shell's own; the core does not use it. */
  void *context;
  struct ps_call_mode mode;
  size_t pending;
  size_t applied;
  size_t late;
  size_t unknown;
  size_t unsent;
  /** The first update that was rejected, and why. Updates that were not sent before stay unsent. */
  struct ps_block_update *rejected;
  struct ps_failure *rejection;
  /** The first error that kept an update from being stored. */
  struct ps_failure *obstacle;
  /** What ended the call or the session while updates were pending. */
  struct ps_failure *end;

  size_t references;
  /** References that the outbox drops at the end of the event. */
  size_t releases;
  struct ps_update_call *next_released;
  /** Its place among the calls whose `call_over` is due. */
  struct ps_queue_link over;

  size_t update_count;
  struct ps_block_update updates[];
};

/** Makes a call with one reference, none of whose updates is sent; NULL if there is no memory. */
struct ps_update_call *ps_update_call_new(uint64_t id, struct ps_call_mode mode,
                                          const struct ps_update_size *sizes, size_t count);

/** Drops so many references; the call is freed with its last one. */
void ps_update_call_drop(struct ps_update_call *call, size_t references);

/** Resets an update to the state before it was sent. It must be in no list, not open and not in flight. */
void ps_block_update_reset(struct ps_block_update *update);

/** Whether the broker refused every publication, so that the update is not stored. */
bool ps_block_update_is_stored_nowhere(const struct ps_block_update *update);

/**
 * The outbox's references to calls: one for each update that is open or in flight. References that are no
 * longer needed are dropped at the end of the event, because the rest of the event may still use the
 * update.
 */
struct ps_call_references {
  /** Calls with references to be dropped. */
  struct ps_update_call *released;
};

/** Takes a reference for an update that is now open or in flight. */
void ps_call_references_take(struct ps_block_update *update);

/** Marks the reference for an update to be dropped, unless it is still open or in flight. */
void ps_call_references_note_unneeded(struct ps_call_references *references,
                                      struct ps_block_update *update);

/** Drops the marked references at the end of an event, which frees calls without other references. */
void ps_call_references_release(struct ps_call_references *references);

/** The outcome of one record, as an owner reports it. */
struct ps_outcome {
  uint64_t n;
  /** Sequence number in the journal of the copy of the record that settled it. */
  uint64_t seq;
  /** Version of the block, if the record was applied. */
  uint64_t version;
  /** The rejection; NULL if the record was applied. */
  struct ps_failure *failure;
};

/** Whether no update of the call is pending. */
bool ps_update_call_is_over(const struct ps_update_call *call);

/** Whether the call has failed: an update was rejected, is unknown or unsent. */
bool ps_update_call_has_failed(const struct ps_update_call *call);

/** Notes that the update is applied, or stored if that is enough. */
void ps_update_applied(struct ps_block_update *update);

/** Notes the outcome of the update; the first rejection becomes the error of the call. */
void ps_update_settled(struct ps_block_update *update, const struct ps_outcome *outcome);

/** Notes that the update will never be applied. */
void ps_update_rejected(struct ps_block_update *update, struct ps_failure *failure);

/** Notes that the update was given up although it may be stored. */
void ps_update_unknown(struct ps_block_update *update);

/** Notes that the update was given up and is not stored; the obstacle may be NULL. */
void ps_update_unsent(struct ps_block_update *update, struct ps_failure *obstacle);

/** Notes what ended the call or the session while updates were pending; only the first is kept. */
void ps_update_call_ended(struct ps_update_call *call, struct ps_failure *end);

struct ps_block_update;

/** A doubly linked list whose links are in the updates: all operations take constant time and no memory. */
struct ps_update_list {
  struct ps_block_update *first;
  struct ps_block_update *last;
};

/** Adds an update that is in no list at the end. */
void ps_update_list_append(struct ps_update_list *list, struct ps_block_update *update);

/** Adds an update that is in no list at the front. */
void ps_update_list_prepend(struct ps_update_list *list, struct ps_block_update *update);

/** Removes an update that is in this list. */
void ps_update_list_remove(struct ps_update_list *list, struct ps_block_update *update);

/**
 * A session's records in one shard: the updates that wait, the numbers that are open, and `done`, the
 * number up to which all records are settled or given up. Invariant: open numbers are in `done + 1 … last`,
 * and `last - done` is at most `records`.
 */
struct ps_shard_window {
  unsigned shard;
  /** Updates that wait to be sent, in order. */
  struct ps_update_list waiting;
  /** Open records that are stored, in the order in which their outcomes become due. */
  struct ps_update_list stored;
  /** The latest publication that has a PubAck; earlier ones of the shard without one are lost. */
  uint64_t acked_send_number;
  /** When outcomes were last asked for. */
  int64_t asked_at_ms;
  size_t records;
  /** The number that was opened last. */
  uint64_t last;
  uint64_t done;
  /** The open records, each at its number modulo `records`. */
  struct ps_block_update *open[];
};

/** Makes a window without open numbers, to be freed with free(); NULL if there is no memory. */
struct ps_shard_window *ps_shard_window_new(unsigned shard, size_t records);

/** Whether one more number may be opened. */
bool ps_shard_window_has_room(const struct ps_shard_window *window);

/** Returns the record with a number; NULL if the number is not open. */
struct ps_block_update *ps_shard_window_get(const struct ps_shard_window *window, uint64_t n);

/** Opens the next number for an update. */
void ps_shard_window_open(struct ps_shard_window *window, struct ps_block_update *update);

/** Takes back the number that was opened last, whose record was never published. */
void ps_shard_window_take_back(struct ps_shard_window *window, struct ps_block_update *update);

/** Closes the number of an open record, which is settled or given up. */
void ps_shard_window_close(struct ps_shard_window *window, struct ps_block_update *update);

/** Starts numbers again at 1 in a new session; no number may be open. */
void ps_shard_window_restart(struct ps_shard_window *window);

/**
 * The records without a PubAck, in the order of their last publication, and the bytes of their elements,
 * which are bounded. A record that was given up stays in flight until its PubAck cannot come any more,
 * because its bytes may still be in the connection's buffers.
 */
struct ps_in_flight {
  size_t bytes_max;
  /** Ordered by last publication, the oldest first. */
  struct ps_update_list list;
  struct ps_block_update **slots;
  /** Slots below `slot_count` that are free, and their number. */
  int32_t *free;
  size_t free_count;
  /** Slots that have ever been used, and slots that memory is allocated for. */
  size_t slot_count;
  size_t capacity;
  uint64_t serials;
  /** Bytes of elements in flight. */
  size_t bytes;
  size_t count;
};

/** Allocates memory for so many records at one time; false, and nothing changed, if there is none. */
bool ps_in_flight_reserve(struct ps_in_flight *in_flight, size_t records);

/** Returns the record that a PubAck names; NULL if it is not in flight. */
struct ps_block_update *ps_in_flight_get(const struct ps_in_flight *in_flight, uint64_t slot,
                                         uint64_t serial);

/** Whether so many more bytes are within the bound, or nothing is in flight: a larger record goes alone. */
bool ps_in_flight_fits(const struct ps_in_flight *in_flight, size_t bytes);

/** Adds a record, for which memory is reserved, and assigns its slot and serial. */
void ps_in_flight_add(struct ps_in_flight *in_flight, struct ps_block_update *update);

/** Moves a record to the end, because it is published again. */
void ps_in_flight_move_to_end(struct ps_in_flight *in_flight, struct ps_block_update *update);

/** Removes a record that is in flight. */
void ps_in_flight_remove(struct ps_in_flight *in_flight, struct ps_block_update *update);

/** Frees the memory of slots, not the records. */
void ps_in_flight_release(struct ps_in_flight *in_flight);

#endif
