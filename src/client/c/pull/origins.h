#ifndef PULL_ORIGINS_H
#define PULL_ORIGINS_H

#include "pull/block-read.h"

/** The versions that one tensor was read from. */
struct ps_origin {
  /** With one reference; NULL if nothing was read. */
  struct ps_parameter *parameter;
  pserver_encoding encoding;
  /** The state of each of its blocks. */
  struct ps_block_state *blocks;
};

/** The versions that the tensors of one call were read from: see pserver.h. Never changes after the call. */
struct pserver_origins {
  /** Number of the client that has read them; versions mean nothing in other jobs. */
  uint64_t client;
  size_t count;
  struct ps_origin list[];
};

/** Makes origins for parameters that a client is about to read, without states. INTERNAL; free them also
 * then. */
pserver_status ps_origins_new(uint64_t client, struct ps_parameter *const *parameters, size_t count,
                              pserver_encoding encoding, pserver_origins **origins);

/** Replaces the parameter of an origin; its blocks have no state yet. INTERNAL. */
pserver_status ps_set_origin(struct ps_origin *origin, struct ps_parameter *parameter,
                             pserver_encoding encoding);

/**
 * Returns the states of the parameter's blocks in `known`; NULL if there are none, or of another epoch,
 * encoding or client.
 */
const struct ps_block_state *ps_known_states(const pserver_known *known, uint64_t client,
                                             const struct ps_parameter *parameter,
                                             pserver_encoding encoding);

#endif
