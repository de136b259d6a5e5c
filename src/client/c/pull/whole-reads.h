#ifndef PULL_WHOLE_READS_H
#define PULL_WHOLE_READS_H

#include "calls/call.h"

/** The arguments of a call that reads whole parameters. */
struct ps_whole_reads {
  const char *const *names;
  pserver_tensor *tensors;
  size_t count;
  const pserver_read_options *options;
  /** One for each name; may be NULL. */
  const pserver_known *known;
  /** Receives the origins; may be NULL. */
  pserver_origins **origins;
};

/** Reads parameters as pserver_get_known() does, within a call. */
pserver_status ps_read_whole(struct ps_call *call, const struct ps_whole_reads *wanted);

#endif
