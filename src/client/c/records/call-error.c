#include "records/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The error of a call whose updates were not all applied. */

/**
 * Returns the block that the text of a rejection is about: the only one of the record, or that of the entry that the
 * text begins with, as in `entry 17, "name" block 3: …`. NULL if the text names no entry of the batch.
 */
static const struct ps_block_source *blamed_block(const struct ps_record *record, const char *text) {
  static const char begin[] = "entry ";
  if (record->blocks == 1) return ps_first_source(record);
  if (strncmp(text, begin, strlen(begin)) != 0) return NULL;
  const char *digits = text + strlen(begin);
  if (*digits < '0' || *digits > '9') return NULL;
  unsigned long long entry = strtoull(digits, NULL, 10);
  return entry < record->blocks ? record->sources[entry] : NULL;
}

/* Makes the error of a call from the fates of its block updates. */

#define NAME_SIZE 256
/** The maximum number of blocks that an error lists, and bytes of the list. */
#define LISTED_MAX 64
#define LISTED_BYTES 3072

/** A call that is over, its records, and the trainer's id. */
struct over_call {
  const struct ps_update_call *call;
  const struct ps_record *records;
  const char *trainer;
};

static const struct ps_record *record_of(const struct over_call *over,
                                         const struct ps_block_update *update) {
  return &over->records[update->index];
}

static bool is_clock(const struct ps_block_source *source) {
  return source->update->operation == PS_UPDATE_CLOCK;
}

static bool is_note(const struct ps_block_source *source) {
  return source->update->operation == PS_UPDATE_NOTE;
}

/** Writes how an error text names a block, a clock or a note. */
static void describe_source(const struct ps_block_source *source, char name[NAME_SIZE]) {
  if (is_note(source)) {
    snprintf(name, NAME_SIZE, "note");
  } else if (is_clock(source)) {
    snprintf(name, NAME_SIZE, "end of step %" PRIu64 " in shard %u", source->step, source->shard);
  } else {
    snprintf(name, NAME_SIZE, "%s block %u", source->update->parameter->name, (unsigned)source->index);
  }
}

/** Writes how an error text names an update: by its first block. */
static void describe(const struct over_call *over, const struct ps_block_update *update,
                     char name[NAME_SIZE]) {
  const struct ps_record *record = record_of(over, update);
  describe_source(ps_first_source(record), name);
  if (record->blocks == 1) return;
  size_t used = strlen(name);
  snprintf(name + used, NAME_SIZE - used, " and %zu others of its record", record->blocks - 1);
}

/** Adds to the details which update the error is about; `block` NULL: which block of it is unknown. */
static void detail_update(const struct over_call *over, const struct ps_block_update *update,
                          const struct ps_block_source *block) {
  if (block != NULL && is_clock(block)) {
    ps_detail_whole("step", block->step);
  } else if (block != NULL && !is_note(block)) {
    ps_detail_text("parameter", block->update->parameter->name);
    ps_detail_whole("block", block->index);
  }
  ps_detail_whole("shard", update->shard);
  if (update->n > 0) ps_detail_whole("n", update->n);
  ps_detail_text("trainer", over->trainer);
}

static void append(struct ps_json *json, const struct ps_block_source *source, uint64_t n) {
  if (is_note(source)) {
    ps_json_raw(json, "{\"note\":true");
  } else if (is_clock(source)) {
    ps_json_raw(json, "{\"step\":");
    ps_json_whole(json, source->step);
  } else {
    const char *name = source->update->parameter->name;
    ps_json_raw(json, "{\"parameter\":");
    ps_json_text(json, name, strlen(name));
    ps_json_raw(json, ",\"index\":");
    ps_json_whole(json, source->index);
  }
  ps_json_raw(json, ",\"shard\":");
  ps_json_whole(json, source->shard);
  ps_json_raw(json, ",\"n\":");
  ps_json_whole(json, n);
  ps_json_raw(json, "}");
}

/** Appends the blocks of an update as far as they fit; returns the number of blocks listed so far. */
static size_t append_blocks(struct ps_json *json, const struct over_call *over,
                            const struct ps_block_update *update, size_t listed) {
  const struct ps_record *record = record_of(over, update);
  for (size_t i = 0; i < record->blocks && listed < LISTED_MAX && !json->is_full; i++) {
    size_t used = json->used;
    if (listed > 0) ps_json_raw(json, ",");
    append(json, record->sources[i], update->n);
    if (json->is_full) json->bytes[used] = '\0';
    else listed++;
  }
  return listed;
}

