#include "errors/errors.h"
#include "push/push.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Updates of parameters: checks of their tensors, cutting them into blocks, and writing their elements. */

/** Returns the name of an operation on blocks in messages. */
static const char *ps_verb_of(enum ps_operation operation) {
  if (operation == PS_UPDATE_INIT) return "init";
  return operation == PS_UPDATE_SET ? "set" : "push";
}

pserver_status ps_fail_length(const char *name, uint64_t expected, uint64_t received) {
  ps_fail(PSERVER_ERR_BAD_LENGTH, "\"%s\": expected %" PRIu64 " bytes; received %" PRIu64, name,
          expected, received);
  ps_detail_text("parameter", name);
  return ps_detail_numbers(expected, received);
}

pserver_status ps_check_tensor(const char *name, const pserver_tensor *tensor) {
  if (name == NULL) return ps_fail(PSERVER_ERR_BAD_NAME, "expected a name; received NULL");
  if (tensor == NULL)
    return ps_fail(PSERVER_ERR_BAD_VALUE, "\"%s\": expected a tensor; received NULL", name);
  if (ps_dtype_name(tensor->dtype) == NULL) {
    ps_fail(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected an element type; received %d", name,
            (int)tensor->dtype);
    ps_detail_text("parameter", name);
    ps_detail_text("expected", "an element type");
    return ps_detail_signed("received", (int)tensor->dtype);
  }
  if (tensor->data == NULL && tensor->bytes > 0) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "\"%s\": expected data; received NULL", name);
  }
  if (tensor->rank == PSERVER_RANK_OF_PARAMETER) return PSERVER_OK;
  if (tensor->rank < 0 || tensor->rank > PSERVER_RANK_MAX) {
    ps_fail(PSERVER_ERR_BAD_SHAPE, "\"%s\": expected at most %d dimensions; received %d", name,
            PSERVER_RANK_MAX, (int)tensor->rank);
    ps_detail_text("parameter", name);
    ps_detail_text("expected", "at most 32 dimensions");
    return ps_detail_signed("received", tensor->rank);
  }
  return PSERVER_OK;
}

static bool has_shape(const pserver_tensor *tensor, const uint64_t *shape, int32_t rank) {
  if (tensor->rank == PSERVER_RANK_OF_PARAMETER) return true;
  if (tensor->rank != rank) return false;
  for (int32_t axis = 0; axis < rank; axis++) {
    if (tensor->shape[axis] != shape[axis]) return false;
  }
  return true;
}

/** Bytes of the text of a shape; a longer one is cut. */
enum { SHAPE_TEXT_BYTES = 128 };

/** Writes the sizes, separated by commas; a long text is cut and ends with three dots. */
static void write_shape(char text[SHAPE_TEXT_BYTES], const uint64_t *shape, int32_t rank) {
  static const char cut[] = "...";
  size_t used = 0;
  text[0] = '\0';
  for (int32_t axis = 0; axis < rank; axis++) {
    size_t left = SHAPE_TEXT_BYTES - sizeof cut - used;
    int size = snprintf(text + used, left, "%s%" PRIu64, axis > 0 ? "," : "", shape[axis]);
    if (size < 0 || (size_t)size >= left) {
      memcpy(text + used, cut, sizeof cut);
      return;
    }
    used += (size_t)size;
  }
}

pserver_status ps_fail_shape(const char *name, const char *expected, const pserver_tensor *received) {
  char received_shape[SHAPE_TEXT_BYTES];
  write_shape(received_shape, received->shape, received->rank);
  ps_fail(PSERVER_ERR_BAD_SHAPE, "\"%s\": shape: expected %s; received [%s]", name, expected,
          received_shape);
  ps_detail_text("parameter", name);
  ps_detail_text("expected", expected);
  return ps_detail_shape("received", received->shape, received->rank);
}

