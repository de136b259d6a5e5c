#ifndef WIRE_ENVELOPE_H
#define WIRE_ENVELOPE_H

#include <msgpack.h>
#include <pserver_errors.h>

#include "core/position.h"
#include "formats/msgpack-reader.h"

/**
 * A message that is being written: one map, `crc` first, `v` second, the tensor bytes last. Entries
 * are written between ps_draft_begin() and ps_draft_end(); text must be UTF-8. All of it is released by
 * ps_draft_release(). A draft that ran out of memory is found by ps_draft_end().
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

/** The key alone; what is packed after it with the pack_ functions is its value. */
void ps_draft_key(struct ps_draft *draft, const char *key);
void ps_pack_text(struct ps_draft *draft, const char *text, size_t bytes);
void ps_pack_bytes(struct ps_draft *draft, const void *bytes, size_t count);
void ps_pack_whole(struct ps_draft *draft, uint64_t value);
void ps_pack_number(struct ps_draft *draft, double value);
void ps_pack_flag(struct ps_draft *draft, bool value);
void ps_pack_list(struct ps_draft *draft, size_t count);
void ps_pack_shape(struct ps_draft *draft, const uint64_t *shape, int32_t rank);
void ps_pack_map(struct ps_draft *draft, size_t count);
/** A value as it is written already. */
void ps_pack_raw(struct ps_draft *draft, const void *bytes, size_t count);

/** Ends the message; seals it if it has no tensor bytes. INTERNAL if memory has run out. */
pserver_status ps_draft_end(struct ps_draft *draft);

/**
 * Ends a message that goes on with so many tensor bytes; they are not in the draft. The checksum is
 * written by draft_seal(). INTERNAL if memory has run out.
 */
pserver_status ps_draft_end_with_data(struct ps_draft *draft, size_t data_bytes);

/** Ends and seals a message with these tensor bytes. INTERNAL if memory has run out. */
pserver_status ps_draft_end_and_append(struct ps_draft *draft, const void *data, size_t bytes);

/** The checksum of the draft's bytes; goes on with ps_crc32_update() over the tensor bytes. */
uint32_t ps_draft_crc(const struct ps_draft *draft);

/** Writes a checksum into a message. */
void ps_seal_message(uint8_t *message, uint32_t crc);

void ps_draft_release(struct ps_draft *draft);

/** A message that was received: views of its bytes. */
struct ps_message {
  struct ps_value fields;
  const uint8_t *data;
  size_t data_bytes;
};

/** Reads a message. BAD_MESSAGE, BAD_CHECKSUM, BAD_VERSION. */
pserver_status ps_open_message(const uint8_t *bytes, size_t count, struct ps_message *message);

/** The error that a message carries as the last error; OK if it carries none. */
pserver_status ps_error_in_message(const struct ps_message *message);

/** The position in a map's `generation` and `seq`. False if it has none. */
bool ps_map_position(const struct ps_value *map, struct ps_position *position);

/** The position that the error in a message says was expected; what it does not say is 0. */
struct ps_position ps_expected_position(const struct ps_message *message);

/** The session that the error in a message says is over; 0 if it says none. */
uint64_t ps_received_session(const struct ps_message *message);

/** How long the error in a message says to wait before asking again, at most 5 s; 0 if it does not. */
int64_t ps_retry_after_ms(const struct ps_message *message);

#endif
