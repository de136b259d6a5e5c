#include "core/updates.h"
#include "errors/errors.h"

#include <stdlib.h>
#include <string.h>

/* Reference-counted errors, which several updates and calls can share. */

struct ps_failure *ps_failure_new(pserver_status code, const char *text, const char *details) {
  size_t text_bytes = strlen(text) + 1;
  size_t details_bytes = strlen(details) + 1;
  struct ps_failure *failure = malloc(sizeof *failure + text_bytes + details_bytes);
  if (failure == NULL) return NULL;
  char *texts = (char *)(failure + 1);
  memcpy(texts, text, text_bytes);
  memcpy(texts + text_bytes, details, details_bytes);
  *failure = (struct ps_failure){
      .code = code, .text = texts, .details = texts + text_bytes, .references = 1};
  return failure;
}

struct ps_failure *ps_failure_keep(struct ps_failure *failure) {
  if (failure != NULL && failure->references > 0) failure->references++;
  return failure;
}

void ps_failure_drop(struct ps_failure *failure) {
  if (failure == NULL || failure->references == 0) return;
  failure->references--;
  if (failure->references == 0) free(failure);
}

void ps_failure_set(struct ps_failure **place, struct ps_failure *failure) {
  struct ps_failure *before = *place;
  *place = ps_failure_keep(failure);
  ps_failure_drop(before);
}

void ps_failure_set_first(struct ps_failure **place, struct ps_failure *failure) {
  if (*place == NULL) *place = ps_failure_keep(failure);
}

/* A singly linked queue whose links are in its items. */

bool ps_is_queued(const struct ps_queue_link *link) { return link->item != NULL; }

bool ps_queue_append(struct ps_queue *queue, struct ps_queue_link *link, void *item) {
  if (ps_is_queued(link)) return false;
  *link = (struct ps_queue_link){.item = item};
  if (queue->first == NULL) queue->first = link;
  else queue->last->next = link;
  queue->last = link;
  queue->count++;
  return true;
}

bool ps_queue_remove(struct ps_queue *queue, struct ps_queue_link *link) {
  if (!ps_is_queued(link)) return false;
  struct ps_queue_link *before = NULL;
  struct ps_queue_link *at = queue->first;
  for (; at != link; at = at->next) before = at;
  if (before == NULL) queue->first = link->next;
  else before->next = link->next;
  if (queue->last == link) queue->last = before;
  queue->count--;
  *link = (struct ps_queue_link){0};
  return true;
}

void *ps_queue_take(struct ps_queue *queue) {
  void *item = ps_queue_first(queue);
  if (item != NULL) ps_queue_remove(queue, queue->first);
  return item;
}

void *ps_queue_first(const struct ps_queue *queue) {
  return queue->first == NULL ? NULL : queue->first->item;
}

/* Block updates, and the calls that they belong to. */

/** The first delay before a record that the broker did not store is published again. */
#define RETRY_FIRST_MS 50

static struct ps_block_update new_block_update(struct ps_update_call *call, size_t index,
                                               const struct ps_update_size *size) {
  return (struct ps_block_update){
      .call = call,
      .index = index,
      .shard = size->shard,
      .blocks = size->blocks,
      .data_bytes = size->data_bytes,
      .names_version = size->names_version,
      .fate = PS_FATE_PENDING,
      .slot = -1,
      .retry_at_ms = PS_NEVER_MS,
      .retry_delay_ms = RETRY_FIRST_MS,
      .ask_at_ms = PS_NEVER_MS,
  };
}

struct ps_update_call *ps_update_call_new(uint64_t id, struct ps_call_mode mode,
                                          const struct ps_update_size *sizes, size_t count) {
  if (count > (SIZE_MAX - sizeof(struct ps_update_call)) / sizeof(struct ps_block_update)) {
    return NULL;
  }
  struct ps_update_call *call = malloc(sizeof *call + count * sizeof call->updates[0]);
  if (call == NULL) return NULL;
  *call = (struct ps_update_call){
      .id = id,
      .mode = mode,
      .references = 1,
      .update_count = count,
  };
  for (size_t i = 0; i < count; i++) {
    call->updates[i] = new_block_update(call, i, &sizes[i]);
    call->pending += sizes[i].blocks;
  }
  return call;
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

/* Counts the references of the outbox to calls. The TypeScript client needs none of this. */

void ps_call_references_take(struct ps_block_update *update) {
  update->is_held = true;
  update->call->references++;
}

void ps_call_references_note_unneeded(struct ps_call_references *references,
                                      struct ps_block_update *update) {
  struct ps_update_call *call = update->call;
  if (!update->is_held || update->is_open || update->slot >= 0) return;
  update->is_held = false;
  call->releases++;
  if (call->releases > 1) return;
  call->next_released = references->released;
  references->released = call;
}

void ps_call_references_release(struct ps_call_references *references) {
  while (references->released != NULL) {
    struct ps_update_call *call = references->released;
    size_t releases = call->releases;
    references->released = call->next_released;
    call->releases = 0;
    ps_update_call_drop(call, releases);
  }
}

/* The fates of the updates of a call. */

bool ps_update_call_is_over(const struct ps_update_call *call) { return call->pending == 0; }

bool ps_update_call_has_failed(const struct ps_update_call *call) {
  return call->rejection != NULL || call->unknown > 0 || call->unsent > 0;
}

void ps_update_applied(struct ps_block_update *update) {
  update->fate = PS_FATE_APPLIED;
  update->call->applied += update->blocks;
  update->call->pending -= update->blocks;
}

void ps_update_settled(struct ps_block_update *update, const struct ps_outcome *outcome) {
  struct ps_update_call *call = update->call;
  struct ps_failure *failure = outcome->failure;
  enum ps_rejection reaction = PS_REJECTION_FAIL;
  if (failure != NULL) reaction = ps_reaction_to_rejection(failure->code);
  if (failure == NULL ||
      (reaction == PS_REJECTION_COUNT_PRESENT && call->mode.counts_present)) {
    ps_update_applied(update);
  } else if (reaction == PS_REJECTION_COUNT_LATE && call->mode.counts_late) {
    update->fate = PS_FATE_LATE;
    call->late += update->blocks;
    call->pending -= update->blocks;
  } else {
    ps_update_rejected(update, failure);
  }
}

void ps_update_rejected(struct ps_block_update *update, struct ps_failure *failure) {
  struct ps_update_call *call = update->call;
  update->fate = PS_FATE_REJECTED;
  call->pending -= update->blocks;
  if (call->rejection != NULL) return;
  call->rejected = update;
  ps_failure_set(&call->rejection, failure);
}

void ps_update_unknown(struct ps_block_update *update) {
  update->fate = PS_FATE_UNKNOWN;
  update->call->unknown += update->blocks;
  update->call->pending -= update->blocks;
}

void ps_update_unsent(struct ps_block_update *update, struct ps_failure *obstacle) {
  struct ps_update_call *call = update->call;
  update->fate = PS_FATE_UNSENT;
  call->unsent += update->blocks;
  call->pending -= update->blocks;
  ps_failure_set_first(&call->obstacle, obstacle);
}

void ps_update_call_ended(struct ps_update_call *call, struct ps_failure *end) {
  ps_failure_set_first(&call->end, end);
}
