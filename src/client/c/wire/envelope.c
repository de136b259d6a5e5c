#include "wire/wire.h"

#include <math.h>
#include <string.h>

/* The envelope of every message: see docs/reference/protocol.md. */

#define CRC_AT 6
#define CRC_END 10
#define ENTRIES_MAX 15

static const uint8_t header_start[CRC_END + 3] = {
    0x80, 0xa3, 'c', 'r', 'c', 0xce, 0, 0, 0, 0, 0xa1, 'v', PS_PROTOCOL_VERSION};
static const uint8_t data_key[6] = {0xa4, 'd', 'a', 't', 'a', 0xc6};

/** Appends bytes to a draft; msgpack-c calls this for everything that it packs. */
static int append(void *target, const char *bytes, size_t count) {
  struct ps_draft *draft = target;
  if (msgpack_sbuffer_write(&draft->buffer, bytes, count) != 0) draft->has_no_memory = true;
  return 0;
}

void ps_draft_begin(struct ps_draft *draft) {
  draft->entries = 2;
  draft->has_no_memory = false;
  msgpack_sbuffer_init(&draft->buffer);
  msgpack_packer_init(&draft->packer, draft, append);
  append(draft, (const char *)header_start, sizeof header_start);
}

void ps_pack_text(struct ps_draft *draft, const char *text, size_t bytes) {
  msgpack_pack_str(&draft->packer, bytes);
  msgpack_pack_str_body(&draft->packer, text, bytes);
}

void ps_pack_bytes(struct ps_draft *draft, const void *bytes, size_t count) {
  msgpack_pack_bin(&draft->packer, count);
  msgpack_pack_bin_body(&draft->packer, bytes, count);
}

void ps_pack_whole(struct ps_draft *draft, uint64_t value) {
  if (value <= UINT32_MAX) msgpack_pack_uint64(&draft->packer, value);
  else msgpack_pack_double(&draft->packer, (double)value);
}

void ps_pack_number(struct ps_draft *draft, double value) {
  bool is_whole = value >= INT32_MIN && value <= (double)UINT32_MAX && floor(value) == value;
  if (is_whole) msgpack_pack_int64(&draft->packer, (int64_t)value);
  else msgpack_pack_double(&draft->packer, isnan(value) ? (double)NAN : value);
}

void ps_pack_flag(struct ps_draft *draft, bool value) {
  if (value) msgpack_pack_true(&draft->packer);
  else msgpack_pack_false(&draft->packer);
}

void ps_pack_list(struct ps_draft *draft, size_t count) { msgpack_pack_array(&draft->packer, count); }

void ps_pack_shape(struct ps_draft *draft, const uint64_t *shape, int32_t rank) {
  ps_pack_list(draft, (size_t)rank);
  for (int32_t axis = 0; axis < rank; axis++) ps_pack_whole(draft, shape[axis]);
}

void ps_pack_map(struct ps_draft *draft, size_t count) { msgpack_pack_map(&draft->packer, count); }

void ps_pack_raw(struct ps_draft *draft, const void *bytes, size_t count) { append(draft, bytes, count); }

void ps_pack_key(struct ps_draft *draft, const char *key) { ps_pack_text(draft, key, strlen(key)); }

void ps_draft_key(struct ps_draft *draft, const char *key) {
  draft->entries += 1;
  ps_pack_key(draft, key);
}

void ps_draft_whole(struct ps_draft *draft, const char *key, uint64_t value) {
  ps_draft_key(draft, key);
  ps_pack_whole(draft, value);
}

void ps_draft_flag(struct ps_draft *draft, const char *key, bool value) {
  ps_draft_key(draft, key);
  ps_pack_flag(draft, value);
}

void ps_draft_text(struct ps_draft *draft, const char *key, const char *text) {
  ps_draft_key(draft, key);
  ps_pack_text(draft, text, strlen(text));
}

static pserver_status check_draft(struct ps_draft *draft) {
  if (draft->has_no_memory) return ps_no_memory("a message");
  if (draft->entries > ENTRIES_MAX) {
    return ps_fail(PSERVER_ERR_INTERNAL, "a message takes at most %d entries", ENTRIES_MAX);
  }
  draft->buffer.data[0] = (char)(0x80 + draft->entries);
  return PSERVER_OK;
}

static pserver_status seal_draft(struct ps_draft *draft) {
  pserver_status status = check_draft(draft);
  if (status == PSERVER_OK) ps_seal_message((uint8_t *)draft->buffer.data, ps_draft_crc(draft));
  return status;
}

pserver_status ps_draft_end(struct ps_draft *draft) { return seal_draft(draft); }

pserver_status ps_draft_end_with_data(struct ps_draft *draft, size_t data_bytes) {
  uint8_t length[4] = {(uint8_t)(data_bytes >> 24), (uint8_t)(data_bytes >> 16),
                       (uint8_t)(data_bytes >> 8), (uint8_t)data_bytes};
  draft->entries += 1;
  append(draft, (const char *)data_key, sizeof data_key);
  append(draft, (const char *)length, sizeof length);
  return check_draft(draft);
}

pserver_status ps_draft_end_and_append(struct ps_draft *draft, const void *data, size_t bytes) {
  pserver_status status = ps_draft_end_with_data(draft, bytes);
  if (status != PSERVER_OK) return status;
  append(draft, data, bytes);
  return seal_draft(draft);
}

