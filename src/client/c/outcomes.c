/* Answers of shard owners, and questions for those that do not come: an owner that has just taken a
 * shard over folds without answering, and what is sent while disconnected is lost. */
#include "outcomes.h"

#include <stdio.h>

#include "clock.h"
#include "connection.h"
#include "requests.h"

#define ASK_AGAIN_MS 1000
#define ASK_SOON_MS 200

static bool is_of_the_session(pserver_status code) {
  return ps_ends_session(code) || ps_reaction_to_rejection(code) == PS_REJECTION_FORGOTTEN;
}

/** The rejection in an outcome's row as the last error; OK if it was applied. */
static pserver_status read_code(const struct value *code, const struct value *text) {
  if (code->type != VALUE_TEXT) return PSERVER_OK;
  pserver_status status = status_from_name((const char *)code->content, code->content_bytes);
  bool has_text = text->type == VALUE_TEXT && text->content_bytes > 0;
  return fail(status, "%.*s", (int)(has_text ? text->content_bytes : code->content_bytes),
              (const char *)(has_text ? text->content : code->content));
}

static void settle(struct client *client, struct piece *piece, pserver_status status,
                   bool was_asked) {
  if (!is_of_the_session(status)) {
    settle_piece(client, piece, status);
    return;
  }
  /* A session's end says nothing of an earlier copy of the record; only a record that was sent once,
   * and is answered itself, is known not to have been applied. */
  struct failure failure = *last_failure();
  bool is_first_copy = !was_asked && piece->sends == 1;
  enum ps_reaction reaction = ps_reaction_to(status);
  if (reaction == PS_REACTION_REJOIN && is_first_copy) piece->is_rejoined = true;
  else if (reaction == PS_REACTION_END && is_first_copy) settle_piece(client, piece, status);
  else if (reaction != PS_REACTION_REJOIN) abandon_piece(client, piece);
  if (ps_ends_session(status)) session_ended(client, fail_as(&failure));
}

/** One row: n, seq, version, and of a rejection code and message. */
static void take_row(struct client *client, unsigned shard, uint64_t generation,
                     const struct value *row, bool was_asked) {
  struct value entries[5] = {0};
  const uint8_t *at = NULL;
  uint64_t n;
  uint64_t seq;
  for (int i = 0; i < 5 && list_next(row, &at, &entries[i]); i++) continue;
  if (!value_whole(&entries[0], &n) || !value_whole(&entries[1], &seq)) return;
  note_position(client, shard, (struct position){generation, seq});
  struct piece *piece = lane_find(&client->outbox.lanes[shard], n);
  if (piece != NULL) settle(client, piece, read_code(&entries[3], &entries[4]), was_asked);
}

static void take_answers(struct client *client, const struct message *message, bool was_asked) {
  uint64_t shard;
  uint64_t generation;
  uint64_t session;
  struct value outcomes;
  struct value row;
  const uint8_t *at = NULL;
  bool is_valid = map_whole(&message->fields, "shard", &shard) && shard < SHARDS_MAX &&
                  map_whole(&message->fields, "generation", &generation) &&
                  map_whole(&message->fields, "session", &session) &&
                  map_find(&message->fields, "outcomes", &outcomes);
  /* A malformed message is as good as a lost one: the outcome is asked for. */
  if (!is_valid || session != client->session.number) return;
  while (list_next(&outcomes, &at, &row)) {
    take_row(client, (unsigned)shard, generation, &row, was_asked);
  }
}

void on_answers(struct client *client, natsMsg *received) {
  struct message message;
  if (open_message((const uint8_t *)natsMsg_GetData(received),
                   (size_t)natsMsg_GetDataLength(received), &message) == PSERVER_OK &&
      error_in_message(&message) == PSERVER_OK) {
    take_answers(client, &message, false);
  }
}

/** The position that an error says was expected; none of it that is not there. */
static struct position expected_position(const struct message *message) {
  struct value error;
  struct value details;
  struct value expected;
  struct position position = {0};
  if (map_find(&message->fields, "error", &error) && map_find(&error, "details", &details) &&
      map_find(&details, "expected", &expected)) {
    map_whole(&expected, "generation", &position.generation);
    map_whole(&expected, "seq", &position.seq);
  }
  return position;
}

void note_replaced(struct client *client, unsigned shard, const struct message *message) {
  struct position expected = expected_position(message);
  if (expected.generation == 0) return;
  note_position(client, shard, (struct position){expected.generation, 0});
}

/** Gives up what is stored after `first` and before `end`: it is lost with the journal, or part of it. */
static void abandon_lost(struct client *client, struct lane *lane, struct position first,
                         struct position end) {
  struct failure failure = *last_failure();
  for (uint64_t n = lane->done + 1; n <= lane->last; n++) {
    struct piece *piece = lane_find(lane, n);
    if (piece == NULL || piece->stored.generation == 0) continue;
    if (!is_later(piece->stored, first) || !is_later(end, piece->stored)) continue;
    fail_as(&failure);
    abandon_piece(client, piece);
  }
}

