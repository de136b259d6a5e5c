#ifndef PULL_WHOLE_READS_H
#define PULL_WHOLE_READS_H

#include "calls/call.h"

/** Whole parameters that a call reads, and what it is given for that. */
struct ps_whole_reads {
  const char *const *names;
  pserver_tensor *tensors;
  size_t count;
  const pserver_read_options *options;
  /** One for each; NULL if nothing is known. */
  const pserver_known *known;
  /** Receives what was read; NULL if that does not matter. */
  pserver_origins **origins;
};

/** pserver_get_known() within a call. */
pserver_status ps_read_whole(struct ps_call *call, const struct ps_whole_reads *wanted);

#endif
