#ifndef CORE_CORE_H
#define CORE_CORE_H

/*
 * The trainer core: its decisions about sending, sessions and steps. It does no I/O and reads no clock; the
 * I/O layer raises events and carries out commands. The core in src/client/core decides the same.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "errors/errors.h"

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

/** Returns the last error as a failure of the core, with one reference; never NULL. */
struct ps_failure *ps_failure_of_last(void);

/** Makes a failure of the core the last error; returns its code. */
pserver_status ps_fail_as_core(const struct ps_failure *failure);

/** A member of what can be queued. All zeros: in no queue. */
struct ps_queue_link {
  /** The item that the link is a member of; set while it is queued. */
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
  /** Whether what came too late for its step or round is counted as late instead of failing the call. */
  bool counts_late;
  /** Whether a block that is initialized already counts as applied. */
  bool counts_present;
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
  /** Less than PS_SHARDS_MAX. */
  unsigned shard;
  /**
   * Number of blocks that its record updates: 1, or more for a batch. Its outcome counts for each of them.
   */
  size_t blocks;
  /** Bytes of its elements, which count as in flight. */
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
  /** Distinguishes the record from every other one that has been in the slot. */
  uint64_t serial;
  /** Whether the I/O layer holds its message, so that it can be repeated. */
  bool has_message;
  /** How often it was published, and how often the broker refused to store it. */
  unsigned sends;
  unsigned refusals;
  /** Number of its last publication among all publications of the outbox. */
  uint64_t send_number;
  int64_t sent_at_ms;
  /** Bytes of all records that were stored before its last publication. */
  uint64_t stored_bytes_before;
  /** When the broker was known to have read its last publication; PS_NEVER_MS while it is not. */
  int64_t read_at_ms;
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
 * The I/O layer holds a reference to it, at least until `call_over`. The outbox holds one for each update that
 * is open or in flight, possibly longer.
 */
struct ps_update_call {
  /** Chosen by the I/O layer. */
  uint64_t id;
  /** Used by the I/O layer; the core does not read it. */
  void *context;
  struct ps_call_mode mode;
  size_t pending;
  size_t applied;
  size_t late;
  /** The highest version in the outcome of one of its updates; 0 before the first. */
  uint64_t version;
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

/** Makes a call with one reference and memory for so many updates; NULL if there is no memory. */
struct ps_update_call *ps_update_call_new(uint64_t id, struct ps_call_mode mode, size_t updates_max);

/** Adds an update that is not sent yet. */
void ps_update_call_add(struct ps_update_call *call, unsigned shard, size_t blocks, size_t data_bytes,
                        bool names_version);

/** Drops so many references; the call is freed with its last one. */
void ps_update_call_drop(struct ps_update_call *call, size_t references);

/** Resets an update to the state before it was sent. It must be in no list, not open and not in flight. */
void ps_block_update_reset(struct ps_block_update *update);

/** Whether the broker refused every publication, so that the update is not stored. */
bool ps_block_update_is_stored_nowhere(const struct ps_block_update *update);

/** The outcome of one record, as an owner reports it. */
struct ps_outcome {
  uint64_t n;
  /** Sequence number in the journal of the copy of the record that settled it. */
  uint64_t seq;
  /** If the record was applied: version of the block, or the round that a contribution counts in; 0: none. */
  uint64_t version;
  /** The rejection; NULL if the record was not rejected. */
  struct ps_failure *failure;
  /** Whether a guard has clipped a gradient or tensor of the record, or has set the record aside. */
  bool is_clipped;
  bool is_set_aside;
};

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
 * and `last - done` is at most `records`. Their records are a bounded amount of work: so no trainer is far ahead of
 * the fold.
 */
struct ps_shard_window {
  unsigned shard;
  /** Updates that wait to be sent, in order. */
  struct ps_update_list waiting;
  /** Open records that are stored, by the time at which their outcomes become due. */
  struct ps_update_list stored;
  /** The latest publication that the journal has answered, and when it has answered last. */
  uint64_t acked_send_number;
  int64_t acked_at_ms;
  /** When outcomes were last asked for. */
  int64_t asked_at_ms;
  size_t records;
  /** Work of the open records: their tensor bytes, and PS_UNSETTLED_BLOCK_BYTES for each of their blocks. */
  size_t unsettled_bytes;
  /** The number that was opened last. */
  uint64_t last;
  uint64_t done;
  /** The open records, each at its number modulo `records`. */
  struct ps_block_update *open[];
};

/** Makes a window without open numbers, to be freed with free(); NULL if there is no memory. */
struct ps_shard_window *ps_shard_window_new(unsigned shard, size_t records);

/** Whether there is room for the first waiting update: a number, and the work that its record is. */
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
 * How many bytes may be under way on a link: what it has lately carried in 1.5 s, within limits. So a slow link is
 * not buried under what it cannot carry soon, and a fast one is filled after its first answers. Initialize it with
 * zeros except `bytes_max`.
 */
struct ps_link_window {
  size_t bytes_max;
  /** The most that was measured in this period, and in the one before. */
  size_t present;
  size_t before;
  int64_t period_at_ms;
};

/** Returns the bytes that may be under way. */
size_t ps_link_window_bytes(const struct ps_link_window *window);

/** Notes that so many bytes have arrived in a time that ends now, in which the link had work. */
void ps_link_window_note(struct ps_link_window *window, uint64_t bytes, int64_t duration_ms,
                         int64_t now_ms);

/** Forgets what was measured: the connection is another one. */
void ps_link_window_reset(struct ps_link_window *window);

/**
 * The records without a PubAck, in the order of their last publication, and the bytes of their elements. A
 * record that was given up stays in flight until its PubAck cannot come any more, because its bytes may still be
 * in the connection's buffers.
 */
struct ps_in_flight {
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

/** Whether so many more bytes are within a bound, or nothing is in flight: a larger record goes alone. */
bool ps_in_flight_fits(const struct ps_in_flight *in_flight, size_t bytes, size_t bytes_max);

/** Adds a record, for which memory is reserved, and assigns its slot and serial. */
void ps_in_flight_add(struct ps_in_flight *in_flight, struct ps_block_update *update);

/** Moves a record to the end, because it is published again. */
void ps_in_flight_move_to_end(struct ps_in_flight *in_flight, struct ps_block_update *update);

/** Removes a record that is in flight. */
void ps_in_flight_remove(struct ps_in_flight *in_flight, struct ps_block_update *update);

/** Frees the memory of slots, not the records. */
void ps_in_flight_release(struct ps_in_flight *in_flight);

/**
 * A lifecycle request of this trainer, sent under the session that is current at the time. The I/O layer owns
 * it, and may free it once it has failed, was answered, or ended.
 */
struct ps_session_request {
  /** Chosen by the I/O layer. */
  uint64_t id;
  /** Used by the I/O layer; the core does not read it. */
  void *context;
  /** How often it has found its session ended. */
  unsigned rejoins;
  /** The SUPERSEDED it was answered with, until it is known whether that is about an earlier session. */
  struct ps_failure *superseded;
  /** Its place among those that wait for a new session. */
  struct ps_queue_link place;
};

/** What a call of the step machine does: sends gradients, ends the step, or leaves the steps. */
enum ps_step_call_kind { PS_STEP_CALL_GRADIENTS, PS_STEP_CALL_END, PS_STEP_CALL_EXIT };

/** The phase of a call. Each except queued, draining and over waits for the I/O layer. */
enum ps_step_phase {
  /** Waits for its turn. */
  PS_STEP_QUEUED,
  /** Asks to become a member. */
  PS_STEP_ENTERING,
  /** As a new member, asks every shard for its last closed step. */
  PS_STEP_ARRIVING,
  /**
   * Tells the shards that the trainer has ended all steps up to the largest that is closed in any of them.
   */
  PS_STEP_CATCHING_UP,
  /** Waits until the step before its own has closed in the shards of its gradients. */
  PS_STEP_OPENING,
  /** Tells the shards that the trainer has ended the steps that closed without it. */
  PS_STEP_SKIPPING,
  /** Sends its gradients. */
  PS_STEP_SENDING,
  /** Waits until other calls have sent their gradients. */
  PS_STEP_DRAINING,
  /** Tells every shard that the trainer has ended its step. */
  PS_STEP_ENDING,
  PS_STEP_EXITING,
  PS_STEP_OVER,
};

/** A call of the step machine. The I/O layer owns it. */
struct ps_step_call {
  /** Chosen by the I/O layer. */
  uint64_t id;
  /** Used by the I/O layer; the core does not read it. */
  void *context;
  enum ps_step_call_kind kind;
  /** Whether it ends the step after its gradients. */
  bool ends_step;
  enum ps_step_phase phase;
  /** Whether it counts in the `sending` of ps_steps_core. */
  bool is_sending;
  /** Whether its gradients have been sent a second time, because a shard found them too early. */
  bool is_resent;
  /** The failure by which it lost its place in the steps, after which it has entered again; or NULL. */
  struct ps_failure *place_lost;
  /** The step in which its gradients were sent last, and whether some were taken, or may have been. */
  uint64_t sent_in;
  bool is_taken;
  /** The step that it was ending when it lost its place; 0 for none. */
  uint64_t ends;
  /** Blocks whose gradients came too late. */
  size_t late;
  /** Revision of the members, and session, in which it has entered. */
  uint64_t revision;
  uint64_t session;
  /** The step that it waits for, or whose clock it sends. */
  uint64_t step;
  /** Number of missing answers, the least and the largest step answered, and the first failure. */
  size_t missing;
  uint64_t least;
  uint64_t most;
  struct ps_failure *failure;
  struct ps_queue_link place;
  /** The shards that its gradients go to, each once. */
  size_t shard_count;
  unsigned shards[];
};

/** Makes a call that has not begun; `shards` may name one repeatedly. NULL if there is no memory. */
struct ps_step_call *ps_step_call_new(uint64_t id, enum ps_step_call_kind kind, const unsigned *shards,
                                      size_t count, bool ends_step);

/** Frees a call that is over, or has not begun. */
void ps_step_call_destroy(struct ps_step_call *call);

/**
 * Commands of the outbox to its I/O layer. Each is called while an event is handled, and returns nothing.
 * Before it returns it may raise one event only: `publish` and `repeat` report failure by
 * ps_outbox_publish_failed(), `ask_outcomes` by ps_outbox_ask_not_published(), and `release` and `repeat`
 * report by ps_outbox_withdrawn() that the last publication was not handed to the connection: for `repeat`,
 * that this one takes its place.
 */
struct ps_outbox_commands {
  void *owner;

