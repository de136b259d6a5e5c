#ifndef CORE_BLOCK_UPDATE_H
#define CORE_BLOCK_UPDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/failure.h"
#include "core/queue.h"
#include "core/times.h"

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

#endif
