#include "records/records.h"

#include <stdlib.h>

/* Which updates of a call go together in records. */

/** Bytes of an entry in the columns of a batch, besides its lists: at most four numbers, a norm and a version. */
#define ENTRY_COLUMN_BYTES 32

/** Stands for a batch that is not begun. */
#define NO_RECORD SIZE_MAX

static enum ps_entry_form form_of(const struct ps_block_source *source) {
  const struct ps_part_slice *slice = source->slice;
  if (slice == NULL || slice->is_whole_block) return PS_ENTRY_WHOLE;
  return slice->inner == NULL ? PS_ENTRY_ROWS : PS_ENTRY_ELEMENTS;
}

/** Returns the bytes of the elements and lists of an entry. */
static size_t entry_bytes(const struct ps_block_source *source) {
  size_t bytes = ps_source_bytes(source);
  if (form_of(source) == PS_ENTRY_WHOLE) return bytes;
  return bytes + (source->slice->row_count + source->slice->inner_count) * sizeof(uint32_t);
}

/** The records of a sending that are being filled. */
struct filler {
  struct ps_sending *sending;
  const struct ps_batch_limits *limits;
  size_t run_count;
  /** The batches being filled, by shard and by whether they are of integers only. */
  size_t open[PS_SHARDS_MAX][2];
};

static struct ps_record *begin_record(struct filler *filler) {
  struct ps_sending *sending = filler->sending;
  struct ps_record *record = &sending->records[sending->record_count];
  *record = (struct ps_record){.contribution = sending->contribution, .part = sending->record_count++};
  return record;
}

static bool is_run_of(const struct ps_run *run, pserver_dtype dtype, enum ps_entry_form form,
                      pserver_encoding encoding) {
  return run->dtype == dtype && run->form == form && run->encoding == encoding;
}

/** Returns the run of a record for entries of a type, form and encoding. */
static struct ps_run *run_for(struct filler *filler, struct ps_record *record, pserver_dtype dtype,
                              enum ps_entry_form form, pserver_encoding encoding) {
  struct ps_run **link = &record->runs;
  while (*link != NULL && !is_run_of(*link, dtype, form, encoding)) link = &(*link)->next;
  if (*link == NULL) {
    *link = &filler->sending->runs[filler->run_count++];
    **link = (struct ps_run){.dtype = dtype, .form = form, .encoding = encoding};
  }
  return *link;
}

static void add(struct filler *filler, struct ps_record *record, struct ps_block_source *source) {
  const struct ps_parameter_update *update = source->update;
  enum ps_entry_form form = form_of(source);
  pserver_dtype dtype = update->parameter == NULL ? PSERVER_FLOAT32 : update->parameter->dtype;
  struct ps_run *run = run_for(filler, record, dtype, form, update->encoding);
  run->entries++;
  run->elements += source->elements;
  run->has_norms = run->has_norms || update->has_norm;
  /* Gradients of a step need no version: a step defines what they were made from. */
  run->has_seen = run->has_seen || (source->seen > 0 && source->step == 0);
  if (form != PS_ENTRY_WHOLE) run->rows += source->slice->row_count;
  if (form == PS_ENTRY_ELEMENTS) run->inner += source->slice->inner_count;
  source->run = run;
  record->last = source;
  record->blocks++;
}

/** Whether an update is an entry of a batch, or of a part of a contribution. */
static bool has_place_in_batch(const struct ps_sending *sending, const struct ps_block_source *source) {
  if (sending->contribution != NULL) return true;
  return !sending->goes_alone && !ps_is_blockless(source->update->operation) &&
         entry_bytes(source) < PS_BATCH_ENTRY_BYTES_MAX;
}

/** Whether a batch takes a further entry: within the limits, and of a block that it has not yet. */
static bool admits(const struct ps_record *batch, const struct ps_block_source *source, size_t bytes,
                   const struct ps_batch_limits *limits) {
  const struct ps_block_source *last = batch->last;
  /* The blocks of an update ascend; slices of one block follow each other. */
  bool is_same_update = last->update == source->update;
  if (is_same_update ? source->index == last->index : source->update->is_repeated) return false;
  size_t value_bytes = batch->value_bytes + bytes;
  size_t message_bytes =
      PS_BATCH_HEAD_BYTES_MAX + (batch->blocks + 1) * ENTRY_COLUMN_BYTES + value_bytes;
  return batch->blocks < PS_BATCH_ENTRIES_MAX && value_bytes <= PS_BATCH_BYTES &&
         message_bytes <= limits->payload_bytes_max;
}

/** Adds an update to the batch of its shard that is being filled, or to a new one. */
static void add_entry(struct filler *filler, struct ps_block_source *source) {
  struct ps_record *records = filler->sending->records;
  const struct ps_parameter *parameter = source->update->parameter;
  bool is_apart = filler->limits->separates_integers && !ps_dtype_is_float(parameter->dtype);
  size_t *open = &filler->open[source->shard][is_apart];
  size_t bytes = entry_bytes(source);
  if (*open == NO_RECORD || !admits(&records[*open], source, bytes, filler->limits)) {
    *open = (size_t)(begin_record(filler) - records);
  }
  records[*open].value_bytes += bytes;
  add(filler, &records[*open], source);
}

/** Gives each run its sources, in their order. */
static void hand_out(struct ps_sending *sending) {
  const struct ps_block_source **next = sending->ordered;
  for (size_t i = 0; i < sending->record_count; i++) {
    struct ps_record *record = &sending->records[i];
    record->sources = next;
    record->parts = sending->record_count;
    for (struct ps_run *run = record->runs; run != NULL; run = run->next) {
      run->sources = next;
      next += run->entries;
      run->entries = 0;
    }
  }
  for (size_t i = 0; i < sending->count; i++) {
    struct ps_run *run = sending->sources[i].run;
    run->sources[run->entries++] = &sending->sources[i];
  }
}

bool ps_make_records(struct ps_sending *sending, const struct ps_batch_limits *limits) {
  size_t most = sending->count + 1;
  struct filler filler = {.sending = sending, .limits = limits};
  for (size_t shard = 0; shard < PS_SHARDS_MAX; shard++) {
    filler.open[shard][0] = NO_RECORD;
    filler.open[shard][1] = NO_RECORD;
  }
  sending->record_count = 0;
  sending->records = malloc(most * sizeof *sending->records);
  sending->runs = malloc(most * sizeof *sending->runs);
  sending->ordered = malloc(most * sizeof *sending->ordered);
  if (sending->records == NULL || sending->runs == NULL || sending->ordered == NULL) return false;
  for (size_t i = 0; i < sending->count; i++) {
    struct ps_block_source *source = &sending->sources[i];
    if (has_place_in_batch(sending, source)) add_entry(&filler, source);
    else add(&filler, begin_record(&filler), source);
  }
  hand_out(sending);
  return true;
}

void ps_release_records(struct ps_sending *sending) {
  free(sending->records);
  free(sending->runs);
  free(sending->ordered);
  sending->records = NULL;
  sending->runs = NULL;
  sending->ordered = NULL;
}

size_t ps_record_data_bytes(const struct ps_record *record) {
  if (!ps_has_columns(record)) return ps_first_source(record)->data_bytes;
  return record->value_bytes + record->blocks * ENTRY_COLUMN_BYTES;
}

bool ps_record_has_versions(const struct ps_record *record) {
  const struct ps_run *run = record->runs;
  while (run != NULL && !run->has_seen) run = run->next;
  return run != NULL;
}