  /**
   * Makes the message of an update with its number `update->n` in this session, and publishes it with a reply
   * subject that names `update->slot` and `update->serial`. The message carries `done`: the trainer needs no
   * outcome of records up to that number. The I/O layer keeps the message until `release`.
   */
  void (*publish)(void *owner, struct ps_block_update *update, uint64_t session, uint64_t done);
  /** Publishes the kept message of an update again, unchanged, with the same reply subject. */
  void (*repeat)(void *owner, struct ps_block_update *update);
  /** Releases the kept message; `is_reusable`: its memory may be used again at once. */
  void (*release)(void *owner, struct ps_block_update *update, bool is_reusable);
  /**
   * Asks the owner of a shard for the outcomes of these numbers, to be answered once it has folded this
   * position. The numbers are valid until the command returns.
   */
  void (*ask_outcomes)(void *owner, unsigned shard, uint64_t session, const uint64_t *numbers,
                       size_t count, struct ps_position at);
  /**
   * Sends a PING; raises ps_outbox_read() with this number when it is answered. Called only while no PING is without
   * an answer on the present connection.
   */
  void (*ping)(void *owner, uint64_t send_number);
  /** Raises ps_outbox_tick() at this time. Not called while a tick is set. */
  void (*set_timer)(void *owner, int64_t at_ms);
};

/** Notifications of the outbox to the rest of the core, at the end of an event, when its state is
 * consistent. */
struct ps_outbox_listener {
  void *owner;

