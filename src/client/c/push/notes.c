#include "push/push.h"

#include <string.h>

/* Calls that write notes. */

/* Checks and packs the entries of notes. */

static pserver_status check_name(const pserver_note_entry *entries, size_t at) {
  const char *name = entries[at].name;
  size_t bytes = name == NULL ? 0 : strlen(name);
  bool is_valid = bytes > 0 && bytes <= PS_NOTE_NAME_BYTES_MAX && ps_is_utf8(name, bytes) &&
                  strcmp(name, "__proto__") != 0;
  if (!is_valid) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "note: expected names of 1 to %d bytes of UTF-8; received %zu bytes",
                   PS_NOTE_NAME_BYTES_MAX, bytes);
  }
  for (size_t i = 0; i < at; i++) {
    if (strcmp(entries[i].name, name) != 0) continue;
    return ps_fail(PSERVER_ERR_BAD_VALUE, "note: expected each name once; received \"%s\" again", name);
  }
  return PSERVER_OK;
}

static pserver_status check_value(const pserver_note_entry *entry) {
  switch (entry->kind) {
    case PSERVER_NOTE_FLAG:
    case PSERVER_NOTE_NUMBER:
      return PSERVER_OK;
    case PSERVER_NOTE_TEXT:
      if (entry->text != NULL && ps_is_utf8(entry->text, strlen(entry->text))) return PSERVER_OK;
      return ps_fail(PSERVER_ERR_BAD_VALUE, "note: \"%s\": expected text in UTF-8; received other bytes",
                     entry->name);
  }
  return ps_fail(PSERVER_ERR_BAD_VALUE, "note: \"%s\": expected a number, text or flag; received kind %d",
                 entry->name, (int)entry->kind);
}

/** Returns the maximum bytes of an entry in MessagePack: its texts with their headers, and a number. */
static size_t bytes_max(const pserver_note_entry *entry) {
  size_t value = 9;
  if (entry->kind == PSERVER_NOTE_TEXT) value = strlen(entry->text) + 3;
  else if (entry->kind == PSERVER_NOTE_NUMBER && ps_number_word(entry->number) != NULL) value = 10;
  return strlen(entry->name) + 2 + value;
}

/** Checks the entries of a note. BAD_VALUE, TOO_LARGE. */
static pserver_status check_note(const pserver_note_entry *entries, size_t count) {
  if (count == 0 || entries == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "note: expected at least one entry; received none");
  }
  if (count > PS_NOTE_ENTRIES_MAX) {
    return ps_fail(PSERVER_ERR_TOO_LARGE, "note: expected at most %d entries; received %zu",
                   PS_NOTE_ENTRIES_MAX, count);
  }
  size_t bytes = 3;
  for (size_t i = 0; i < count; i++) {
    pserver_status status = check_name(entries, i);
    if (status == PSERVER_OK) status = check_value(&entries[i]);
    if (status != PSERVER_OK) return status;
    bytes += bytes_max(&entries[i]);
  }
  if (bytes <= PS_NOTE_BYTES_MAX) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_TOO_LARGE, "note: expected at most %d bytes as msgpack; received up to %zu",
                 PS_NOTE_BYTES_MAX, bytes);
}

/* Writes a trainer's notes into the journal. */

pserver_status pserver_note(pserver_client *handle, const pserver_note_entry *entries, size_t count,
                            int64_t timeout_ms) {
  struct ps_call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_note", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = check_note(entries, count);
  if (status == PSERVER_OK) {
    struct ps_parameter_update update = {
        .operation = PS_UPDATE_NOTE, .note = entries, .note_count = count};
    struct ps_block_source source = {.update = &update, .shard = PS_NOTE_SHARD};
    struct ps_sending updates = {.sources = &source, .count = 1};
    status = ps_send(&call, &updates);
  }
  return ps_call_end(&call, status);
}
