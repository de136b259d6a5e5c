#include "core/core.h"

#include <stdlib.h>
#include <string.h>

/* Failures of the core, and queues. */

/* Reference-counted errors, which several updates and calls can share. */

struct ps_failure *ps_failure_new(pserver_status code, const char *text, const char *details) {
  size_t text_bytes = strlen(text) + 1;
  size_t details_bytes = strlen(details) + 1;
  struct ps_failure *failure = malloc(sizeof *failure + text_bytes + details_bytes);
  if (failure == NULL) return NULL;
  char *texts = (char *)(failure + 1);
  memcpy(texts, text, text_bytes);
  memcpy(texts + text_bytes, details, details_bytes);
  *failure =
      (struct ps_failure){.code = code, .text = texts, .details = texts + text_bytes, .references = 1};
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

/* Converts between the last error of a thread and failures of the core. */

/** Stands for a failure that there is no memory for. */
static struct ps_failure no_memory = {
    .code = PSERVER_ERR_INTERNAL, .text = "no memory for an error", .details = ""};

struct ps_failure *ps_failure_of_last(void) {
  const struct ps_error *last = ps_last_error();
  struct ps_failure *failure = ps_failure_new(last->code, last->text, last->details);
  return failure == NULL ? &no_memory : failure;
}

pserver_status ps_fail_as_core(const struct ps_failure *failure) {
  ps_fail(failure->code, "%s", failure->text);
  return ps_detail_all(failure->details);
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