  /**
   * Tells that no update of the call is pending. The outbox no longer needs the reference of the I/O layer.
   */
  void (*call_over)(void *owner, struct ps_update_call *call, int64_t now_ms);
  /** Tells that a host says that the session is over: SUPERSEDED or REJOIN. */
  void (*session_over)(void *owner, struct ps_failure *failure, int64_t now_ms);
};

/** Notifications of the positions to the rest of the core. */
struct ps_positions_listener {
  void *owner;

  /** Tells that the journal of a shard has been replaced; `seen` is the last position seen in the old one. */
  void (*journal_replaced)(void *owner, unsigned shard, struct ps_position seen);
};

/** Commands of the session to its I/O layer. All return before their result is known. */
struct ps_session_commands {
  void *owner;

  /** Joins under a new token within this time; raises `joined` or `rejoin_failed`. */
  void (*rejoin)(void *owner, int64_t timeout_ms);
  /** Renews the lease within this time; raises `renewed` or `renew_failed`. */
  void (*renew)(void *owner, int64_t timeout_ms);
  /** Raises `renewal_due` at this time, instead of a time set before; PS_NEVER_MS: never. */
  void (*set_renewal)(void *owner, int64_t at_ms);
  /** Sends a request again under the current session. */
  void (*repeat_request)(void *owner, struct ps_session_request *request);
  /** Tells that a request has failed for good; it may be freed. */
  void (*fail_request)(void *owner, struct ps_session_request *request, struct ps_failure *failure);
  /** Tells that the client can do nothing more: a newer session has joined, or joining is refused. */
  void (*lose_client)(void *owner, struct ps_failure *failure);
};

/** Notifications of the session to the rest of the core. */
struct ps_session_listener {
  void *owner;

