#include "core/core.h"

#include <stdlib.h>

/* Block updates, and where they are: in their call, in a list, in flight, in the window of their shard. */

/* Block updates, and the calls that they belong to. */

/** The first delay before a record that the broker did not store is published again. */
#define RETRY_FIRST_MS 50

struct ps_update_call *ps_update_call_new(uint64_t id, struct ps_call_mode mode, size_t updates_max) {
  if (updates_max > (SIZE_MAX - sizeof(struct ps_update_call)) / sizeof(struct ps_block_update)) {
    return NULL;
  }
  struct ps_update_call *call = malloc(sizeof *call + updates_max * sizeof call->updates[0]);
  if (call != NULL) *call = (struct ps_update_call){.id = id, .mode = mode, .references = 1};
  return call;
}

void ps_update_call_add(struct ps_update_call *call, unsigned shard, size_t blocks, size_t data_bytes,
                        bool names_version) {
  size_t index = call->update_count++;
  call->updates[index] = (struct ps_block_update){.call = call,
                                                  .index = index,
                                                  .shard = shard,
                                                  .blocks = blocks,
                                                  .data_bytes = data_bytes,
                                                  .names_version = names_version,
                                                  .fate = PS_FATE_PENDING,
                                                  .slot = -1,
                                                  .read_at_ms = PS_NEVER_MS,
                                                  .retry_at_ms = PS_NEVER_MS,
                                                  .retry_delay_ms = RETRY_FIRST_MS,
                                                  .ask_at_ms = PS_NEVER_MS};
  call->pending += blocks;
}

void ps_update_call_drop(struct ps_update_call *call, size_t references) {
  call->references -= references;
  if (call->references > 0) return;
  for (size_t i = 0; i < call->update_count; i++) ps_failure_drop(call->updates[i].obstacle);
  ps_failure_drop(call->rejection);
  ps_failure_drop(call->obstacle);
  ps_failure_drop(call->end);
  free(call);
}

void ps_block_update_reset(struct ps_block_update *update) {
  update->n = 0;
  update->is_rejoined = false;
  update->sends = 0;
  update->refusals = 0;
  update->retry_at_ms = PS_NEVER_MS;
  update->retry_delay_ms = RETRY_FIRST_MS;
  ps_failure_set(&update->obstacle, NULL);
  update->stored = (struct ps_position){0};
  update->ask_at_ms = PS_NEVER_MS;
}

bool ps_block_update_is_stored_nowhere(const struct ps_block_update *update) {
  return update->stored.generation == 0 && update->sends == update->refusals;
}

/* A doubly linked list whose links are in the updates. */

void ps_update_list_append(struct ps_update_list *list, struct ps_block_update *update) {
  update->previous = list->last;
  if (list->last == NULL) list->first = update;
  else list->last->next = update;
  list->last = update;
}

void ps_update_list_prepend(struct ps_update_list *list, struct ps_block_update *update) {
  update->next = list->first;
  if (list->first == NULL) list->last = update;
  else list->first->previous = update;
  list->first = update;
}

void ps_update_list_remove(struct ps_update_list *list, struct ps_block_update *update) {
  struct ps_block_update *previous = update->previous;
  struct ps_block_update *next = update->next;
  if (previous == NULL) list->first = next;
  else previous->next = next;
  if (next == NULL) list->last = previous;
  else next->previous = previous;
  update->previous = NULL;
  update->next = NULL;
}

/* The records in flight, and the slots by which PubAcks name them. */

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

bool ps_in_flight_fits(const struct ps_in_flight *in_flight, size_t bytes, size_t bytes_max) {
  return in_flight->bytes == 0 || (bytes <= bytes_max && in_flight->bytes <= bytes_max - bytes);
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

/* The numbers of a session's records in one shard. */

struct ps_shard_window *ps_shard_window_new(unsigned shard, size_t records) {
  struct ps_shard_window *window = calloc(1, sizeof *window + records * sizeof window->open[0]);
  if (window == NULL) return NULL;
  window->shard = shard;
  window->acked_at_ms = PS_LONG_AGO_MS;
  window->asked_at_ms = PS_LONG_AGO_MS;
  window->records = records;
  return window;
}

/** Returns the bytes that count against PS_UNSETTLED_BYTES_MAX. */
static size_t work_of(const struct ps_block_update *update) {
  return update->data_bytes + update->blocks * PS_UNSETTLED_BLOCK_BYTES;
}

bool ps_shard_window_has_room(const struct ps_shard_window *window) {
  if (window->last >= window->done + window->records) return false;
  const struct ps_block_update *first = window->waiting.first;
  if (first == NULL || window->unsettled_bytes == 0) return true;
  return window->unsettled_bytes + work_of(first) <= PS_UNSETTLED_BYTES_MAX;
}

struct ps_block_update *ps_shard_window_get(const struct ps_shard_window *window, uint64_t n) {
  if (n <= window->done || n > window->last) return NULL;
  return window->open[n % window->records];
}

static void remove_update(struct ps_shard_window *window, struct ps_block_update *update) {
  window->open[update->n % window->records] = NULL;
  window->unsettled_bytes -= work_of(update);
  update->is_open = false;
}

void ps_shard_window_open(struct ps_shard_window *window, struct ps_block_update *update) {
  window->last++;
  update->n = window->last;
  update->is_open = true;
  window->open[update->n % window->records] = update;
  window->unsettled_bytes += work_of(update);
}

void ps_shard_window_take_back(struct ps_shard_window *window, struct ps_block_update *update) {
  remove_update(window, update);
  window->last--;
  update->n = 0;
}

void ps_shard_window_close(struct ps_shard_window *window, struct ps_block_update *update) {
  remove_update(window, update);
  while (window->done < window->last && ps_shard_window_get(window, window->done + 1) == NULL) {
    window->done++;
  }
}

void ps_shard_window_restart(struct ps_shard_window *window) {
  window->last = 0;
  window->done = 0;
}
