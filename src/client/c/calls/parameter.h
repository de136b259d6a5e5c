#ifndef CALLS_PARAMETER_H
#define CALLS_PARAMETER_H

#include <pserver.h>

#include "formats/msgpack-reader.h"
#include "wire/names.h"

/** How a parameter is cut: see docs/protocol.md, "Blocks". */
struct ps_layout {
  uint64_t elements;
  uint64_t block_elements;
  uint64_t blocks;
  uint64_t first_shard;
  uint64_t shards;
};

/** A parameter as a host has told it. Never changed, but for `references` and `seen`. */
struct ps_parameter {
  unsigned references;
  struct ps_parameter *next;

  char *name;
  size_t name_bytes;
  char token[PS_TOKEN_SIZE];
  pserver_dtype dtype;
  int32_t rank;
  uint64_t shape[PSERVER_RANK_MAX];
  uint64_t epoch;
  bool is_ready;
  struct ps_layout layout;
  /** The configuration as the host has written it, for `init` records. */
  uint8_t *config;
  size_t config_bytes;
  /** What of it matters here. */
  bool has_rate;
  bool has_optimizer;
  bool is_sparse;
  bool is_static;
  bool allows_non_finite;
  bool clips_norm;
  /** Versions of the blocks at the last pull, 0 where none was. Atomic. */
  uint64_t *seen;
};

/** The parameter in a reply, with one reference. BAD_MESSAGE and the like if it is malformed. */
pserver_status ps_read_parameter(const struct ps_value *value, struct ps_parameter **parameter);

/** Adds a reference; on any thread, as below. */
void ps_parameter_ref(struct ps_parameter *parameter);
/** Frees it with its last reference; NULL is ignored. */
void ps_parameter_unref(struct ps_parameter *parameter);

/** Whether it is the parameter with this name. */
bool ps_has_name(const struct ps_parameter *parameter, const char *name, size_t bytes);

/** Elements of the block with this index. */
uint64_t ps_block_elements(const struct ps_parameter *parameter, uint64_t index);

/** Elements of one row of the first axis. */
uint64_t ps_row_elements(const struct ps_parameter *parameter);

/** Whether blocks are made of whole rows. */
bool ps_is_cut_between_rows(const struct ps_parameter *parameter);

#endif
