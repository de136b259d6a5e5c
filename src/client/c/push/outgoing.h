#ifndef PUSH_OUTGOING_H
#define PUSH_OUTGOING_H

#include <stdbool.h>

#include "push/record.h"

/** The message of a record: what is needed to write it, each time it is published. */
struct ps_outgoing {
  struct ps_block_update *update;
  struct ps_record_head head;
  /** Whether it is in the queue, and the message after it. */
  bool is_queued;
  struct ps_outgoing *next;
};

/** Messages that wait to be published, in order. All zeros: empty. */
struct ps_outgoing_queue {
  struct ps_outgoing *first;
  struct ps_outgoing *last;
};

/** Appends a message, unless it is in the queue already. */
void ps_outgoing_enqueue(struct ps_outgoing_queue *queue, struct ps_outgoing *message);

/** Removes a message; false if it was not in the queue. Takes constant time for the first one. */
bool ps_outgoing_dequeue(struct ps_outgoing_queue *queue, struct ps_outgoing *message);

#endif
