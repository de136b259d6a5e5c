/* What became of the pieces of a call, and the one error that tells it. */
#include "sending.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "client.h"
#include "details.h"
#include "json.h"
#include "update.h"

#define PIECE_NAME_ROOM 256
/** Pieces that an error names at most, and bytes of their list. */
#define LISTED_MAX 64
#define LISTED_BYTES 3072

enum { REJECTION, OBSTACLE, END };

bool piece_is_stored_nowhere(const struct piece *piece) {
  return piece->stored.generation == 0 && piece->sends == piece->refusals;
}

/** A piece as errors name it. */
static void name_piece(const struct piece *piece, char name[PIECE_NAME_ROOM]) {
  if (piece->update->operation == UPDATE_CLOCK) {
    snprintf(name, PIECE_NAME_ROOM, "step %" PRIu64 " in shard %u", piece->update->step, piece->shard);
  } else {
    snprintf(name, PIECE_NAME_ROOM, "%s block %u", piece->update->parameter->name,
             (unsigned)piece->index);
  }
}

/** What piece an error is about. */
static void tell_piece(const struct piece *piece) {
  bool is_clock = piece->update->operation == UPDATE_CLOCK;
  if (is_clock) detail_whole("step", piece->update->step);
  else detail_text("parameter", piece->update->parameter->name);
  if (!is_clock) detail_whole("block", piece->index);
  detail_whole("shard", piece->shard);
  if (piece->n > 0) detail_whole("n", piece->n);
  detail_text("trainer", piece->sending->call->client->trainer);
}

static void append_piece(struct json *json, const struct piece *piece) {
  bool is_clock = piece->update->operation == UPDATE_CLOCK;
  json_raw(json, is_clock ? "{\"step\":" : "{\"parameter\":");
  const char *name = is_clock ? NULL : piece->update->parameter->name;
  if (is_clock) json_whole(json, piece->update->step);
  else json_text(json, name, strlen(name));
  if (!is_clock) json_raw(json, ",\"index\":");
  if (!is_clock) json_whole(json, piece->index);
  json_raw(json, ",\"shard\":");
  json_whole(json, piece->shard);
  json_raw(json, ",\"n\":");
  json_whole(json, piece->n);
  json_raw(json, "}");
}

/** The pieces with this fate: as many names as there is room for, and how many they are if that is not all. */
static void tell_pieces(const struct sending *sending, const char *key, enum piece_fate fate,
                        size_t count) {
  char list[LISTED_BYTES] = "[";
  struct json json = {.bytes = list, .used = 1, .room = sizeof list - 1};
  size_t listed = 0;
  for (size_t i = 0; i < sending->count && listed < LISTED_MAX; i++) {
    if (sending->pieces[i].fate != fate) continue;
    size_t used = json.used;
    if (listed > 0) json_raw(&json, ",");
    append_piece(&json, &sending->pieces[i]);
    if (json.is_full) {
      list[used] = '\0';
      break;
    }
    listed++;
  }
  strcat(list, "]");
  detail_json(key, list);
  if (listed == count) return;
  char count_key[24];
  snprintf(count_key, sizeof count_key, "%sCount", key);
  detail_whole(count_key, count);
}

/** What became of the others. */
static void tell_rest(const struct sending *sending) {
  tell_pieces(sending, "applied", FATE_APPLIED, sending->applied);
  detail_whole("unsent", sending->unsent);
}

void sending_applied(struct sending *sending, struct piece *piece) {
  piece->fate = FATE_APPLIED;
  sending->applied++;
  sending->left--;
}

void sending_rejected(struct sending *sending, struct piece *piece) {
  const struct failure *last = last_failure();
  enum ps_rejection reaction = ps_reaction_to_rejection(last->code);
  sending->left--;
  if (reaction == PS_REJECTION_COUNT_LATE && sending->counts_late) {
    sending->late++;
    return;
  }
  if (reaction == PS_REJECTION_COUNT_PRESENT && piece->update->counts_present) {
    piece->fate = FATE_APPLIED;
    sending->applied++;
    return;
  }
  if (sending->rejection != NULL) return;
  sending->rejection = &sending->failures[REJECTION];
  char name[PIECE_NAME_ROOM];
  name_piece(piece, name);
  fail_about("%s: ", name);
  tell_piece(piece);
  *sending->rejection = *last;
}

void sending_unknown(struct sending *sending, struct piece *piece) {
  piece->fate = FATE_UNKNOWN;
  if (sending->unknown++ == 0) sending->first_unknown = piece;
  sending->left--;
}

void sending_unsent(struct sending *sending, size_t count) {
  sending->unsent += count;
  sending->left -= count;
}

void sending_ended(struct sending *sending) {
  if (sending->end != NULL) return;
  sending->end = &sending->failures[END];
  *sending->end = *last_failure();
}

static pserver_status unknown_status(struct sending *sending) {
  char name[PIECE_NAME_ROOM];
  name_piece(sending->first_unknown, name);
  pserver_status code = sending->end == NULL || sending->end->code == PSERVER_ERR_TIMEOUT
                            ? PSERVER_ERR_OUTCOME_UNKNOWN
                            : sending->end->code;
  fail(code, "%s: %zu pieces, the first %s, were sent and are applied once or not at all",
       sending->end == NULL ? "the session ended" : sending->end->text, sending->unknown, name);
  tell_pieces(sending, "pieces", FATE_UNKNOWN, sending->unknown);
  tell_rest(sending);
  return detail_text("trainer", sending->call->client->trainer);
}

pserver_status sending_status(struct sending *sending) {
  if (sending->rejection != NULL) {
    if (sending->applied + sending->unknown == 0) return fail_as(sending->rejection);
    fail_as(sending->rejection);
    fail_again(sending->rejection->code,
               "%s (other pieces of the call: %zu applied, %zu unknown, %zu not sent)",
               sending->rejection->text, sending->applied, sending->unknown, sending->unsent);
    tell_rest(sending);
    tell_pieces(sending, "unknown", FATE_UNKNOWN, sending->unknown);
    return sending->rejection->code;
  }
  if (sending->unknown > 0) return unknown_status(sending);
  if (sending->unsent == 0) return PSERVER_OK;
  if (sending->end == NULL) return fail(PSERVER_ERR_INTERNAL, "pieces were given up without a reason");
  bool has_obstacle = sending->end->code == PSERVER_ERR_TIMEOUT && sending->obstacle != NULL;
  const struct failure *reason = has_obstacle ? sending->obstacle : sending->end;
  fail_as(reason);
  fail_again(reason->code, "%s%s%s; %zu pieces were not stored, %zu were applied", sending->end->text,
             has_obstacle ? "; last: " : "", has_obstacle ? sending->obstacle->text : "",
             sending->unsent, sending->applied);
  tell_rest(sending);
  return reason->code;
}
