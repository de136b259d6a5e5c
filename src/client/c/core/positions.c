/* The highest position seen in each shard. */
#include "core/positions.h"

void ps_positions_note(struct ps_positions *positions, unsigned shard, struct position position) {
  struct position before = positions->seen[shard];
  if (is_later(position, before)) positions->seen[shard] = position;
  ps_positions_await(positions, shard, position);
  if (before.generation != 0 && position.generation > before.generation) {
    const struct ps_positions_listener *listener = positions->listener;
    listener->journal_replaced(listener->owner, shard, before);
  }
}

void ps_positions_await(struct ps_positions *positions, unsigned shard, struct position position) {
  if (is_later(position, positions->awaited[shard])) positions->awaited[shard] = position;
}

struct position ps_positions_get(const struct ps_positions *positions, unsigned shard) {
  struct position awaited = positions->awaited[shard];
  return awaited.generation == 0 ? (struct position){.generation = 1} : awaited;
}

void ps_positions_note_replaced(struct ps_positions *positions, unsigned shard,
                                const struct ps_failure *failure) {
  uint64_t generation = failure->expected.generation;
  if (generation == 0) return;
  ps_positions_note(positions, shard, (struct position){.generation = generation});
}
