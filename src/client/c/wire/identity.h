#ifndef WIRE_IDENTITY_H
#define WIRE_IDENTITY_H

#include "wire/connection.h"
#include "wire/names.h"

/** The job and trainer of a client. Never changes. */
struct ps_identity {
  char job[PS_JOB_BYTES_MAX + 1];
  char trainer[PS_ID_SIZE];
  /** The trainer's id as a subject token. */
  char id[PS_ID_SIZE];
  /** The subject prefix of all messages to the client. */
  char inbox[PS_INBOX_SIZE];
};

#endif
