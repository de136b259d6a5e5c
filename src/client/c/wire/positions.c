/* Positions in messages. */
#include "wire/positions.h"

void ps_note_replaced(struct ps_positions *positions, unsigned shard, const struct ps_message *message) {
  struct ps_position expected = ps_expected_position(message);
  if (expected.generation == 0) return;
  ps_positions_note(positions, shard, (struct ps_position){expected.generation, 0});
}