pserver_status ps_fit_tensor(const struct ps_parameter *parameter, const pserver_tensor *tensor,
                             const uint64_t *shape, int32_t rank, uint64_t elements) {
  pserver_status status = ps_check_tensor(parameter->name, tensor);
  if (status != PSERVER_OK) return status;
  if (tensor->dtype != parameter->dtype) {
    ps_fail(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected %s; received %s", parameter->name,
            ps_dtype_name(parameter->dtype), ps_dtype_name(tensor->dtype));
    return ps_detail_mismatch(parameter->name, ps_dtype_name(parameter->dtype),
                              ps_dtype_name(tensor->dtype));
  }
  if (!has_shape(tensor, shape, rank)) {
    char expected_shape[SHAPE_TEXT_BYTES];
    char received_shape[SHAPE_TEXT_BYTES];
    write_shape(expected_shape, shape, rank);
    write_shape(received_shape, tensor->shape, tensor->rank);
    ps_fail(PSERVER_ERR_BAD_SHAPE, "\"%s\": expected shape [%s]; received [%s]", parameter->name,
            expected_shape, received_shape);
    ps_detail_text("parameter", parameter->name);
    ps_detail_shape("expected", shape, rank);
    return ps_detail_shape("received", tensor->shape, tensor->rank);
  }
  uint64_t expected = elements * ps_dtype_bytes(parameter->dtype);
  return tensor->bytes == expected ? PSERVER_OK : ps_fail_length(parameter->name, expected, tensor->bytes);
}

pserver_status ps_check_finite(const struct ps_parameter *parameter, pserver_encoding encoding,
                               const void *data, uint64_t elements) {
  pserver_dtype dtype = parameter->dtype;
  if (parameter->allows_non_finite || ps_stays_finite(dtype, encoding, data, elements)) {
    return PSERVER_OK;
  }
  uint64_t index;
  double received = ps_first_non_finite(dtype, encoding, data, &index);
  bool is_encoded = isfinite(received);
  ps_fail(PSERVER_ERR_NON_FINITE,
          "\"%s\": expected finite values; received %g%s%s%s as element %" PRIu64
          ". Declare it with allowNonFinite to take them",
          parameter->name, received, is_encoded ? ", an infinity as " : "",
          is_encoded ? ps_encoding_name(encoding) : "", is_encoded ? "," : "", index);
  ps_detail_text("parameter", parameter->name);
  ps_detail_text("expected", "finite values");
  ps_detail_number("received", received);
  return ps_detail_whole("index", index);
}

void ps_cut_into_blocks(const struct ps_parameter_update *update, struct ps_update_source *sources) {
  const struct ps_parameter *parameter = update->parameter;
  const struct ps_layout *layout = &parameter->layout;
  size_t element = ps_dtype_bytes(parameter->dtype);
  for (uint64_t i = 0; i < layout->blocks; i++) {
    uint64_t start = i * layout->block_elements;
    uint64_t elements = ps_block_elements(parameter, i);
    size_t data_bytes = elements * ps_encoded_bytes(parameter->dtype, update->encoding);
    sources[i] = (struct ps_update_source){
        .update = update,
        .index = (uint32_t)i,
        .shard = (unsigned)((layout->first_shard + i) % layout->shards),
        .values = update->data + start * element,
        .start = start,
        .elements = elements,
        .data_bytes = data_bytes,
        .entry_bytes = data_bytes,
    };
  }
}

void ps_write_elements(const struct ps_parameter_update *update, const uint8_t *from, uint64_t elements,
                       uint8_t *target) {
  if (update->encoding == PSERVER_AS_IS) {
    memcpy(target, from, elements * ps_dtype_bytes(update->parameter->dtype));
  } else {
    ps_encode_elements(update->encoding, from, elements, target);
  }
}

/* Writes journal records as messages. */

void ps_record_subject(const struct ps_identity *identity, const struct ps_update_record *record,
                       char subject[PS_SUBJECT_SIZE]) {
  const struct ps_update_source *source = record->first;
  enum ps_operation operation = source->update->operation;
  if (ps_is_blockless(operation) || record->blocks > 1) {
    const char *verb = "batch";
    if (operation == PS_UPDATE_CLOCK) verb = "clock";
    if (operation == PS_UPDATE_NOTE) verb = "note";
    snprintf(subject, PS_SUBJECT_SIZE, "ps.%s.log.%u.trainer.%s.%s", identity->job, source->shard,
             identity->id, verb);
    return;
  }
  snprintf(subject, PS_SUBJECT_SIZE, "ps.%s.log.%u.trainer.%s.%s.%s.%u", identity->job, source->shard,
           identity->id, ps_verb_of(operation), source->update->parameter->token,
           (unsigned)source->index);
}

static void write_init_entries(struct ps_draft *draft, const struct ps_update_source *source) {
  const struct ps_parameter *parameter = source->update->parameter;
  ps_draft_key(draft, "shape");
  ps_pack_shape(draft, parameter->shape, parameter->rank);
  ps_draft_whole(draft, "start", source->start);
  ps_draft_whole(draft, "count", source->elements);
  ps_draft_key(draft, "config");
  ps_pack_raw(draft, parameter->config, parameter->config_bytes);
}

