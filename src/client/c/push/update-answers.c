/* Passes the answers of broker and hosts about records to the outbox. */
#include <stdlib.h>

#include "wire/core-failure.h"
#include "errors/errors.h"
#include "push/update-sender.h"
#include "wire/clock.h"
#include "wire/envelope.h"
#include "wire/journal-ack.h"

void ps_on_ack(struct ps_update_sender *sender, uint64_t slot, uint64_t serial, natsMsg *message) {
  struct ps_outbox *outbox = sender->outbox;
  struct ps_journal_ack ack;
  int64_t now = ps_now_ms();
  ps_read_journal_ack(sender->deps.identity->job, message, &ack);
  if (ack.kind == PS_ACK_STORED) {
    ps_outbox_stored(outbox, slot, serial, ack.shard, ack.position, now);
    return;
  }
  struct ps_failure *failure = ps_failure_of_last();
  ps_outbox_refused(outbox, slot, serial, failure, ack.kind == PS_ACK_LATER, now);
  ps_failure_drop(failure);
}

/**
 * Returns the rejection in the row of an outcome, with one reference; NULL if the record was applied. Its text
 * is the code if the row has none.
 */
static struct ps_failure *read_rejection(const struct ps_value *code, const struct ps_value *text) {
  if (code->type != PS_VALUE_TEXT) return NULL;
  pserver_status status = ps_status_from_name((const char *)code->content, code->content_bytes);
  const struct ps_value *said = text->type == PS_VALUE_TEXT && text->content_bytes > 0 ? text : code;
  ps_fail(status, "%.*s", (int)said->content_bytes, (const char *)said->content);
  return ps_failure_of_last();
}

/** Reads a row: n, seq, version, and for a rejection code and message. */
static bool read_row(const struct ps_value *row, struct ps_outcome *outcome) {
  struct ps_value entries[5] = {0};
  const uint8_t *at = NULL;
  for (int i = 0; i < 5 && ps_list_next(row, &at, &entries[i]); i++) continue;
  *outcome = (struct ps_outcome){0};
  if (!ps_value_whole(&entries[0], &outcome->n) || !ps_value_whole(&entries[1], &outcome->seq))
    return false;
  ps_value_whole(&entries[2], &outcome->version);
  outcome->failure = read_rejection(&entries[3], &entries[4]);
  return true;
}

/** Passes outcomes to the outbox. A malformed message or row is ignored: its outcomes will be asked for. */
static void take_answers(struct ps_update_sender *sender, const struct ps_message *message, bool is_reply) {
  struct ps_answers answers = {0};
  uint64_t shard;
  struct ps_value rows;
  struct ps_value row;
  const uint8_t *at = NULL;
  bool is_valid = ps_map_whole(&message->fields, "shard", &shard) && shard < PS_SHARDS_MAX &&
                  ps_map_whole(&message->fields, "generation", &answers.generation) &&
                  ps_map_whole(&message->fields, "session", &answers.session) &&
                  ps_map_find(&message->fields, "outcomes", &rows) && rows.type == PS_VALUE_LIST;
  if (!is_valid || rows.count > message->fields.raw_bytes) return;
  struct ps_outcome *outcomes = calloc((size_t)rows.count + 1, sizeof *outcomes);
  if (outcomes == NULL) return;
  while (ps_list_next(&rows, &at, &row)) answers.count += read_row(&row, &outcomes[answers.count]);
  answers.shard = (unsigned)shard;
  answers.outcomes = outcomes;
  ps_outbox_answered(sender->outbox, &answers, is_reply, ps_now_ms());
  for (size_t i = 0; i < answers.count; i++) ps_failure_drop(outcomes[i].failure);
  free(outcomes);
}

static pserver_status open_received(natsMsg *received, struct ps_message *message) {
  return ps_open_message((const uint8_t *)natsMsg_GetData(received),
                         (size_t)natsMsg_GetDataLength(received), message);
}

void ps_on_answers(struct ps_update_sender *sender, natsMsg *received) {
  struct ps_message message;
  if (open_received(received, &message) != PSERVER_OK) return;
  if (ps_error_in_message(&message) == PSERVER_OK) take_answers(sender, &message, false);
}

static void ask_failed(struct ps_update_sender *sender, unsigned shard, const struct ps_message *message) {
  struct ps_failure *failure = ps_failure_of_last();
  if (message != NULL && failure->references > 0) {
    failure->expected = ps_expected_position(message);
    failure->received = ps_received_session(message);
  }
  ps_outbox_ask_failed(sender->outbox, shard, failure,
                       message == NULL ? 0 : ps_retry_after_ms(message), ps_now_ms());
  ps_failure_drop(failure);
}

void ps_on_outcome_reply(struct ps_update_sender *sender, unsigned shard, natsMsg *received) {
  struct ps_message message;
  if (natsMsg_IsNoResponders(received)) {
    ps_fail(PSERVER_ERR_NO_OWNER, "no host serves shard %u", shard);
    ask_failed(sender, shard, NULL);
  } else if (open_received(received, &message) == PSERVER_OK) {
    if (ps_error_in_message(&message) == PSERVER_OK) take_answers(sender, &message, true);
    else ask_failed(sender, shard, &message);
  }
}
