#ifndef CORE_BLOCK_UPDATE_H
#define CORE_BLOCK_UPDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/failure.h"
#include "core/times.h"

/** What became of a block update; pending until its call has been told. */
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
  /** Whether a PubAck is enough: the outcome is not waited for. */
  bool is_done_when_stored;
  /** Whether a gradient that came too late for its step is counted instead of failing the call. */
  bool counts_late;
  /** Whether a block that is initialized already counts as applied. */
  bool counts_present;
};

/** A record of a call as the shell announces it. */
struct ps_update_size {
  /** Less than PS_SHARDS_MAX. */
  unsigned shard;
  /** Blocks that its record updates: 1, more for a batch. What becomes of it counts for each. */
  size_t blocks;
  /** Bytes of its elements, which the window of bytes counts. */
  size_t data_bytes;
  /** Whether its message names the version of the block that a gradient was made from. */
  bool names_version;
};

/**
 * One journal record to be: what a call has for one block or, in a batch, for several of a shard; or a
 * clock. It is in at most one ps_update_list at a time: the waiting ones of its shard, those in flight,
 * those stored in its shard.
 */
struct ps_block_update {
  struct ps_update_call *call;
  /** Its place in the call. */
  size_t index;
  unsigned shard;
  size_t blocks;
  size_t data_bytes;
  /** Whether its next message names the version that a gradient was made from. */
  bool names_version;
  enum ps_fate fate;

  /** Its number in the session and shard; 0 until it is sent. */
  uint64_t n;
  /** Whether its number is open: sent, and neither settled nor given up. */
  bool is_open;
  /** Whether a host refused it because its session had ended: it was never applied. */
  bool is_rejoined;
  /** Whether the outbox has a reference of its call for it, as long as it is open or in flight. */
  bool is_held;

  /** Its place among the records in flight; -1 if it is not in flight. */
  int32_t slot;
  /** Differs from that of every other record which has been in the slot. */
  uint64_t serial;
  /** Whether the shell holds its message, so that it can be repeated. */
  bool has_message;
  /** How often it was published, and how often the broker said that it did not store it. */
  unsigned sends;
  unsigned refusals;
  /** Place of its last publication among all of the trainer. */
  uint64_t send_number;
  int64_t sent_at_ms;
  /** When to publish it again after a refusal; PS_NEVER_MS if the broker has not refused it. */
  int64_t retry_at_ms;
  int64_t retry_delay_ms;
  /** Why the broker did not store it, the last time. */
  struct ps_failure *obstacle;

  /** Where it is stored; generation 0 if it is not known to be. */
  struct ps_position stored;
  /** When to ask for its outcome. */
  int64_t ask_at_ms;

  /** Its neighbours in the list it is in; owned by that list. */
  struct ps_block_update *previous;
  struct ps_block_update *next;
};

/**
 * The updates of one call, which succeeds or fails as one. Its counts always add up:
 * `pending + applied + late + rejected + unknown + unsent` is the number of blocks that its updates are
 * of.
 *
 * The shell has a reference of it, at least until `call_over`; the outbox has one for each update that
 * is open or in flight, which can last longer.
 */
struct ps_update_call {
  /** Chosen by the shell. */
  uint64_t id;
  /** What the shell knows of the call. */
  void *context;
  struct ps_call_mode mode;
  size_t pending;
  size_t applied;
  size_t late;
  size_t unknown;
  size_t unsent;
  /** The first update that was rejected, and why. What is not sent yet then stays unsent. */
  struct ps_block_update *rejected;
  struct ps_failure *rejection;
  /** What first kept an update from being stored. */
  struct ps_failure *obstacle;
  /** What ended the call or the session before every update had its fate. */
  struct ps_failure *end;

  size_t references;
  /** References that the outbox gives up at the end of the event. */
  size_t releases;
  struct ps_update_call *next_released;
  /** The next of the calls that are over and are to be told. */
  struct ps_update_call *next_over;

  size_t update_count;
  struct ps_block_update updates[];
};

/** A call with its updates, none of them sent, and one reference; NULL if there is no memory. */
struct ps_update_call *ps_update_call_new(uint64_t id, struct ps_call_mode mode,
                                          const struct ps_update_size *sizes, size_t count);

/** Removes so many references; the last one frees the call. */
void ps_update_call_drop(struct ps_update_call *call, size_t references);

/** Makes an update as if it had never been sent. It must be in no list, not open and not in flight. */
void ps_block_update_reset(struct ps_block_update *update);

/** Whether the broker said of every publication that it did not store it. */
bool ps_block_update_is_stored_nowhere(const struct ps_block_update *update);

#endif