uint64_t ps_seen_version(const struct ps_update_source *source) {
  const struct ps_parameter_update *update = source->update;
  /* Gradients of a step need no version: a step defines what they were made from. */
  if (update->seen == NULL || source->step > 0) return 0;
  return __atomic_load_n(&update->seen[source->index], __ATOMIC_RELAXED);
}

static void write_push_entries(struct ps_draft *draft, const struct ps_update_source *source) {
  const struct ps_parameter_update *update = source->update;
  const char *encoding = ps_encoding_name(update->encoding);
  if (encoding != NULL) ps_draft_text(draft, "encoding", encoding);
  if (update->has_norm) ps_draft_number(draft, "norm", update->norm);
  if (update->operation == PS_UPDATE_MIX) {
    ps_draft_text(draft, "op", "mix");
    ps_draft_number(draft, "alpha", update->alpha);
    ps_draft_number(draft, "beta", update->beta);
  } else {
    ps_draft_text(draft, "op", "grad");
    if (update->has_rate) ps_draft_number(draft, "lr", update->rate);
    if (source->step > 0) ps_draft_whole(draft, "step", source->step);
    if (source->seen > 0) ps_draft_whole(draft, "seen", source->seen);
  }
  if (source->slice != NULL && !source->slice->is_whole_block) ps_write_part_entry(draft, source->slice);
}

/** Writes the entries of a record of one block, a clock or a note that follow those of every record. */
static void write_single_entries(struct ps_draft *draft, const struct ps_update_source *source) {
  const struct ps_parameter *parameter = source->update->parameter;
  if (source->update->operation == PS_UPDATE_CLOCK) {
    ps_draft_whole(draft, "step", source->step);
    return;
  }
  if (source->update->operation == PS_UPDATE_NOTE) {
    ps_draft_key(draft, "note");
    ps_pack_note(draft, source->update->note, source->update->note_count);
    return;
  }
  ps_draft_whole(draft, "epoch", parameter->epoch);
  ps_draft_text(draft, "dtype", ps_dtype_name(parameter->dtype));
  if (source->update->operation == PS_UPDATE_INIT) write_init_entries(draft, source);
  else if (source->update->operation != PS_UPDATE_SET) write_push_entries(draft, source);
}

/** Writes the entries of a record, without the envelope and the tensor bytes. */
static void write_entries(struct ps_draft *draft, const struct ps_identity *identity,
                          const struct ps_update_record *record, const struct ps_record_head *head) {
  char reply[PS_REPLY_SIZE];
  snprintf(reply, sizeof reply, "%s.applied", identity->inbox);
  ps_draft_whole(draft, "session", head->session);
  ps_draft_whole(draft, "n", head->n);
  ps_draft_whole(draft, "done", head->done);
  ps_draft_text(draft, "reply", reply);
  if (record->blocks > 1) ps_write_batch_entries(draft, record);
  else write_single_entries(draft, record->first);
}

/** Writes elements in the update's encoding; returns `crc`, the checksum of the bytes before, updated with
 * them. */
static uint32_t copy_elements(uint8_t *target, const uint8_t *from, uint64_t elements,
                              const struct ps_parameter_update *update, uint32_t crc) {
  size_t from_bytes = ps_dtype_bytes(update->parameter->dtype);
  size_t to_bytes = ps_encoded_bytes(update->parameter->dtype, update->encoding);
  uint64_t chunk = PS_CRC32_CHUNK_BYTES / from_bytes;
  for (uint64_t start = 0; start < elements; start += chunk) {
    size_t n = (size_t)(elements - start < chunk ? elements - start : chunk);
    uint8_t *to = target + start * to_bytes;
    ps_write_elements(update, from + start * from_bytes, n, to);
    crc = ps_crc32_update(crc, to, n * to_bytes);
  }
  return crc;
}

