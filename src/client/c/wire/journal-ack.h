#ifndef WIRE_JOURNAL_ACK_H
#define WIRE_JOURNAL_ACK_H

#include <nats/nats.h>
#include <pserver_errors.h>

#include "core/position.h"

/** The broker's answer to a journal record. Unless it is PS_ACK_STORED, the last error is the reason. */
struct ps_journal_ack {
  enum {
    PS_ACK_STORED,
    /** Refused; the broker may store the same record later. */
    PS_ACK_LATER,
    /** Refused for good. */
    PS_ACK_REFUSED
  } kind;
  unsigned shard;
  struct ps_position position;
};

/** Reads the answer to a record of the job. */
void ps_read_journal_ack(const char *job, natsMsg *message, struct ps_journal_ack *ack);

/** Reads shard and generation from the name of a journal's stream: `PS_<job>_<shard>`, from generation 2 on
 * with `_<generation>`. False if it is not a journal of the job. */
bool ps_parse_journal_stream(const char *job, const char *stream, unsigned *shard, uint64_t *generation);

#endif
