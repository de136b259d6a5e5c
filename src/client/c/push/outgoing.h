#ifndef PUSH_OUTGOING_H
#define PUSH_OUTGOING_H

#include <stdbool.h>

#include "push/record.h"

/** The message of a record: what it takes to draft it, the first time and again. */
struct ps_outgoing {
  struct ps_block_update *update;
  struct ps_record_head head;
  /** Whether it waits to be published, and what waits behind it. */
  bool is_queued;
  struct ps_outgoing *next;
};

/** Messages that wait to be published, the first of them first. All zeros: none. */
struct ps_outgoing_queue {
  struct ps_outgoing *first;
  struct ps_outgoing *last;
};

/** Has a message wait behind all others, unless it waits already. */
void ps_outgoing_enqueue(struct ps_outgoing_queue *queue, struct ps_outgoing *message);

/** Has it wait no more; false if it did not. The first is found at once. */
bool ps_outgoing_dequeue(struct ps_outgoing_queue *queue, struct ps_outgoing *message);

#endif
