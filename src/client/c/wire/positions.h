#ifndef WIRE_POSITIONS_H
#define WIRE_POSITIONS_H

#include "core/positions.h"
#include "wire/envelope.h"

/**
 * Takes JOURNAL_REPLACED into account: positions of the old generation mean nothing any more. The message
 * names where the new journal stands.
 */
void ps_note_replaced(struct ps_positions *positions, unsigned shard, const struct ps_message *message);

#endif
