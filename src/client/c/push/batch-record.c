/* Writes batches as messages. */
#include "push/batch-record.h"

#include <string.h>

#include "push/part-push.h"
#include "wire/batches.h"
#include "wire/crc32.h"
#include "wire/dtypes.h"

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
