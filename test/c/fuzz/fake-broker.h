#ifndef FAKE_BROKER_H
#define FAKE_BROKER_H

#include "calls/client.h"

/**
 * A broker, hosts and a clock that exist only in this process, in place of cnats and clock.c. Whatever
 * the client waits for comes from a script; time goes on only while somebody waits. One thread.
 *
 * A script is a list of events: a byte for the kind, two for the length of the content, little-endian,
 * and the content. Each wait of the client takes one of them; a wait after the last one lasts until
 * its time is over.
 */
enum event_kind {
  /** The content without its checksum, to the oldest question that has no answer; the checksum is put
   * where it belongs, so that more than the check of it is reached. */
  EVENT_REPLY,
  /** The content as it is, to the same. */
  EVENT_RAW_REPLY,
  /** Nobody listens to it. */
  EVENT_NOBODY,
  /** The content, with its checksum, to the place in the inbox that its first line names. */
  EVENT_MESSAGE,
  /** The same as EVENT_REPLY, but the question stays open: it is answered more than once. */
  EVENT_EARLY_REPLY,
  /** The next publication fails half-way, or for want of a connection; the connection is made anew. */
  EVENT_BROKEN_PIPE,
  EVENT_RECONNECT,
  /** The broker tells an error: the content is its text. */
  EVENT_ERROR,
  EVENT_KINDS
};

/** Begins a script; it must stay where it is. */
void play(const uint8_t *script, size_t bytes);

/** The first question, a trainer's to join, is answered with these bytes, not from the script. */
void answer_join_with(const uint8_t *reply, size_t bytes);

#endif
