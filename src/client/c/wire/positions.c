/* Positions in messages. */
#include "wire/positions.h"

void ps_note_replaced(struct ps_positions *positions, unsigned shard, const struct message *message) {
  struct position expected = ps_expected_position(message);
  if (expected.generation == 0) return;
  ps_positions_note(positions, shard, (struct position){expected.generation, 0});
}