  /** Tells that the session has ended: nothing may be published under it. */
  void (*session_ended)(void *owner);
  /** Tells that a session has begun, the first or a later one. */
  void (*session_began)(void *owner, uint64_t session, int64_t now_ms);
};

/** Commands of the step machine to its I/O layer. All return before their result is known. */
struct ps_steps_commands {
  void *owner;

  /** Asks hosts to make the trainer a member; raises `entered` or `failed`. */
  void (*enter)(void *owner, struct ps_step_call *call);
  /** Asks hosts to end the membership; raises `exited` or `failed`. */
  void (*exit_members)(void *owner, struct ps_step_call *call);
  /**
   * Asks a shard for its last closed step, to be answered once it knows this revision of the members and has
   * closed the step that ps_steps_core_wanted_step() returns, which is called again for each repeat. Raises
   * `step_answered` or `ask_failed`.
   */
  void (*ask_step)(void *owner, struct ps_step_call *call, unsigned shard, uint64_t revision);
  /** Sends the gradients of the call, in this step (0: in none); raises `gradients_sent` or `failed`. */
  void (*send_gradients)(void *owner, struct ps_step_call *call, uint64_t step, bool counts_late);
  /** Tells every shard that the trainer has ended this step; raises `clocks_sent` or `failed`. */
  void (*send_clocks)(void *owner, struct ps_step_call *call, uint64_t step);
  /** Tells that the call has succeeded; it may be freed. */
  void (*step_call_done)(void *owner, struct ps_step_call *call);
  /** Tells that the call has failed; it may be freed. */
  void (*step_call_failed)(void *owner, struct ps_step_call *call, struct ps_failure *failure);
};

/**
 * The highest position in each shard, from PubAcks, outcomes, replies to pulls and the job's `at`. Pulls
 * carry it, so that reads see the trainer's own writes and never an older state than before.
 */
struct ps_positions {
  /** By shard: the position that a read must have reached; generation 0: none. */
  struct ps_position awaited[PS_SHARDS_MAX];
  /** By shard: the position of what this trainer itself has written or read. */
  struct ps_position seen[PS_SHARDS_MAX];
  const struct ps_positions_listener *listener;
};

/** Notes a position that was written or read; a lower one than before changes nothing. */
void ps_positions_note(struct ps_positions *positions, unsigned shard, struct ps_position position);

/** Notes a position that reads must have reached, although this trainer has seen no record of it. */
void ps_positions_await(struct ps_positions *positions, unsigned shard, struct ps_position position);

/** Returns the position that a read of a shard must have reached; the beginning if none is known. */
struct ps_position ps_positions_get(const struct ps_positions *positions, unsigned shard);

/**
 * Takes JOURNAL_REPLACED into account: the shard's journal has this generation now, and positions of earlier
 * ones mean nothing. Does nothing for generation 0, of an error that names none.
 */
void ps_positions_note_replaced(struct ps_positions *positions, unsigned shard, uint64_t generation);

/** The outcomes of one trainer's records in one shard. */
struct ps_answers {
  /** Less than PS_SHARDS_MAX. */
  unsigned shard;
  uint64_t generation;
  uint64_t session;
  const struct ps_outcome *outcomes;
  size_t count;
};

/** Calls of the tracker to the outbox about an open record. */
struct ps_record_settler {
  void *owner;