static void fill_message(const struct ps_draft *draft, const struct ps_update_record *record,
                         uint8_t *bytes) {
  const struct ps_update_source *source = record->first;
  uint8_t *target = bytes + draft->buffer.size;
  memcpy(bytes, draft->buffer.data, draft->buffer.size);
  if (ps_is_blockless(source->update->operation)) return;
  uint32_t crc = ps_draft_crc(draft);
  if (record->blocks > 1) {
    crc = ps_write_batch_data(record, target, crc);
  } else if (source->slice == NULL) {
    crc = copy_elements(target, source->values, source->elements, source->update, crc);
  } else {
    ps_write_part(source->slice, source->update, PS_INDEX_NUMBER_BYTES, target);
    crc = ps_crc32_update(crc, target, source->data_bytes);
  }
  ps_seal_message(bytes, crc);
}

/** Makes the buffer hold so many bytes; its contents are lost. */
static bool reserve(struct ps_record_buffer *buffer, size_t bytes) {
  buffer->used = bytes;
  if (bytes <= buffer->capacity) return true;
  free(buffer->bytes);
  buffer->bytes = malloc(bytes);
  buffer->capacity = buffer->bytes == NULL ? 0 : bytes;
  return buffer->bytes != NULL;
}

pserver_status ps_write_record(const struct ps_identity *identity, const struct ps_update_record *record,
                               const struct ps_record_head *head, struct ps_record_buffer *buffer) {
  size_t data_bytes = ps_record_data_bytes(record);
  struct ps_draft draft;
  ps_draft_begin(&draft);
  write_entries(&draft, identity, record, head);
  pserver_status status = ps_is_blockless(record->first->update->operation)
                              ? ps_draft_end(&draft)
                              : ps_draft_end_with_data(&draft, data_bytes);
  if (status == PSERVER_OK) {
    if (reserve(buffer, draft.buffer.size + data_bytes)) {
      fill_message(&draft, record, buffer->bytes);
    } else {
      status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for a message");
    }
  }
  ps_draft_release(&draft);
  return status;
}

/* Writes batches as messages. */

/** Maximum bytes of a group in the header without its parameter's name and declaration. */
#define GROUP_BYTES_MAX 160

/** Returns the bytes of a whole number in a message. */
static size_t whole_bytes(uint64_t value) {
  if (value < 0x80) return 1;
  if (value <= UINT8_MAX) return 2;
  if (value <= UINT16_MAX) return 3;
  return value <= UINT32_MAX ? 5 : 9;
}

/** Returns the bytes of a map of shape and configuration in a message. */
static size_t declared_bytes(const struct ps_parameter *parameter) {
  size_t bytes = 1 + sizeof "shape" + (parameter->rank < 16 ? 1 : 3);
  for (int32_t axis = 0; axis < parameter->rank; axis++) bytes += whole_bytes(parameter->shape[axis]);
  return bytes + sizeof "config" + parameter->config_bytes;
}

size_t ps_group_bytes_max(const struct ps_parameter_update *update) {
  const struct ps_parameter *parameter = update->parameter;
  size_t declared = update->operation == PS_UPDATE_INIT ? declared_bytes(parameter) : 0;
  return GROUP_BYTES_MAX + declared + ps_batch_name_bytes_max(parameter->name);
}

static void pack_key(struct ps_draft *draft, const char *key) { ps_pack_text(draft, key, strlen(key)); }

static void pack_text_entry(struct ps_draft *draft, const char *key, const char *text) {
  pack_key(draft, key);
  ps_pack_text(draft, text, strlen(text));
}

static void pack_number_entry(struct ps_draft *draft, const char *key, double value) {
  pack_key(draft, key);
  ps_pack_number(draft, value);
}

/** Returns how many entries a group has besides verb, parameter, epoch, dtype, blocks and seen. */
static size_t count_of_operation(const struct ps_parameter_update *update) {
  if (update->operation == PS_UPDATE_SET) return 0;
  if (update->operation == PS_UPDATE_INIT) return 2;
  size_t factors = update->operation == PS_UPDATE_MIX ? 2 : update->has_rate;
  return 1 + factors + update->has_norm + (update->encoding != PSERVER_AS_IS);
}

static void pack_operation(struct ps_draft *draft, const struct ps_parameter_update *update) {
  if (update->operation == PS_UPDATE_SET) return;
  if (update->operation == PS_UPDATE_INIT) {
    pack_key(draft, "shape");
    ps_pack_shape(draft, update->parameter->shape, update->parameter->rank);
    pack_key(draft, "config");
    ps_pack_raw(draft, update->parameter->config, update->parameter->config_bytes);
    return;
  }
  if (update->encoding != PSERVER_AS_IS) {
    pack_text_entry(draft, "encoding", ps_encoding_name(update->encoding));
  }
  if (update->has_norm) pack_number_entry(draft, "norm", update->norm);
  if (update->operation == PS_UPDATE_MIX) {
    pack_text_entry(draft, "op", "mix");
    pack_number_entry(draft, "alpha", update->alpha);
    pack_number_entry(draft, "beta", update->beta);
  } else {
    pack_text_entry(draft, "op", "grad");
    if (update->has_rate) pack_number_entry(draft, "lr", update->rate);
  }
}

