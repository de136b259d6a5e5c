#ifndef WIRE_BATCHES_H
#define WIRE_BATCHES_H

#include <stddef.h>

/* Limits of batch records and batched reads: see docs/protocol.md, "Limits and times". */

/** The maximum number of blocks of a batch. */
#define PS_BATCH_ENTRIES_MAX 4096
/** The maximum number of bytes of a batch before its tensor bytes. */
#define PS_BATCH_HEAD_BYTES_MAX 524288
/** Tensor bytes up to which a batch is filled. */
#define PS_BATCH_BYTES 1048576
/** A block with this many tensor bytes or more is sent in a record of its own. */
#define PS_BATCH_ENTRY_BYTES_MAX 262144

/** Bytes of an entry, padded to a multiple of 8. */
static inline size_t ps_padded_bytes(size_t bytes) { return (bytes + 7) / 8 * 8; }

/** An upper bound of a name's bytes that all clients compute alike, so that they fill batches alike. */
size_t ps_batch_name_bytes_max(const char *name);

#endif
