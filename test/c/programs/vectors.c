/* Compares the library's inner parts with the vectors that every implementation shares. */
#include <string.h>

#include "errors/errors.h"
#include "expect.h"
#include "pserver.h"
#include "wire/wire.h"
/* Tables of the types above. */
#include "vectors.h"

#define COUNT(table) (sizeof table / sizeof table[0])

/** Bytes of hexadecimal text, to be freed; never NULL. */
static uint8_t *from_hex(const char *hex, size_t *count) {
  *count = strlen(hex) / 2;
  uint8_t *bytes = malloc(*count + 1);
  for (size_t i = 0; i < *count; i++) {
    char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
    bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
  }
  return bytes;
}

static void check_names(void) {
  char token[PS_TOKEN_SIZE];
  for (size_t i = 0; i < COUNT(names); i++) {
    EXPECT_OK(ps_escape_name(names[i].name, names[i].bytes, token));
    EXPECT(strcmp(token, names[i].token) == 0);
  }
  for (size_t i = 0; i < COUNT(jobs); i++) {
    EXPECT((ps_check_job_name(jobs[i].job) == PSERVER_OK) == jobs[i].is_valid);
  }
}

static void check_codes(void) {
  for (size_t i = 0; i < COUNT(codes); i++) {
    EXPECT(ps_reaction_to(codes[i].status) == codes[i].reaction);
    EXPECT(ps_reaction_to_rejection(codes[i].status) == codes[i].rejection);
  }
}

static void check_pair(pserver_encoding encoding, const char *wide_hex, const char *narrow_hex,
                       bool encodes) {
  size_t wide_count;
  size_t narrow_count;
  uint8_t *wide = from_hex(wide_hex, &wide_count);
  uint8_t *narrow = from_hex(narrow_hex, &narrow_count);
  uint8_t result[4];
  EXPECT(wide_count == 4 && narrow_count == 2);
  if (encodes) ps_encode_halves(encoding, wide, 1, result);
  else ps_decode_halves(encoding, narrow, 1, result);
  EXPECT(memcmp(result, encodes ? narrow : wide, encodes ? 2 : 4) == 0);
  free(wide);
  free(narrow);
}

static void check_encodings(void) {
  for (size_t i = 0; i < COUNT(encoded); i++) {
    check_pair(PSERVER_ENCODING_BFLOAT16, encoded[i].float32, encoded[i].bfloat16, true);
    check_pair(PSERVER_ENCODING_FLOAT16, encoded[i].float32, encoded[i].float16, true);
  }
  for (size_t i = 0; i < COUNT(decoded); i++) {
    check_pair(PSERVER_ENCODING_BFLOAT16, decoded[i].bfloat16, decoded[i].hex, false);
    check_pair(PSERVER_ENCODING_FLOAT16, decoded[i].float16, decoded[i].hex, false);
  }
}

/** Checks an entry of some groups as it is encoded. */
static void check_encoded_groups(pserver_encoding encoding, const char *wide_hex, const char *narrow_hex) {
  size_t wide_count;
  size_t narrow_count;
  uint8_t *wide = from_hex(wide_hex, &wide_count);
  uint8_t *narrow = from_hex(narrow_hex, &narrow_count);
  size_t elements = wide_count / sizeof(float);
  uint8_t *result = malloc(narrow_count + 1);
  uint8_t *scale = result;
  uint8_t *code = result + ps_scale_bytes(elements);
  EXPECT(narrow_count == ps_encoded_bytes(PSERVER_FLOAT32, encoding, elements));
  for (size_t start = 0; start < elements; start += PS_GROUP_ELEMENTS, scale += sizeof(float)) {
    float group[PS_GROUP_ELEMENTS] = {0};
    size_t count = elements - start < PS_GROUP_ELEMENTS ? elements - start : PS_GROUP_ELEMENTS;
    memcpy(group, wide + start * sizeof(float), count * sizeof(float));
    ps_encode_group(encoding, group, count, scale, code);
    code += ps_code_bytes(encoding, count);
  }
  EXPECT(memcmp(result, narrow, narrow_count) == 0);
  free(result);
  free(wide);
  free(narrow);
}

static void check_groups(void) {
  for (size_t i = 0; i < COUNT(groups); i++) {
    check_encoded_groups(PSERVER_ENCODING_INT8, groups[i].float32, groups[i].int8);
    check_encoded_groups(PSERVER_ENCODING_E3M0, groups[i].float32, groups[i].e3m0);
  }
  for (size_t i = 0; i < COUNT(groups_read); i++) {
    size_t count;
    size_t elements = groups_read[i].elements;
    uint8_t *bytes = from_hex(groups_read[i].hex, &count);
    float *result = malloc(elements * sizeof(float));
    EXPECT(count == ps_encoded_bytes(PSERVER_FLOAT32, groups_read[i].encoding, elements));
    bool is_read = ps_decode_elements(groups_read[i].encoding, bytes, elements, result);
    EXPECT(is_read == (groups_read[i].float32 != NULL));
    if (is_read) {
      uint8_t *wide = from_hex(groups_read[i].float32, &count);
      EXPECT(memcmp(result, wide, elements * sizeof(float)) == 0);
      free(wide);
    }
    free(result);
    free(bytes);
  }
}

