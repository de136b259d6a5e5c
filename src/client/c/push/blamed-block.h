#ifndef PUSH_BLAMED_BLOCK_H
#define PUSH_BLAMED_BLOCK_H

#include "push/update-record.h"

/**
 * Returns the block that the text of a rejection is about: the only one of the record, or the one that the
 * text begins with, as in `"name" block 3: …`. NULL if the text names no block of a batch.
 */
const struct ps_update_source *ps_blamed_block(const struct ps_update_record *record, const char *text);

#endif
