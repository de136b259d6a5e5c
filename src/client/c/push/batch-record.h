#ifndef PUSH_BATCH_RECORD_H
#define PUSH_BATCH_RECORD_H

#include "push/parameter-update.h"
#include "push/update-record.h"

/*
 * A batch is one record with updates of many blocks of a shard. Its header consists of groups, each for one
 * parameter: what its entries have in common, and a row for each entry. The tensor bytes are those of the
 * entries in order, each padded with zeros to a multiple of 8.
 */

/** Returns the maximum bytes of a group of this update in the header, without its rows. */
size_t ps_group_bytes_max(const struct ps_parameter_update *update);

/** Writes the entries of a batch's header that follow those of every record. */
void ps_write_batch_entries(struct ps_draft *draft, const struct ps_update_record *record);

/** Writes the tensor bytes; returns `crc`, the checksum of the bytes before them, updated with them. */
uint32_t ps_write_batch_data(const struct ps_update_record *record, uint8_t *target, uint32_t crc);

#endif