/** Lists the blocks with this fate, as many as fit, and their number if some are missing. */
static void detail_list(const struct over_call *over, const char *key, enum ps_fate fate, size_t count) {
  char list[LISTED_BYTES] = "[";
  struct ps_json json = {.bytes = list, .used = 1, .size = sizeof list - 1};
  size_t listed = 0;
  for (size_t i = 0; i < over->call->update_count && listed < LISTED_MAX && !json.is_full; i++) {
    const struct ps_block_update *update = &over->call->updates[i];
    if (update->fate == fate) listed = append_blocks(&json, over, update, listed);
  }
  strcat(list, "]");
  ps_detail_json(key, list);
  if (listed == count) return;
  char count_key[24];
  snprintf(count_key, sizeof count_key, "%sCount", key);
  ps_detail_whole(count_key, count);
}

/** Adds the fates of the other updates. */
static void detail_rest(const struct over_call *over) {
  detail_list(over, "applied", PS_FATE_APPLIED, over->call->applied);
  ps_detail_whole("unsent", over->call->unsent);
}

static pserver_status rejection_error(const struct over_call *over) {
  const struct ps_update_call *call = over->call;
  const struct ps_record *record = record_of(over, call->rejected);
  const struct ps_block_source *block = blamed_block(record, call->rejection->text);
  char name[NAME_SIZE];
  if (block == NULL) describe(over, call->rejected, name);
  else describe_source(block, name);
  ps_fail_as_core(call->rejection);
  ps_fail_prefixed("%s: ", name);
  detail_update(over, call->rejected, block);
  if (call->applied + call->unknown == 0) return call->rejection->code;
  ps_fail_reworded(call->rejection->code,
                   "%s (other updates of the call: %zu applied, %zu unknown, %zu not sent)",
                   ps_last_error()->text, call->applied, call->unknown, call->unsent);
  detail_rest(over);
  detail_list(over, "unknown", PS_FATE_UNKNOWN, call->unknown);
  return call->rejection->code;
}

static const struct ps_block_update *first_unknown(const struct ps_update_call *call) {
  const struct ps_block_update *update = call->updates;
  while (update->fate != PS_FATE_UNKNOWN) update++;
  return update;
}

static pserver_status unknown_error(const struct over_call *over) {
  const struct ps_update_call *call = over->call;
  const struct ps_failure *end = call->end;
  char name[NAME_SIZE];
  describe(over, first_unknown(call), name);
  bool is_timeout = end == NULL || end->code == PSERVER_ERR_TIMEOUT;
  ps_fail(is_timeout ? PSERVER_ERR_OUTCOME_UNKNOWN : end->code,
          "%s: %zu block updates, the first %s, were sent and are applied once or not at all",
          end == NULL ? "the session ended" : end->text, call->unknown, name);
  detail_list(over, "unknown", PS_FATE_UNKNOWN, call->unknown);
  detail_rest(over);
  return ps_detail_text("trainer", over->trainer);
}

static pserver_status unsent_error(const struct over_call *over) {
  const struct ps_update_call *call = over->call;
  const struct ps_failure *end = call->end;
  if (end == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "block updates were given up without a reason");
  bool has_obstacle = end->code == PSERVER_ERR_TIMEOUT && call->obstacle != NULL;
  const struct ps_failure *reason = has_obstacle ? call->obstacle : end;
  ps_fail_as_core(reason);
  ps_fail_reworded(reason->code, "%s%s%s; %zu block updates were not stored, %zu were applied", end->text,
                   has_obstacle ? "; last: " : "", has_obstacle ? reason->text : "", call->unsent,
                   call->applied);
  detail_rest(over);
  return reason->code;
}

pserver_status ps_call_error(const struct ps_update_call *call, const struct ps_record *records,
                             const char *trainer) {
  struct over_call over = {call, records, trainer};
  if (call->rejection != NULL) return rejection_error(&over);
  if (call->unknown > 0) return unknown_error(&over);
  return call->unsent > 0 ? unsent_error(&over) : PSERVER_OK;
}
