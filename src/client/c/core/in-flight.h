#ifndef CORE_IN_FLIGHT_H
#define CORE_IN_FLIGHT_H

#include "core/block-update.h"
#include "core/update-list.h"

/**
 * The records without a PubAck, in the order of their last publication, and the bytes of their elements,
 * which stay within a bound. A record that was given up stays until its PubAck cannot come any more: its
 * bytes may still be in the buffers of the connection.
 */
struct ps_in_flight {
  size_t bytes_max;
  /** First the record whose last publication is the longest ago. */
  struct ps_update_list list;
  struct ps_block_update **slots;
  /** Slots that were used and are free, and how many there are. */
  int32_t *free;
  size_t free_count;
  /** Slots that were used, and those that there is memory for. */
  size_t slot_count;
  size_t capacity;
  uint64_t serials;
  /** Bytes of elements in flight. */
  size_t bytes;
  size_t count;
};

/** Provides memory for so many records at one time; false, and nothing changed, if there is none. */
bool ps_in_flight_reserve(struct ps_in_flight *in_flight, size_t records);

/** The record that a PubAck names; NULL if it is not in flight. */
struct ps_block_update *ps_in_flight_get(const struct ps_in_flight *in_flight, uint64_t slot,
                                         uint64_t serial);

/** Whether so many bytes more are within the bound; something larger than the bound goes alone. */
bool ps_in_flight_fits(const struct ps_in_flight *in_flight, size_t bytes);

/** Adds a record, within what was reserved, and gives it a slot and serial. */
void ps_in_flight_add(struct ps_in_flight *in_flight, struct ps_block_update *update);

/** The record is published once more. */
void ps_in_flight_move_to_end(struct ps_in_flight *in_flight, struct ps_block_update *update);

/** Removes a record that is in flight. */
void ps_in_flight_remove(struct ps_in_flight *in_flight, struct ps_block_update *update);

/** Frees its memory, not the records. */
void ps_in_flight_release(struct ps_in_flight *in_flight);

#endif
