#ifndef PUSH_BATCH_RECORD_H
#define PUSH_BATCH_RECORD_H

#include "push/parameter-update.h"
#include "push/update-record.h"

/*
 * A batch is one record with updates of many blocks of a shard. Its header has groups, each of one
 * parameter, with what its entries have in common and a row for each entry. The tensor bytes are those of
 * the entries in order, each padded with zeros to a multiple of 8.
 */

/** At most as many bytes as a group of this update takes in the header, without its rows. */
size_t ps_group_bytes_max(const struct ps_parameter_update *update);

/** Writes what the header of a batch has besides the entries that every record has. */
void ps_write_batch_entries(struct ps_draft *draft, const struct ps_update_record *record);

/** Writes the tensor bytes; returns the checksum of what came before, carried on over them. */
uint32_t ps_write_batch_data(const struct ps_update_record *record, uint8_t *target, uint32_t crc);

#endif
