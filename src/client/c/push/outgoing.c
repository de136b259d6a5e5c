/* The queue of messages that wait to be published. */
#include "push/outgoing.h"

void ps_outgoing_enqueue(struct ps_outgoing_queue *queue, struct ps_outgoing *message) {
  if (message->is_queued) return;
  message->is_queued = true;
  message->next = NULL;
  if (queue->first == NULL) queue->first = message;
  else queue->last->next = message;
  queue->last = message;
}

bool ps_outgoing_dequeue(struct ps_outgoing_queue *queue, struct ps_outgoing *message) {
  if (!message->is_queued) return false;
  message->is_queued = false;
  struct ps_outgoing *before = NULL;
  struct ps_outgoing *at = queue->first;
  for (; at != message; at = at->next) before = at;
  if (before == NULL) queue->first = message->next;
  else before->next = message->next;
  if (queue->last == message) queue->last = before;
  return true;
}
