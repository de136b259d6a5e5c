#ifndef WIRE_ENVELOPE_H
#define WIRE_ENVELOPE_H

#include <msgpack.h>
#include <pserver_errors.h>

#include "core/position.h"
#include "formats/msgpack-reader.h"

/**
 * A message that is being written: a map that begins with `crc` and `v`, and ends with the tensor bytes, if
 * any. Entries are written between ps_draft_begin() and ps_draft_end(); text must be UTF-8. Release a draft
 * with ps_draft_release(). Only the functions that end a draft report that memory ran out.
 */
struct ps_draft {
  msgpack_sbuffer buffer;
  msgpack_packer packer;
  uint32_t entries;
  bool has_no_memory;
};

void ps_draft_begin(struct ps_draft *draft);
void ps_draft_whole(struct ps_draft *draft, const char *key, uint64_t value);
void ps_draft_number(struct ps_draft *draft, const char *key, double value);
void ps_draft_flag(struct ps_draft *draft, const char *key, bool value);
void ps_draft_text(struct ps_draft *draft, const char *key, const char *text);

/** Writes a key; the ps_pack_ functions then write its value. */
void ps_draft_key(struct ps_draft *draft, const char *key);
void ps_pack_text(struct ps_draft *draft, const char *text, size_t bytes);
void ps_pack_bytes(struct ps_draft *draft, const void *bytes, size_t count);
void ps_pack_whole(struct ps_draft *draft, uint64_t value);
void ps_pack_number(struct ps_draft *draft, double value);
void ps_pack_flag(struct ps_draft *draft, bool value);
void ps_pack_list(struct ps_draft *draft, size_t count);
void ps_pack_shape(struct ps_draft *draft, const uint64_t *shape, int32_t rank);
void ps_pack_map(struct ps_draft *draft, size_t count);
/** Appends a value that is encoded already. */
void ps_pack_raw(struct ps_draft *draft, const void *bytes, size_t count);

/** Ends a message without tensor bytes and writes its checksum. INTERNAL if memory has run out. */
pserver_status ps_draft_end(struct ps_draft *draft);

/**
 * Ends the draft of a message that continues with so many tensor bytes, which are not part of the draft. The
 * checksum is to be written by ps_seal_message(). INTERNAL if memory has run out.
 */
pserver_status ps_draft_end_with_data(struct ps_draft *draft, size_t data_bytes);

/** Ends a message with these tensor bytes and writes its checksum. INTERNAL if memory has run out. */
pserver_status ps_draft_end_and_append(struct ps_draft *draft, const void *data, size_t bytes);

/** Returns the checksum of the draft's bytes, to be updated with the tensor bytes by ps_crc32_update(). */
uint32_t ps_draft_crc(const struct ps_draft *draft);

/** Writes its checksum into a message. */
void ps_seal_message(uint8_t *message, uint32_t crc);

void ps_draft_release(struct ps_draft *draft);

/** A received message; everything points into its bytes. */
struct ps_message {
  struct ps_value fields;
  const uint8_t *data;
  size_t data_bytes;
};

/** Checks and reads a message. BAD_MESSAGE, BAD_CHECKSUM, BAD_VERSION. */
pserver_status ps_open_message(const uint8_t *bytes, size_t count, struct ps_message *message);

/** Makes the error in a message the last error; OK if the message has none. */
pserver_status ps_error_in_message(const struct ps_message *message);

/** Reads a position from a map's `generation` and `seq`. False if one is missing. */
bool ps_map_position(const struct ps_value *map, struct ps_position *position);

/** Returns the position that the error in a message says was expected; 0 where it says none. */
struct ps_position ps_expected_position(const struct ps_message *message);

/** Returns the session that the error in a message says is over; 0 if it says none. */
uint64_t ps_received_session(const struct ps_message *message);

/** Returns the delay in ms that the error in a message asks for before a retry, at most 5,000; 0 if none. */
int64_t ps_retry_after_ms(const struct ps_message *message);

#endif