/** Packs the row of an entry: its block and bytes, then the start of an init or the counts of a part. */
static void pack_row(struct ps_draft *draft, const struct ps_update_source *source) {
  const struct ps_part_slice *slice = source->slice;
  bool is_init = source->update->operation == PS_UPDATE_INIT;
  bool is_part = slice != NULL && !slice->is_whole_block;
  bool has_inner = is_part && slice->inner != NULL;
  ps_pack_list(draft, 2 + (size_t)(is_init || is_part) + has_inner);
  ps_pack_whole(draft, source->index);
  ps_pack_whole(draft, source->entry_bytes);
  if (is_init) ps_pack_whole(draft, source->start);
  if (is_part) ps_pack_whole(draft, slice->row_count);
  if (has_inner) ps_pack_whole(draft, slice->inner_count);
}

/** Packs the group that begins with an entry; returns the entry after the group, NULL if there is none. */
static const struct ps_update_source *pack_group(struct ps_draft *draft,
                                                 const struct ps_update_source *first) {
  const struct ps_parameter_update *update = first->update;
  const struct ps_update_source *end = first;
  size_t blocks = 0;
  bool names_versions = false;
  for (; end != NULL && end->update == update; end = end->next) {
    blocks++;
    names_versions = names_versions || end->seen > 0;
  }
  ps_pack_map(draft, 5 + count_of_operation(update) + names_versions);
  pack_text_entry(draft, "verb", ps_verb_of(update->operation));
  pack_key(draft, "parameter");
  ps_pack_name(draft, update->parameter->name);
  pack_key(draft, "epoch");
  ps_pack_whole(draft, update->parameter->epoch);
  pack_text_entry(draft, "dtype", ps_dtype_name(update->parameter->dtype));
  pack_operation(draft, update);
  pack_key(draft, "blocks");
  ps_pack_list(draft, blocks);
  for (const struct ps_update_source *each = first; each != end; each = each->next) pack_row(draft, each);
  if (names_versions) {
    pack_key(draft, "seen");
    ps_pack_list(draft, blocks);
    for (const struct ps_update_source *each = first; each != end; each = each->next) {
      ps_pack_whole(draft, each->seen);
    }
  }
  return end;
}

void ps_write_batch_entries(struct ps_draft *draft, const struct ps_update_record *record) {
  const struct ps_update_source *first = record->first;
  size_t groups = 1;
  for (const struct ps_update_source *each = first; each->next != NULL; each = each->next) {
    groups += each->next->update != each->update;
  }
  if (first->step > 0) ps_draft_whole(draft, "step", first->step);
  ps_draft_key(draft, "groups");
  ps_pack_list(draft, groups);
  for (const struct ps_update_source *each = first; each != NULL;) each = pack_group(draft, each);
}

/** Writes index and elements of an entry, without its padding. */
static void write_entry(const struct ps_update_source *source, uint8_t *target) {
  const struct ps_parameter_update *update = source->update;
  const struct ps_part_slice *slice = source->slice;
  if (slice == NULL) {
    ps_write_elements(update, source->values, source->elements, target);
    return;
  }
  bool has_inner = slice->inner != NULL;
  size_t packed = ps_packed_number_bytes(update->parameter, source->index, has_inner);
  ps_write_part(slice, update, packed, target);
}

uint32_t ps_write_batch_data(const struct ps_update_record *record, uint8_t *target, uint32_t crc) {
  uint8_t *checked = target;
  for (const struct ps_update_source *each = record->first; each != NULL; each = each->next) {
    size_t padded = ps_padded_bytes(each->entry_bytes);
    write_entry(each, target);
    memset(target + each->entry_bytes, 0, padded - each->entry_bytes);
    target += padded;
    if (target - checked < PS_CRC32_CHUNK_BYTES && each->next != NULL) continue;
    crc = ps_crc32_update(crc, checked, (size_t)(target - checked));
    checked = target;
  }
  return crc;
}