static void check_streams(void) {
  for (size_t i = 0; i < COUNT(streams); i++) {
    unsigned shard;
    uint64_t generation;
    bool is_valid = ps_parse_journal_stream("mnist", streams[i].stream, &shard, &generation);
    EXPECT(is_valid == streams[i].is_valid);
    EXPECT(!is_valid || (shard == streams[i].shard && generation == streams[i].generation));
  }
}

static void check_acks(void) {
  EXPECT(nats_Open(-1) == NATS_OK);
  for (size_t i = 0; i < COUNT(acks); i++) {
    struct ps_journal_ack ack = {0};
    natsMsg *message = NULL;
    EXPECT(natsMsg_Create(&message, "s", NULL, acks[i].json, (int)strlen(acks[i].json)) == NATS_OK);
    ps_read_journal_ack("mnist", message, &ack);
    natsMsg_Destroy(message);
    if ((int)ack.kind != acks[i].kind) fprintf(stderr, "%s\n", acks[i].json);
    EXPECT((int)ack.kind == acks[i].kind);
    if (ack.kind != PS_ACK_STORED) {
      EXPECT(ps_last_error()->code == acks[i].code);
      if (acks[i].text != NULL) EXPECT(strcmp(ps_last_error()->text, acks[i].text) == 0);
      continue;
    }
    EXPECT(ack.shard == acks[i].shard && ack.position.generation == acks[i].generation);
    EXPECT(ack.position.seq == acks[i].seq);
  }
  nats_Close();
}

/** Packs a value that was read, with the functions that pack messages. */
static void pack_again(struct ps_draft *draft, const struct ps_value *value) {
  /* Entries of a map are read one after the other, as those of a list. */
  struct ps_value list = *value;
  struct ps_value entry;
  const uint8_t *at = NULL;
  list.type = PS_VALUE_LIST;
  switch (value->type) {
    case PS_VALUE_NIL:
      msgpack_pack_nil(&draft->packer);
      break;
    case PS_VALUE_BOOLEAN:
      if (value->boolean) msgpack_pack_true(&draft->packer);
      else msgpack_pack_false(&draft->packer);
      break;
    case PS_VALUE_NUMBER:
      ps_pack_number(draft, value->number);
      break;
    case PS_VALUE_TEXT:
      ps_pack_text(draft, (const char *)value->content, value->content_bytes);
      break;
    case PS_VALUE_BYTES:
      ps_pack_bytes(draft, value->content, value->content_bytes);
      break;
    case PS_VALUE_LIST:
    case PS_VALUE_MAP:
      if (value->type == PS_VALUE_LIST) ps_pack_list(draft, value->count);
      else ps_pack_map(draft, value->count);
      while (ps_list_next(&list, &at, &entry)) pack_again(draft, &entry);
      break;
  }
}

/** Packs a message again, entry by entry. */
static void write_again(struct ps_draft *draft, const struct ps_message *message) {
  struct ps_value list = message->fields;
  struct ps_value key;
  struct ps_value entry;
  const uint8_t *at = NULL;
  char name[64];
  list.type = PS_VALUE_LIST;
  while (ps_list_next(&list, &at, &key) && ps_list_next(&list, &at, &entry)) {
    snprintf(name, sizeof name, "%.*s", (int)key.content_bytes, (const char *)key.content);
    if (strcmp(name, "crc") == 0 || strcmp(name, "v") == 0 || strcmp(name, "data") == 0) continue;
    ps_draft_key(draft, name);
    pack_again(draft, &entry);
  }
}

static void check_messages(void) {
  EXPECT(COUNT(messages) > 20);
  for (size_t i = 0; i < COUNT(messages); i++) {
    size_t count;
    uint8_t *bytes = from_hex(messages[i].hex, &count);
    struct ps_message message;
    struct ps_draft draft;
    EXPECT_OK(ps_open_message(bytes, count, &message));
    ps_draft_begin(&draft);
    write_again(&draft, &message);
    if (message.data == NULL) EXPECT_OK(ps_draft_end(&draft));
    else EXPECT_OK(ps_draft_end_and_append(&draft, message.data, message.data_bytes));
    if (draft.buffer.size != count || memcmp(draft.buffer.data, bytes, count) != 0) {
      fprintf(stderr, "%s\n", messages[i].what);
    }
    EXPECT(draft.buffer.size == count && memcmp(draft.buffer.data, bytes, count) == 0);
    ps_draft_release(&draft);
    free(bytes);
  }
}

static void check_refused(void) {
  for (size_t i = 0; i < COUNT(refused); i++) {
    size_t count;
    uint8_t *bytes = from_hex(refused[i].hex, &count);
    struct ps_message message;
    pserver_status status = ps_open_message(bytes, count, &message);
    if (status != refused[i].code) fprintf(stderr, "%s: %d\n", refused[i].what, (int)status);
    EXPECT(status == refused[i].code);
    free(bytes);
  }
}

