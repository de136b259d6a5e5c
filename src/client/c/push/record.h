#ifndef PUSH_RECORD_H
#define PUSH_RECORD_H

#include "push/parameter-update.h"
#include "wire/envelope.h"
#include "wire/identity.h"

/** What every record begins with. */
struct record_head {
  uint64_t session;
  uint64_t n;
  uint64_t done;
  /** The version of its block that a gradient names; 0 for none. */
  uint64_t seen;
};

/** Memory for one record; it grows. All zeros: none yet. `bytes` is freed by its owner. */
struct ps_record_buffer {
  uint8_t *bytes;
  size_t used;
  size_t capacity;
};

/** The subject that a block update is published to. */
void ps_record_subject(const struct ps_identity *identity, const struct update_source *source,
                       char subject[SUBJECT_SIZE]);

/** The version of its block that a gradient was made from; 0 for none. */
uint64_t ps_seen_version(const struct update_source *source);

/** Writes the entries of a record, without those of the envelope and the tensor bytes. */
void ps_write_record_entries(struct draft *draft, const struct update_source *source,
                             const struct record_head *head, const char *reply);

/** Writes the message of a block update: the elements are copied, once. INTERNAL if there is no memory. */
pserver_status ps_write_record(const struct ps_identity *identity, const struct update_source *source,
                               const struct record_head *head, struct ps_record_buffer *buffer);

#endif
