/* The highest position in each shard. */
#include "core/positions.h"

void ps_positions_note(struct ps_positions *positions, unsigned shard, struct ps_position position) {
  struct ps_position before = positions->seen[shard];
  if (ps_is_later(position, before)) positions->seen[shard] = position;
  ps_positions_await(positions, shard, position);
  if (before.generation != 0 && position.generation > before.generation) {
    const struct ps_positions_listener *listener = positions->listener;
    listener->journal_replaced(listener->owner, shard, before);
  }
}

void ps_positions_await(struct ps_positions *positions, unsigned shard, struct ps_position position) {
  if (ps_is_later(position, positions->awaited[shard])) positions->awaited[shard] = position;
}

struct ps_position ps_positions_get(const struct ps_positions *positions, unsigned shard) {
  struct ps_position awaited = positions->awaited[shard];
  return awaited.generation == 0 ? (struct ps_position){.generation = 1} : awaited;
}

void ps_positions_note_replaced(struct ps_positions *positions, unsigned shard, uint64_t generation) {
  if (generation == 0) return;
  ps_positions_note(positions, shard, (struct ps_position){.generation = generation});
}
