#ifndef CORE_IN_FLIGHT_H
#define CORE_IN_FLIGHT_H

#include "core/block-update.h"
#include "core/update-list.h"

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
