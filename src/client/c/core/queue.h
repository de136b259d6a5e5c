#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

/** A member of what can be queued. All zeros: in no queue. */
struct ps_queue_link {
  /** What it is a member of, while that is queued. */
  void *item;
  struct ps_queue_link *next;
};

/** A queue whose links are in its items: it allocates no memory. All zeros: empty. */
struct ps_queue {
  struct ps_queue_link *first;
  struct ps_queue_link *last;
  size_t count;
};

/** Whether the item that the link is in is queued. */
bool ps_is_queued(const struct ps_queue_link *link);

/** Appends the item that the link is in; false if it was queued already. */
bool ps_queue_append(struct ps_queue *queue, struct ps_queue_link *link, void *item);

/** Removes an item of this queue; false if it was not queued. Takes constant time for the first one. */
bool ps_queue_remove(struct ps_queue *queue, struct ps_queue_link *link);

/** Removes the first item and returns it; NULL if there is none. */
void *ps_queue_take(struct ps_queue *queue);

/** Returns the first item; NULL if there is none. */
void *ps_queue_first(const struct ps_queue *queue);

#endif
