/* Joins the small block updates of a call, those of each shard, into batches. */
#include "push/fill-batches.h"

#include <string.h>

#include "core/positions.h"
#include "push/batch-record.h"
#include "push/parameter-update.h"
#include "wire/batches.h"
#include "wire/dtypes.h"

/** Maximum bytes of the entries that the headers of all records have. */
#define RECORD_HEAD_BYTES_MAX 1024
/** Maximum bytes of a block in the header: its row, and the version that a gradient was made from. */
#define ROW_BYTES_MAX 34

/** Begins a record with an update, the only one unless others are added. */
static void begin(struct ps_update_record *record, struct ps_update_source *source) {
  source->next = NULL;
  *record = (struct ps_update_record){.first = source, .last = source, .blocks = 1};
}

/** Whether an update can be an entry of a batch. */
static bool is_small(const struct ps_call_updates *updates, const struct ps_update_source *source) {
  return !updates->goes_alone && !ps_is_blockless(source->update->operation) &&
         source->entry_bytes < PS_BATCH_ENTRY_BYTES_MAX;
}

/** Adds an entry if the limits permit it, and if each parameter keeps one group, whose blocks ascend. */
static bool add(struct ps_update_record *batch, struct ps_update_source *source,
                const struct ps_batch_limits *limits) {
  const struct ps_update_source *last = batch->last;
  bool is_same_group = last->update == source->update;
  if (is_same_group ? source->index <= last->index : source->update->is_repeated) return false;
  size_t group_bytes = is_same_group ? 0 : ps_group_bytes_max(source->update);
  size_t head_bytes = batch->head_bytes + ROW_BYTES_MAX + group_bytes;
  size_t batch_bytes = batch->batch_bytes + ps_padded_bytes(source->entry_bytes);
  bool fits = batch->blocks < PS_BATCH_ENTRIES_MAX && batch_bytes <= PS_BATCH_BYTES &&
              head_bytes <= PS_BATCH_HEAD_BYTES_MAX &&
              head_bytes + batch_bytes <= limits->payload_bytes_max;
  if (!fits) return false;
  source->next = NULL;
  batch->last->next = source;
  batch->last = source;
  batch->blocks++;
  batch->batch_bytes = batch_bytes;
  batch->head_bytes = head_bytes;
  return true;
}

size_t ps_fill_batches(const struct ps_call_updates *updates, const struct ps_batch_limits *limits,
                       struct ps_update_record *records) {
  /* The batches being filled, by shard and by whether they are of integers only. */
  struct ps_update_record *open[PS_SHARDS_MAX][2] = {{NULL}};
  size_t count = 0;
  for (size_t i = 0; i < updates->count; i++) {
    struct ps_update_source *source = &updates->sources[i];
    struct ps_update_record *record = &records[count];
    if (!limits->takes_batches || !is_small(updates, source)) {
      begin(record, source);
      count++;
      continue;
    }
    const struct ps_parameter *parameter = source->update->parameter;
    bool is_apart = limits->separates_integers && !ps_dtype_is_float(parameter->dtype);
    struct ps_update_record **batch = &open[source->shard][is_apart];
    if (*batch != NULL && add(*batch, source, limits)) continue;
    begin(record, source);
    record->batch_bytes = ps_padded_bytes(source->entry_bytes);
    record->head_bytes = RECORD_HEAD_BYTES_MAX + ps_group_bytes_max(source->update) + ROW_BYTES_MAX;
    *batch = record;
    count++;
  }
  return count;
}
