/* What became of the pieces of a call, and the one error that tells it. */
#include "sending.h"

#include <inttypes.h>
#include <stdio.h>

#include "update.h"

#define PIECE_NAME_ROOM 256

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

void sending_applied(struct sending *sending) {
  sending->applied++;
  sending->left--;
}

void sending_rejected(struct sending *sending, const struct piece *piece) {
  const struct failure *last = last_failure();
  sending->left--;
  if (sending->counts_late && last->code == PSERVER_ERR_LATE) {
    sending->late++;
    return;
  }
  if (last->code == PSERVER_ERR_ALREADY_INITIALIZED && piece->update->counts_present) {
    sending->applied++;
    return;
  }
  if (sending->rejection != NULL) return;
  sending->rejection = &sending->failures[REJECTION];
  char name[PIECE_NAME_ROOM];
  name_piece(piece, name);
  set_failure(sending->rejection, last->code, "%s: %s", name, last->text);
}

void sending_unknown(struct sending *sending, const struct piece *piece) {
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
  return fail(code,
              "%s: %zu pieces, the first %s, were sent and are applied once or not at all",
              sending->end == NULL ? "the session ended" : sending->end->text, sending->unknown,
              name);
}

pserver_status sending_status(struct sending *sending) {
  if (sending->rejection != NULL) {
    if (sending->applied + sending->unknown == 0) return fail_as(sending->rejection);
    return fail(sending->rejection->code,
                "%s (other pieces of the call: %zu applied, %zu unknown, %zu not sent)",
                sending->rejection->text, sending->applied, sending->unknown, sending->unsent);
  }
  if (sending->unknown > 0) return unknown_status(sending);
  if (sending->unsent == 0) return PSERVER_OK;
  if (sending->end == NULL) return fail(PSERVER_ERR_INTERNAL, "pieces were given up without a reason");
  bool has_obstacle = sending->end->code == PSERVER_ERR_TIMEOUT && sending->obstacle != NULL;
  return fail(has_obstacle ? sending->obstacle->code : sending->end->code,
              "%s%s%s; %zu pieces were not stored, %zu were applied", sending->end->text,
              has_obstacle ? "; last: " : "", has_obstacle ? sending->obstacle->text : "",
              sending->unsent, sending->applied);
}
