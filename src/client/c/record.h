#ifndef RECORD_H
#define RECORD_H

#include "client.h"
#include "update.h"

/** What every record begins with. */
struct record_head {
  uint64_t session;
  uint64_t n;
  uint64_t done;
};

/** The subject that a piece is published to. */
void record_subject(const struct client *client, const struct piece *piece,
                    char subject[SUBJECT_ROOM]);

/** The version of its block that a gradient names; 0 for none. */
uint64_t seen_version(const struct piece *piece);

/** Writes the entries of a record, without those of the envelope and the tensor bytes. */
void write_record_entries(struct draft *draft, const struct piece *piece,
                          const struct record_head *head, const char *reply);

/**
 * Makes a piece its message, in memory of the client's pool: the elements are copied, once. The piece
 * is busy; lock not held. INTERNAL if there is no memory.
 */
pserver_status write_record(struct client *client, struct piece *piece,
                            const struct record_head *head);

#endif
