#ifndef STREAM_READER_H
#define STREAM_READER_H

#include <nats/nats.h>

#include "counter.h"

/** A stream to be made and read. */
struct stream_options {
  const char *name;
  const char *subject;
  jsStorageType storage;
  /** Bytes of each message. */
  uint64_t bytes;
  /** Bytes above which the stream drops its oldest messages; 0 for no limit. */
  int64_t bytes_max;
};

/** Messages read from the stream of this process; it reads one at a time. */
extern struct counter stream_received;

/** Makes a stream and reads it while it is written, through a pull consumer that needs no
 * acknowledgements. `connection` must outlive the reading. */
natsStatus stream_reader_start(natsConnection *connection, const struct stream_options *options);

/** Ends the reading and deletes the stream. */
natsStatus stream_reader_stop(void);

#endif
