#ifndef PUSH_RECORD_H
#define PUSH_RECORD_H

#include "push/parameter-update.h"
#include "push/update-record.h"
#include "wire/envelope.h"
#include "wire/identity.h"

/** What every record begins with. */
struct ps_record_head {
  uint64_t session;
  uint64_t n;
  uint64_t done;
};

/** Memory for one record; it grows. All zeros: none yet. `bytes` is freed by its owner. */
struct ps_record_buffer {
  uint8_t *bytes;
  size_t used;
  size_t capacity;
};

/** The subject that a record is published to. */
void ps_record_subject(const struct ps_identity *identity, const struct ps_update_record *record,
                       char subject[PS_SUBJECT_SIZE]);

/** The version of its block that a gradient was made from, at present; 0 for none. */
uint64_t ps_seen_version(const struct ps_update_source *source);

/** Writes the message of a record: the elements are copied, once. INTERNAL if there is no memory. */
pserver_status ps_write_record(const struct ps_identity *identity, const struct ps_update_record *record,
                               const struct ps_record_head *head, struct ps_record_buffer *buffer);

#endif
