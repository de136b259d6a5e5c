#ifndef WIRE_JOURNAL_ACK_H
#define WIRE_JOURNAL_ACK_H

#include <nats/nats.h>
#include <pserver_errors.h>

#include "core/position.h"

/** The broker's answer to a journal record. Unless it is PS_ACK_STORED, the last error says why. */
struct ps_journal_ack {
  enum {
    PS_ACK_STORED,
    /** Not stored; the same record can be stored later. */
    PS_ACK_LATER,
    /** Not stored, and never will be. */
    PS_ACK_REFUSED
  } kind;
  unsigned shard;
  struct ps_position position;
};

void ps_read_journal_ack(const char *job, natsMsg *message, struct ps_journal_ack *ack);

/** Shard and generation of a journal's stream, `PS_<job>_<shard>` or with `_<generation>` from 2 on.
 * False if it is none of the job. */
bool ps_parse_journal_stream(const char *job, const char *stream, unsigned *shard, uint64_t *generation);

#endif
