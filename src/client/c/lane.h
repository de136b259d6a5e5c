#ifndef LANE_H
#define LANE_H

#include <stdbool.h>
#include <stdint.h>

struct piece;

/** Numbers of a session beyond `done` that a shard remembers. */
#define WINDOW_RECORDS 1024

/**
 * What a session sends to one shard: the numbers without an outcome, and `done`, the number up to which
 * every record is settled or given up and will not be sent again.
 */
struct lane {
  /** By number modulo the window; NULL until the first record. */
  struct piece **open;
  uint64_t last;
  uint64_t done;
  /** The last sending that has a PubAck: earlier ones without one are lost. */
  uint64_t acked_sending;
  /** When outcomes were last asked for. */
  int64_t asked_at_ms;
};

/** Whether the shard would take one more number. */
bool lane_has_room(const struct lane *lane);

/** Gives a record the next number. False if there is no memory. */
bool lane_open(struct lane *lane, struct piece *piece, uint64_t *n);

/** The record with a number; NULL if it is settled, given up or was never sent. */
struct piece *lane_find(const struct lane *lane, uint64_t n);

/** The number is settled or given up. */
void lane_close(struct lane *lane, uint64_t n);

/** Numbers start over. */
void lane_restart(struct lane *lane);

void lane_release(struct lane *lane);

#endif
