#ifndef CALLS_PARAMETER_H
#define CALLS_PARAMETER_H

#include <pserver.h>

#include "formats/msgpack-reader.h"
#include "wire/names.h"

/** How a parameter is cut into blocks: see docs/protocol.md, "Blocks". */
struct ps_layout {
  uint64_t elements;
  uint64_t block_elements;
  uint64_t blocks;
  uint64_t first_shard;
  uint64_t shards;
};

/** A parameter as a host describes it. Never changes, except `references` and `seen`. */
struct ps_parameter {
  unsigned references;
  struct ps_parameter *next;

  char *name;
  size_t name_bytes;
  /** The name as a subject token. */
  char token[PS_TOKEN_SIZE];
  pserver_dtype dtype;
  int32_t rank;
  uint64_t shape[PSERVER_RANK_MAX];
  uint64_t epoch;
  bool is_ready;
  struct ps_layout layout;
  /** The encoded configuration as the host has sent it, for `init` records. */
  uint8_t *config;
  size_t config_bytes;
  /** The settings in it that the client uses. */
  bool has_rate;
  bool has_optimizer;
  bool is_sparse;
  bool is_static;
  bool allows_non_finite;
  bool clips_norm;
  /** Versions of the blocks when they were last read; 0: never. Atomic. */
  uint64_t *seen;
};

/** Reads a parameter in a reply, with one reference. BAD_MESSAGE, INTERNAL. */
pserver_status ps_read_parameter(const struct ps_value *value, struct ps_parameter **parameter);

/** Adds a reference. On any thread, as the functions below. */
void ps_parameter_ref(struct ps_parameter *parameter);
/** Drops a reference; the parameter is freed with its last one. NULL is ignored. */
void ps_parameter_unref(struct ps_parameter *parameter);

/** Whether the parameter has this name of so many bytes. */
bool ps_has_name(const struct ps_parameter *parameter, const char *name, size_t bytes);

/** Returns the number of elements of the block with this index. */
uint64_t ps_block_elements(const struct ps_parameter *parameter, uint64_t index);

/** Returns the number of elements of one row of the first dimension; 1 for a scalar. */
uint64_t ps_row_elements(const struct ps_parameter *parameter);

/** Whether every block consists of whole rows. */
bool ps_is_cut_between_rows(const struct ps_parameter *parameter);

#endif
