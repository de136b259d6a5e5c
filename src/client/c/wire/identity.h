#ifndef WIRE_IDENTITY_H
#define WIRE_IDENTITY_H

#include "wire/connection.h"
#include "wire/names.h"

/** Who a client is; never changed. */
struct ps_identity {
  char job[PS_JOB_BYTES_MAX + 1];
  char trainer[PS_ID_SIZE];
  /** The trainer's id as a token. */
  char id[PS_ID_SIZE];
  /** The name below which all messages to it come. */
  char inbox[PS_INBOX_SIZE];
};

#endif
