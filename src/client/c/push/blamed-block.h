#ifndef PUSH_BLAMED_BLOCK_H
#define PUSH_BLAMED_BLOCK_H

#include "push/update-record.h"

/**
 * The block that the text of a rejection is about: the only one of the record, or that with which the text
 * begins, as `"name" block 3: …`. NULL if it names none of a batch.
 */
const struct ps_update_source *ps_blamed_block(const struct ps_update_record *record, const char *text);

#endif
