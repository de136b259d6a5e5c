#ifndef WIRE_BATCHES_H
#define WIRE_BATCHES_H

#include <stddef.h>

/* What batch records and batched reads have in common: see docs/protocol.md, "Limits and times". */

/** Blocks of one batch. */
#define PS_BATCH_ENTRIES_MAX 4096
/** Bytes of a batch before its tensor bytes. */
#define PS_BATCH_HEAD_BYTES_MAX 524288
/** Tensor bytes up to which a batch is filled. */
#define PS_BATCH_BYTES 1048576
/** Tensor bytes from which on a block goes alone. */
#define PS_BATCH_ENTRY_BYTES_MAX 262144

/** Bytes of an entry's tensor bytes with the zeros after them. */
static inline size_t ps_padded_bytes(size_t bytes) { return (bytes + 7) / 8 * 8; }

/** Most bytes that a name can take by what all implementations count, so that all fill batches alike. */
size_t ps_batch_name_bytes_max(const char *name);

#endif
