#ifndef PUSH_NOTE_H
#define PUSH_NOTE_H

#include <pserver.h>

#include "wire/envelope.h"

/** Limits of a note, as in src/protocol/notes.ts. */
#define PS_NOTE_BYTES_MAX 4096
#define PS_NOTE_ENTRIES_MAX 64
#define PS_NOTE_NAME_BYTES_MAX 128

/** Checks the entries of a note. BAD_VALUE, TOO_LARGE. */
pserver_status ps_check_note(const pserver_note_entry *entries, size_t count);

/** Packs checked entries as a map. */
void ps_pack_note(struct ps_draft *draft, const pserver_note_entry *entries, size_t count);

#endif