  /** Settles the record: its outcome is known. */
  void (*settle)(void *owner, struct ps_block_update *update, const struct ps_outcome *outcome);
  /** Gives the record up: its outcome will never be known. */
  void (*give_up)(void *owner, struct ps_block_update *update, struct ps_failure *reason);
  /** Ends the session, because a host says that it is over. */
  void (*end_session)(void *owner, struct ps_failure *failure);
};

/**
 * Matches outcomes from shard owners with open records, and asks for outcomes that do not come: an owner
 * that has just taken a shard over applies records without answering, and messages to a disconnected client
 * are lost.
 */
struct ps_outcome_tracker {
  struct ps_positions *positions;
  const struct ps_outbox_commands *commands;
  struct ps_record_settler settler;
  /** Memory for the numbers of one request: as many as a window has. */
  uint64_t *numbers;
};

/**
 * Takes outcomes of this session from the owner of a shard; `is_reply`: in reply to a request. The window
 * is NULL if nothing was sent to the shard.
 */
void ps_outcome_tracker_take(struct ps_outcome_tracker *tracker, struct ps_shard_window *window,
                             const struct ps_answers *answers, bool is_reply);

/** Asks for all outcomes that are due in a shard, in one request. */
void ps_outcome_tracker_ask(struct ps_outcome_tracker *tracker, struct ps_shard_window *window,
                            uint64_t session, int64_t now_ms);

/** Takes an error in answer to a request for outcomes; `retry_after_ms` is the delay that it asks for. */
void ps_outcome_tracker_ask_failed(struct ps_outcome_tracker *tracker, struct ps_shard_window *window,
                                   struct ps_failure *failure, int64_t retry_after_ms);

/** Dependencies of ps_outbox; what they refer to lives as long as the outbox. */
struct ps_outbox_deps {
  const struct ps_outbox_commands *commands;
  const struct ps_outbox_listener *listener;
  struct ps_positions *positions;
  /** Bytes of elements that may be without a PubAck, however fast the link is. */
  size_t in_flight_bytes_max;
  /** Numbers of one shard that may be open. */
  size_t window_records;
};

/**
 * Publishes journal records and learns their outcomes. It reads no clock: events that need the time carry
 * it as `now_ms`, milliseconds of a clock that never goes back.
 *
 * A waiting update is published once both the window of bytes in flight, which follows the speed of the link,
 * and the window of its shard's numbers permit it. Its record is repeated until its PubAck and no longer: after
 * a reconnect, because what is published while disconnected is lost; when the broker has read it and its PubAck
 * has not been sent for 2 s; and, with growing delays, while the journal is full or does not exist yet. Repeats
 * are harmless, because a shard applies each number at most once.
 *
 * The broker handles the messages of a connection in order. So the answer to a PING shows that it has read what
 * was published before, and that all that it had sent by then has come. While a record, or its PubAck, is on a
 * slow link, no time runs.
 *
 * Invariant: an update is waiting, or its number is open, or it has its fate. In flight are the records
 * without a PubAck, including those that were given up, until the broker has answered or cannot receive
 * them any more.
 *
 * Events are handled one at a time: meanwhile only the events that a command allows may be raised,
 * ps_outbox_pause() from `session_over`, and any event from `call_over`. Memory is allocated only by
 * ps_outbox_send(), and by ps_outbox_stored() for an error.
 */
struct ps_outbox {
  struct ps_outbox_deps deps;
  struct ps_shard_window *windows[PS_SHARDS_MAX];
  /** The windows in the order in which they take turns. */
  struct ps_shard_window *turns[PS_SHARDS_MAX];
  size_t turn_count;
  struct ps_in_flight in_flight;
  struct ps_outcome_tracker tracker;
  /** Calls whose `call_over` is due, in order. */
  struct ps_queue over;
  /** Calls whose references are dropped at the end of the event. */
  struct ps_update_call *released;
  struct ps_failure *session_end;
  size_t turn;
  size_t waiting;
  size_t open;
  /** How many records guards have clipped and set aside, and how many they have decided about, rejected ones included. */
  uint64_t clipped;
  uint64_t set_aside;
  uint64_t guarded;
  uint64_t session;
  uint64_t send_number;
  /** Publications before this one are known to have been read by the broker. */
  uint64_t read_send_number;
  /** The last publication before the PING without an answer, and when that was sent; PS_NEVER_MS: there is none. */
  uint64_t ping_send_number;
  int64_t ping_at_ms;
  /** What the broker had sent up to this time has come. */
  int64_t heard_until_ms;
  struct ps_link_window link;
  /** Bytes with a PubAck. */
  uint64_t stored_bytes;
  bool is_paused;
  bool is_connected;
  bool has_timer;
};

/** Makes an outbox that waits for its first session; NULL if there is no memory. */
struct ps_outbox *ps_outbox_new(const struct ps_outbox_deps *deps);

/** Frees an outbox without calling any command; every call that was sent must be over. */
void ps_outbox_destroy(struct ps_outbox *outbox);

/**
 * Sends the updates of a call. `call_over` follows once none is pending: at once for a call without
 * updates, or whose `end` is set. False, and nothing changed, if there is no memory.
 */
bool ps_outbox_send(struct ps_outbox *outbox, struct ps_update_call *call, int64_t now_ms);

/** Ends a call, for instance at its deadline: its pending updates are given up. */
void ps_outbox_end_call(struct ps_outbox *outbox, struct ps_update_call *call, struct ps_failure *reason,
                        int64_t now_ms);

/** Begins a session: numbers start again at 1. */
void ps_outbox_start(struct ps_outbox *outbox, uint64_t session, int64_t now_ms);

/** Ends the session: nothing is published until ps_outbox_start(). */
void ps_outbox_pause(struct ps_outbox *outbox);

/**
 * Takes the PubAck of a record: the broker has stored it. False, and nothing changed, if there is no memory
 * for the error that it is in the journal of another shard.
 */
bool ps_outbox_stored(struct ps_outbox *outbox, uint64_t slot, uint64_t serial, unsigned shard,
                      struct ps_position at, int64_t now_ms);

/** Takes the broker's refusal to store a record; `is_retryable`: it may store the same record later. */
void ps_outbox_refused(struct ps_outbox *outbox, uint64_t slot, uint64_t serial,
                       struct ps_failure *failure, bool is_retryable, int64_t now_ms);

/** Notes that the broker has answered the PING of this number. */
void ps_outbox_read(struct ps_outbox *outbox, uint64_t send_number, int64_t now_ms);

/** Takes the failure of the `publish` or `repeat` of an update; raised before that command returns. */
void ps_outbox_publish_failed(struct ps_outbox *outbox, struct ps_block_update *update,
                              struct ps_failure *failure);

/**
 * The last `publish` or `repeat` of an update was not and will not be handed to the connection, so it does
 * not count as sent. Raised before `release` returns, or before `repeat` does, because that message is handed
 * over in place of the one before; or between events. A record that is still open is repeated like any other
 * without a PubAck.
 */
void ps_outbox_withdrawn(struct ps_block_update *update);

/** Takes outcomes from an owner; `is_reply`: in reply to a request. Those of another session are ignored. */
void ps_outbox_answered(struct ps_outbox *outbox, const struct ps_answers *answers, bool is_reply,
                        int64_t now_ms);

/** Takes an error in answer to a request for outcomes; `retry_after_ms` is the delay that it asks for. */
void ps_outbox_ask_failed(struct ps_outbox *outbox, unsigned shard, struct ps_failure *failure,
                          int64_t retry_after_ms, int64_t now_ms);

/**
 * Takes the broker's denial of the publication of an update; ignored if the update is no longer in flight.
 */
void ps_outbox_denied(struct ps_outbox *outbox, struct ps_block_update *update, struct ps_failure *failure,
                      int64_t now_ms);

/** Notes that the connection is lost; nothing is published until it is back. */
void ps_outbox_disconnected(struct ps_outbox *outbox);

/** Notes that the connection is back. */
void ps_outbox_reconnected(struct ps_outbox *outbox, int64_t now_ms);

/** Handles the time of `set_timer`, which has come. */
void ps_outbox_tick(struct ps_outbox *outbox, int64_t now_ms);

/** Gives up these records, because a request for their outcomes could not be published. */
void ps_outbox_ask_not_published(struct ps_outbox *outbox, unsigned shard, const uint64_t *numbers,
                                 size_t count, struct ps_failure *failure);

/**
 * The sessions of a client: joins, renews the lease every third of its duration, rejoins when a host
 * answers REJOIN, and stops when a newer session of the same trainer has joined.
 *
 * At most one attempt to rejoin is under way. Meanwhile requests that found their session ended wait for
 * its result. A SUPERSEDED is kept until the new session is known, because it counts only if it is about
 * that one.
 *
 * Initialize it with zeros except `commands` and `listener`. It allocates no memory.
 */
struct ps_session_core {
  const struct ps_session_commands *commands;
  const struct ps_session_listener *listener;
  /** Requests that wait for a new session, in order. */
  struct ps_queue waiting;
  /** Number of the current session; 0 before the first. */
  uint64_t session;
  int64_t lease_ms;
  bool is_rejoining;
  /** Whether the client is lost unless the attempt to rejoin succeeds. */
  bool is_rejoin_needed;
  /** A SUPERSEDED received during the attempt to rejoin; NULL if none. */
  struct ps_failure *superseded;
  /** Whether it no longer renews or joins. */
  bool is_stopped;
};

/** Notes that a session has begun, the first or a later one. */
void ps_session_core_joined(struct ps_session_core *core, uint64_t session, int64_t lease_ms,
                            int64_t now_ms);

/** Takes the failure of an attempt to rejoin. The attempt is repeated if the error is retryable. */
void ps_session_core_rejoin_failed(struct ps_session_core *core, struct ps_failure *failure);

/** Handles the time of `set_renewal`, which has come. */
void ps_session_core_renewal_due(struct ps_session_core *core);

/** Notes that the lease has been renewed. */
void ps_session_core_renewed(struct ps_session_core *core, int64_t now_ms);

/** Takes the failure to renew the lease. */
void ps_session_core_renew_failed(struct ps_session_core *core, struct ps_failure *failure,
                                  int64_t now_ms);

/** Takes the word of a host that a session is over: after REJOIN the client rejoins, SUPERSEDED is final. */
void ps_session_core_ended(struct ps_session_core *core, struct ps_failure *failure);

/** Takes an error in answer to a request: the request is repeated in the next session, or fails. */
void ps_session_core_request_failed(struct ps_session_core *core, struct ps_session_request *request,
                                    struct ps_failure *failure);

/** Removes a request whose call has ended. */
void ps_session_core_request_ended(struct ps_session_core *core, struct ps_session_request *request);

/** Stops renewing and joining. */
void ps_session_core_stop(struct ps_session_core *core);

/** Drops failures and waiting requests without calling any command. */
void ps_session_core_release(struct ps_session_core *core);

#endif