void on_outcome_reply(struct client *client, unsigned shard, natsMsg *received) {
  struct lane *lane = &client->outbox.lanes[shard];
  struct message message;
  int64_t soon = now_ms() - ASK_AGAIN_MS + ASK_SOON_MS;
  if (natsMsg_IsNoResponders(received)) {
    lane->asked_at_ms = soon;
    return;
  }
  if (open_message((const uint8_t *)natsMsg_GetData(received),
                   (size_t)natsMsg_GetDataLength(received), &message) != PSERVER_OK) {
    return;
  }
  pserver_status status = error_in_message(&message);
  if (status == PSERVER_OK) {
    take_answers(client, &message, true);
  } else if (heals_with_time(status)) {
    int64_t hint_ms = retry_after_ms(&message);
    lane->asked_at_ms = hint_ms > ASK_SOON_MS ? soon - ASK_SOON_MS + hint_ms : soon;
  } else if (ps_ends_session(status)) {
    session_ended(client, status);
  } else if (ps_reaction_to(status) == PS_REACTION_REPLACED) {
    note_replaced(client, shard, &message);
    /* What was stored in the old journal and not folded is lost. */
    struct position newest = {position_of(client, shard).generation, 0};
    abandon_lost(client, lane, (struct position){0}, newest);
  } else if (ps_reaction_to(status) == PS_REACTION_LOST) {
    /* Of a journal that ends too early, and is folded on, only what lay behind its end is lost. */
    abandon_lost(client, lane, expected_position(&message), (struct position){UINT64_MAX, 0});
  }
  /* Any other error is repeated with the question, until the call's deadline. */
}

static bool is_due(const struct piece *piece, int64_t now) {
  return piece != NULL && piece->stored.generation != 0 && piece->ask_at_ms <= now;
}

/** Writes the question for what is due in a lane, of the oldest generation; false if nothing is. */
static bool write_question(struct client *client, struct lane *lane, int64_t now,
                           struct draft *draft) {
  struct position last = {0};
  size_t count = 0;
  /* Those that are nearly due go along: their own question would follow at once. */
  int64_t due = now + ASK_SOON_MS;
  for (uint64_t n = lane->done + 1; n <= lane->last; n++) {
    struct piece *piece = lane_find(lane, n);
    if (!is_due(piece, due)) continue;
    if (count == 0 || piece->stored.generation < last.generation) {
      last = piece->stored;
      count = 0;
    }
    if (piece->stored.generation != last.generation) continue;
    count++;
    if (piece->stored.seq > last.seq) last.seq = piece->stored.seq;
  }
  if (count == 0) return false;
  draft_whole(draft, "session", client->session.number);
  draft_key(draft, "numbers");
  pack_list(draft, count);
  for (uint64_t n = lane->done + 1; n <= lane->last; n++) {
    struct piece *piece = lane_find(lane, n);
    if (is_due(piece, due) && piece->stored.generation == last.generation) pack_whole(draft, n);
  }
  draft_whole(draft, "generation", last.generation);
  draft_whole(draft, "seq", last.seq);
  return true;
}

static void ask_shard(struct client *client, unsigned shard, int64_t now) {
  struct lane *lane = &client->outbox.lanes[shard];
  struct draft draft;
  draft_begin(&draft);
  if (write_question(client, lane, now, &draft) && draft_end(&draft) == PSERVER_OK) {
    char subject[SUBJECT_ROOM];
    char reply[INBOX_ROOM + 16];
    lane->asked_at_ms = now;
    snprintf(subject, sizeof subject, "ps.%s.shard.%u.%s.outcome", client->job, shard, client->id);
    snprintf(reply, sizeof reply, "%s.outcome.%u", client->inbox, shard);
    pthread_mutex_unlock(&client->lock);
    /* What is lost with the connection is asked again. */
    publish(client, subject, reply, draft.buffer.data, draft.buffer.size);
    pthread_mutex_lock(&client->lock);
  }
  draft_release(&draft);
}

bool ask_for_outcomes(struct client *client, struct sending *sending, int64_t now) {
  for (size_t i = sending->first; i < sending->count; i++) {
    struct piece *piece = &sending->pieces[i];
    if (piece->state == PIECE_WAITING && i >= sending->next) break;
    if (piece->state != PIECE_OPEN || !is_due(piece, now)) continue;
    if (now - client->outbox.lanes[piece->shard].asked_at_ms < ASK_AGAIN_MS) continue;
    ask_shard(client, piece->shard, now);
    return true;
  }
  return false;
}