static void check_written(void) {
  for (size_t i = 0; i < COUNT(written); i++) {
    size_t count;
    uint8_t *bytes = from_hex(written[i].hex, &count);
    struct ps_value value;
    struct ps_draft draft;
    EXPECT(ps_read_checked(bytes, count, &value));
    ps_draft_begin(&draft);
    size_t before = draft.buffer.size;
    pack_again(&draft, &value);
    EXPECT(draft.buffer.size - before == count);
    EXPECT(memcmp(draft.buffer.data + before, bytes, count) == 0);
    ps_draft_release(&draft);
    free(bytes);
  }
}

static void check_crc(void) {
  uint8_t bytes[1100];
  uint32_t state = 1;
  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (uint8_t)((state = state * 1103515245 + 12345) >> 16);
  EXPECT(ps_crc32_update(0, "123456789", 9) == 0xcbf43926);
  for (size_t start = 0; start < 20; start++) {
    for (size_t count = 0; count < 1080; count++) {
      uint32_t before = state * (uint32_t)count;
      EXPECT(ps_crc32_update(before, bytes + start, count) ==
             ps_crc32_by_table(before, bytes + start, count));
    }
  }
}

static bool reads(const char *json, struct ps_pub_ack *ack) {
  return ps_read_pub_ack(json, strlen(json), ack);
}

static void check_pub_acks(void) {
  struct ps_pub_ack ack;
  EXPECT(
      reads("{\"stream\":\"PS_j_0\",\"seq\":900, \"duplicate\": true,\"x\":[1,{\"y\":\"}\"}]}", &ack));
  EXPECT(strcmp(ack.stream, "PS_j_0") == 0 && ack.seq == 900 && !ack.is_error);
  EXPECT(
      reads("{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"a \\\"b\\\"\"},"
            "\"stream\":\"\",\"seq\":0}",
            &ack));
  EXPECT(ack.is_error && ack.error_code == 10077 && strcmp(ack.description, "a \"b\"") == 0);
  const char *const wrong[] = {"",
                               "{",
                               "[]",
                               "{}",
                               "{\"stream\":\"x\"}",
                               "{\"seq\":1}",
                               "+OK",
                               "{\"stream\":\"x\",\"seq\":-1}",
                               "{\"stream\":\"x\",\"seq\":1}x",
                               "{\"stream\":\"x\",\"seq\":99999999999999999999}",
                               "{\"stream\":\"\\u00",
                               "{\"a\":[[[[[[[[[[[[[[1]]]]]]]]]]]]]]}"};
  for (size_t i = 0; i < COUNT(wrong); i++) EXPECT(!reads(wrong[i], &ack));
}

/** Tensors of one case are divided as the vectors say, whatever their order. */
static void check_balanced_case(size_t first, size_t count) {
  pserver_balanced_tensor tensors[16];
  EXPECT(count <= COUNT(tensors));
  for (size_t turn = 0; turn < 2; turn++) {
    for (size_t i = 0; i < count; i++) {
      size_t row = first + (turn == 0 ? i : count - 1 - i);
      tensors[i] = (pserver_balanced_tensor){balanced[row].name, balanced[row].bytes, balanced[row].is_embedding, ""};
    }
    EXPECT_OK(pserver_balance_fragments(tensors, count, balanced[first].fragments));
    for (size_t i = 0; i < count; i++) {
      size_t row = first + (turn == 0 ? i : count - 1 - i);
      EXPECT(strcmp(tensors[i].fragment, balanced[row].fragment) == 0);
    }
  }
}

static void check_balanced(void) {
  size_t first = 0;
  for (size_t i = 1; i <= COUNT(balanced); i++) {
    if (i < COUNT(balanced) && balanced[i].place == balanced[first].place) continue;
    check_balanced_case(first, i - first);
    first = i;
  }
  /* A NUL, C0 80 in names, comes before all other bytes. */
  pserver_balanced_tensor zeros[] = {{"a\x01", 1, false, ""}, {"a\xc0\x80", 1, false, ""}};
  EXPECT_OK(pserver_balance_fragments(zeros, 2, 2));
  EXPECT(strcmp(zeros[1].fragment, "f0") == 0);
  pserver_balanced_tensor twice[] = {{"w", 2, false, ""}, {"w", 1, true, ""}};
  EXPECT_ERROR(BAD_VALUE, pserver_balance_fragments(twice, 2, 2));
  EXPECT_ERROR(BAD_VALUE, pserver_balance_fragments(twice, 1, 0));
  twice[0].name = NULL;
  EXPECT_ERROR(BAD_VALUE, pserver_balance_fragments(twice, 1, 1));
}

int main(void) {
  check_names();
  check_codes();
  check_encodings();
  check_groups();
  check_streams();
  check_acks();
  check_messages();
  check_refused();
  check_written();
  check_crc();
  check_pub_acks();
  check_balanced();
  return 0;
}
