#ifndef PULL_ORIGINS_H
#define PULL_ORIGINS_H

#include "pull/block-read.h"

/** What the values of one tensor were read from. */
struct ps_origin {
  /** With one reference; NULL if nothing was read. */
  struct ps_parameter *parameter;
  pserver_encoding encoding;
  /** The state of each of its blocks. */
  struct ps_block_state *blocks;
};

/** What the tensors of one call were read from: see pserver.h. Never changed once the call is over. */
struct pserver_origins {
  /** The client that has read them: versions of another job mean nothing. */
  uint64_t client;
  size_t count;
  struct ps_origin list[];
};

/** Origins of parameters that a client is about to read; their blocks have no state yet. INTERNAL. */
pserver_status ps_origins_new(uint64_t client, struct ps_parameter *const *parameters, size_t count,
                              pserver_encoding encoding, pserver_origins **origins);

/** Makes this the parameter that a tensor is read from; its blocks have no state yet. INTERNAL without memory. */
pserver_status ps_set_origin(struct ps_origin *origin, struct ps_parameter *parameter,
                             pserver_encoding encoding);

/**
 * The states that `known` says a reader has of the blocks of a parameter, read with this encoding; NULL if it
 * says nothing of use: of another epoch, encoding or client.
 */
const struct ps_block_state *ps_known_states(const pserver_known *known, uint64_t client,
                                             const struct ps_parameter *parameter,
                                             pserver_encoding encoding);

#endif
