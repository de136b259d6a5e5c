/* A singly linked queue whose links are in its items. */
#include "core/queue.h"

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
