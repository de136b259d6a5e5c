#ifndef PUSH_RECORD_H
#define PUSH_RECORD_H

#include "push/parameter-update.h"
#include "push/update-record.h"
#include "wire/envelope.h"
#include "wire/identity.h"

/** The numbers that every record begins with. */
struct ps_record_head {
  uint64_t session;
  uint64_t n;
  uint64_t done;
};

/** Memory for one record, which grows as needed. All zeros: empty. The owner frees `bytes`. */
struct ps_record_buffer {
  uint8_t *bytes;
  size_t used;
  size_t capacity;
};

/** Writes the subject that a record is published to. */
void ps_record_subject(const struct ps_identity *identity, const struct ps_update_record *record,
                       char subject[PS_SUBJECT_SIZE]);

/** Returns the version of its block that a gradient was made from, as last read; 0: none. */
uint64_t ps_seen_version(const struct ps_update_source *source);

/** Writes the message of a record to the buffer; copies the elements once. INTERNAL. */
pserver_status ps_write_record(const struct ps_identity *identity, const struct ps_update_record *record,
                               const struct ps_record_head *head, struct ps_record_buffer *buffer);

#endif