static uint32_t crc_around(const uint8_t *bytes, size_t count) {
  return ps_crc32_update(ps_crc32_update(0, bytes, CRC_AT), bytes + CRC_END, count - CRC_END);
}

uint8_t *ps_place_column(uint8_t **at, size_t bytes) {
  uint8_t *start = *at;
  size_t padded = ps_padded_bytes(bytes);
  memset(start + bytes, 0, padded - bytes);
  *at = start + padded;
  return start;
}

uint32_t ps_draft_crc(const struct ps_draft *draft) {
  return crc_around((const uint8_t *)draft->buffer.data, draft->buffer.size);
}

void ps_seal_message(uint8_t *message, uint32_t crc) {
  for (int i = 0; i < 4; i++) message[CRC_AT + i] = (uint8_t)(crc >> (24 - 8 * i));
}

void ps_draft_release(struct ps_draft *draft) { msgpack_sbuffer_destroy(&draft->buffer); }

pserver_status ps_open_message(const uint8_t *bytes, size_t count, struct ps_message *message) {
  if (count <= CRC_END || bytes[0] < 0x82 || bytes[0] > 0x80 + ENTRIES_MAX ||
      memcmp(bytes + 1, header_start + 1, CRC_AT - 1) != 0) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE,
                   "expected a msgpack map that begins with \"crc\"; received %zu bytes that do not",
                   count);
  }
  uint32_t expected = (uint32_t)bytes[CRC_AT] << 24 | (uint32_t)bytes[CRC_AT + 1] << 16 |
                      (uint32_t)bytes[CRC_AT + 2] << 8 | bytes[CRC_AT + 3];
  uint32_t received = crc_around(bytes, count);
  if (expected != received) {
    return ps_fail(PSERVER_ERR_BAD_CHECKSUM, "checksum: the message says 0x%08x, its bytes give 0x%08x",
                   expected, received);
  }
  if (!ps_read_checked(bytes, count, &message->fields)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE,
                   "expected one msgpack map of plain values; received %zu bytes "
                   "that are not one",
                   count);
  }
  uint64_t version = 0;
  if (!ps_map_whole(&message->fields, "v", &version) || version != PS_PROTOCOL_VERSION) {
    return ps_fail(PSERVER_ERR_BAD_VERSION, "protocol version: expected %d; received another",
                   PS_PROTOCOL_VERSION);
  }
  message->data = NULL;
  message->data_bytes = 0;
  struct ps_value data;
  if (!ps_map_find(&message->fields, "data", &data)) return PSERVER_OK;
  if (data.type != PS_VALUE_BYTES) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "data: expected bytes; received another value");
  }
  if (data.content + data.content_bytes != bytes + count) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "data: expected the last entry; received more after it");
  }
  message->data = data.content;
  message->data_bytes = data.content_bytes;
  return PSERVER_OK;
}

pserver_status ps_error_in_message(const struct ps_message *message) {
  struct ps_value error;
  if (!ps_map_find(&message->fields, "error", &error)) return PSERVER_OK;
  struct ps_value code;
  char text[PS_ERROR_TEXT_BYTES];
  if (!ps_map_find(&error, "code", &code) || code.type != PS_VALUE_TEXT ||
      !ps_map_copy_text(&error, "message", text, sizeof text)) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "error: expected a code and a message; received others");
  }
  pserver_status status = ps_status_from_name((const char *)code.content, code.content_bytes);
  bool is_known = status != PSERVER_ERR_INTERNAL || ps_value_is_text(&code, "INTERNAL");
  struct ps_value details;
  if (is_known) ps_fail(status, "%s", text);
  else ps_fail(status, "%.*s: %s", (int)code.content_bytes, (const char *)code.content, text);
  if (ps_map_find(&error, "details", &details)) ps_detail_entries(&details);
  if (!is_known) ps_detail_bytes("code", code.content, code.content_bytes);
  return status;
}

bool ps_map_position(const struct ps_value *map, struct ps_position *position) {
  return ps_map_whole(map, "generation", &position->generation) &&
         ps_map_whole(map, "seq", &position->seq);
}

/** Finds the details of the error in a message; false if it has none. */
static bool find_details(const struct ps_message *message, struct ps_value *details) {
  struct ps_value error;
  return ps_map_find(&message->fields, "error", &error) && ps_map_find(&error, "details", details);
}

struct ps_position ps_expected_position(const struct ps_message *message) {
  struct ps_value details;
  struct ps_value expected;
  struct ps_position position = {0};
  if (find_details(message, &details) && ps_map_find(&details, "expected", &expected)) {
    ps_map_whole(&expected, "generation", &position.generation);
    ps_map_whole(&expected, "seq", &position.seq);
  }
  return position;
}

uint64_t ps_received_session(const struct ps_message *message) {
  struct ps_value details;
  uint64_t session = 0;
  if (find_details(message, &details)) ps_map_whole(&details, "received", &session);
  return session;
}

int64_t ps_retry_after_ms(const struct ps_message *message) {
  struct ps_value details;
  uint64_t hint_ms;
  if (!find_details(message, &details) || !ps_map_whole(&details, "retryAfterMs", &hint_ms)) return 0;
  return hint_ms < PS_RETRY_AFTER_MS_MAX ? (int64_t)hint_ms : PS_RETRY_AFTER_MS_MAX;
}
