/* The records in flight, and the slots by which PubAcks name them. */
#include "core/in-flight.h"

#include <stdlib.h>

bool ps_in_flight_reserve(struct ps_in_flight *in_flight, size_t records) {
  if (records <= in_flight->capacity) return true;
  size_t capacity = 2 * in_flight->capacity > records ? 2 * in_flight->capacity : records;
  if (capacity > INT32_MAX) return false;
  struct ps_block_update **slots = realloc(in_flight->slots, capacity * sizeof slots[0]);
  if (slots == NULL) return false;
  in_flight->slots = slots;
  int32_t *free_slots = realloc(in_flight->free, capacity * sizeof free_slots[0]);
  if (free_slots == NULL) return false;
  in_flight->free = free_slots;
  in_flight->capacity = capacity;
  return true;
}

struct ps_block_update *ps_in_flight_get(const struct ps_in_flight *in_flight, uint64_t slot,
                                         uint64_t serial) {
  struct ps_block_update *update = slot < in_flight->slot_count ? in_flight->slots[slot] : NULL;
  return update != NULL && update->serial == serial ? update : NULL;
}

bool ps_in_flight_fits(const struct ps_in_flight *in_flight, size_t bytes) {
  return in_flight->bytes == 0 ||
         (bytes <= in_flight->bytes_max && in_flight->bytes <= in_flight->bytes_max - bytes);
}

void ps_in_flight_add(struct ps_in_flight *in_flight, struct ps_block_update *update) {
  update->slot = in_flight->free_count > 0 ? in_flight->free[--in_flight->free_count]
                                           : (int32_t)in_flight->slot_count++;
  update->serial = ++in_flight->serials;
  in_flight->slots[update->slot] = update;
  ps_update_list_append(&in_flight->list, update);
  in_flight->bytes += update->data_bytes;
  in_flight->count++;
}

void ps_in_flight_move_to_end(struct ps_in_flight *in_flight, struct ps_block_update *update) {
  ps_update_list_remove(&in_flight->list, update);
  ps_update_list_append(&in_flight->list, update);
}

void ps_in_flight_remove(struct ps_in_flight *in_flight, struct ps_block_update *update) {
  ps_update_list_remove(&in_flight->list, update);
  in_flight->slots[update->slot] = NULL;
  in_flight->free[in_flight->free_count++] = update->slot;
  update->slot = -1;
  in_flight->bytes -= update->data_bytes;
  in_flight->count--;
}

void ps_in_flight_release(struct ps_in_flight *in_flight) {
  free(in_flight->slots);
  free(in_flight->free);
}
