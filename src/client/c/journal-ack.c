/* The broker's answers to journal records. */
#include "journal-ack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "pub-ack.h"

/** Of JetStream. A limit of the stream, or whatever its store says: the text tells which. */
enum { STORE_FAILED = 10077 };
enum { ACCOUNT_EXCEEDED = 10002, INSUFFICIENT_STORAGE = 10047, INSUFFICIENT_RESOURCES = 10023 };
enum { MESSAGE_TOO_LARGE = 10054, UNAVAILABLE = 503 };

bool parse_journal_stream(const char *job, const char *stream, unsigned *shard,
                          uint64_t *generation) {
  char spelled[STREAM_ROOM];
  int prefix = snprintf(spelled, sizeof spelled, "PS_%s_", job);
  if (strncmp(stream, spelled, (size_t)prefix) != 0) return false;
  char *end = NULL;
  unsigned long number = strtoul(stream + prefix, &end, 10);
  *generation = *end == '_' ? strtoull(end + 1, NULL, 10) : 1;
  if (number > 255) return false;
  *shard = (unsigned)number;
  /* Spelled again, so that nothing else counts as the same stream. */
  if (*generation == 1) snprintf(spelled, sizeof spelled, "PS_%s_%u", job, *shard);
  else snprintf(spelled, sizeof spelled, "PS_%s_%u_%" PRIu64, job, *shard, *generation);
  return *generation > 0 && strcmp(spelled, stream) == 0;
}

/** Whether a limit or the disk is full; a store that fails otherwise says so with the same code. */
static bool is_full(const struct pub_ack *answer) {
  const char *text = answer->description;
  switch (answer->error_code) {
    case STORE_FAILED:
      return strstr(text, "exceeded") != NULL || strstr(text, "no space left") != NULL;
    case ACCOUNT_EXCEEDED:
    case INSUFFICIENT_STORAGE:
    case INSUFFICIENT_RESOURCES:
      return true;
    default:
      return false;
  }
}

static int refusal(const struct pub_ack *answer) {
  const char *text = answer->description;
  if (is_full(answer)) {
    fail(PSERVER_ERR_JOURNAL_FULL, "the journal is full: %s", text);
    return ACK_LATER;
  }
  if (answer->error_code == STORE_FAILED) {
    fail(PSERVER_ERR_JOURNAL_FAULT, "the broker cannot write the journal: %s", text);
    return ACK_LATER;
  }
  if (answer->error_code == MESSAGE_TOO_LARGE) {
    fail(PSERVER_ERR_TOO_LARGE, "the journal takes no record this large: %s", text);
    return ACK_REFUSED;
  }
  if (answer->code == UNAVAILABLE) {
    fail(PSERVER_ERR_NO_OWNER, "the journal cannot store: %s", text);
    return ACK_LATER;
  }
  fail(PSERVER_ERR_INTERNAL, "the journal refused the record: %s", text);
  return ACK_REFUSED;
}

void read_journal_ack(const char *job, natsMsg *message, struct journal_ack *ack) {
  struct pub_ack answer;
  ack->kind = ACK_REFUSED;
  if (natsMsg_IsNoResponders(message)) {
    fail(PSERVER_ERR_NO_OWNER,
         "no journal takes records of job %s: the broker has restarted, or its stream was deleted",
         job);
    ack->kind = ACK_LATER;
    return;
  }
  if (!read_pub_ack(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message), &answer)) {
    fail(PSERVER_ERR_BAD_MESSAGE, "the answer to a record: expected a PubAck; received other bytes");
    return;
  }
  if (answer.is_error) {
    ack->kind = refusal(&answer);
    return;
  }
  if (!parse_journal_stream(job, answer.stream, &ack->shard, &ack->position.generation)) {
    fail(PSERVER_ERR_BAD_MESSAGE, "no journal stream of job %s: %.80s", job, answer.stream);
    return;
  }
  ack->position.seq = answer.seq;
  ack->kind = ACK_STORED;
}
