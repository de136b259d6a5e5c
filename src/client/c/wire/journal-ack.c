/* The broker's answers to journal records. */
#include "wire/journal-ack.h"

#include <inttypes.h>
#include <pserver.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors/errors.h"
#include "wire/jetstream-errors.h"
#include "wire/pub-ack.h"

/** JetStream's code for a limit of the stream, or for any error of its store; the description says which. */
enum { STORE_FAILED = 10077 };
/** Statuses that mean that the broker could not process the message now. */
enum { STATUS_TIMEOUT = 408, STATUS_TOO_MANY = 429, STATUS_FAULT_MIN = 500 };

struct refusal_row {
  uint32_t error_code;
  pserver_status code;
};

#define ROW(error_code, code) {error_code, code},
static const struct refusal_row rows[] = {PSERVER_REFUSAL_TABLE(ROW)};
#undef ROW

bool ps_parse_journal_stream(const char *job, const char *stream, unsigned *shard,
                             uint64_t *generation) {
  char spelled[PS_STREAM_SIZE];
  int prefix = snprintf(spelled, sizeof spelled, "PS_%s_", job);
  if (strncmp(stream, spelled, (size_t)prefix) != 0) return false;
  char *end = NULL;
  unsigned long number = strtoul(stream + prefix, &end, 10);
  *generation = *end == '_' ? strtoull(end + 1, NULL, 10) : 1;
  if (number > 255) return false;
  *shard = (unsigned)number;
  /* Compare with the canonical name, so that no other spelling counts as the same stream. */
  if (*generation == 1) snprintf(spelled, sizeof spelled, "PS_%s_%u", job, *shard);
  else snprintf(spelled, sizeof spelled, "PS_%s_%u_%" PRIu64, job, *shard, *generation);
  return *generation > 0 && strcmp(spelled, stream) == 0;
}

/**
 * Returns the code for a refusal to store, as `storeRefusalCode` in src/protocol/jetstream-errors.ts does.
 */
static pserver_status refusal_code(const struct ps_pub_ack *answer) {
  const char *text = answer->description;
  if (answer->error_code == STORE_FAILED) {
    bool is_full = strstr(text, "exceeded") != NULL || strstr(text, "no space left") != NULL;
    return is_full ? PSERVER_ERR_JOURNAL_FULL : PSERVER_ERR_JOURNAL_FAULT;
  }
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].error_code == answer->error_code) return rows[i].code;
  }
  bool is_passing = answer->code == STATUS_TIMEOUT || answer->code == STATUS_TOO_MANY ||
                    answer->code >= STATUS_FAULT_MIN;
  return is_passing ? PSERVER_ERR_JETSTREAM_UNAVAILABLE : PSERVER_ERR_INTERNAL;
}

/** Returns the beginning of the error text of a refusal. */
static const char *refusal_text(pserver_status code) {
  switch (code) {
    case PSERVER_ERR_JOURNAL_FULL:
      return "the journal is full";
    case PSERVER_ERR_JOURNAL_FAULT:
      return "the broker cannot write the journal";
    case PSERVER_ERR_JETSTREAM_UNAVAILABLE:
      return "the journal cannot store at the moment";
    case PSERVER_ERR_NO_JETSTREAM:
      return "the broker runs without JetStream";
    case PSERVER_ERR_TOO_LARGE:
      return "the journal takes no record this large";
    default:
      return "the journal refused the record";
  }
}

static int refusal(const struct ps_pub_ack *answer) {
  pserver_status code = refusal_code(answer);
  ps_fail(code, "%s: %s", refusal_text(code), answer->description);
  return pserver_is_retryable(code) ? PS_ACK_LATER : PS_ACK_REFUSED;
}

void ps_read_journal_ack(const char *job, natsMsg *message, struct ps_journal_ack *ack) {
  struct ps_pub_ack answer;
  ack->kind = PS_ACK_REFUSED;
  if (natsMsg_IsNoResponders(message)) {
    ps_fail(PSERVER_ERR_NO_OWNER,
            "no journal takes records of job %s: the broker has restarted, or its stream was deleted",
            job);
    ack->kind = PS_ACK_LATER;
    return;
  }
  if (!ps_read_pub_ack(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message), &answer)) {
    ps_fail(PSERVER_ERR_BAD_MESSAGE, "the answer to a record: expected a PubAck; received other bytes");
    return;
  }
  if (answer.is_error) {
    ack->kind = refusal(&answer);
    return;
  }
  if (!ps_parse_journal_stream(job, answer.stream, &ack->shard, &ack->position.generation)) {
    ps_fail(PSERVER_ERR_BAD_MESSAGE, "no journal stream of job %s: %.80s", job, answer.stream);
    return;
  }
  ack->position.seq = answer.seq;
  ack->kind = PS_ACK_STORED;
}
