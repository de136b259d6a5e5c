#ifndef FAKE_BROKER_H
#define FAKE_BROKER_H

#include "client/client.h"

/**
 * A broker, hosts and a clock that exist only in this process, in place of cnats and clock.c. Whatever
 * the client waits for comes from a script; time goes on only while somebody waits. One thread.
 *
 * A script is a list of events: a byte for the kind, two for the length of the content, little-endian,
 * and the content. Each wait of the client takes one of them; a wait after the last one lasts until
 * its time is over.
 */
enum event_kind {
  /** Answers the oldest open request with the content, after its checksum is written into it, so that more
   * than the check of it is reached. */
  EVENT_REPLY,
  /** Answers the oldest open request with the content unchanged. */
  EVENT_RAW_REPLY,
  /** Answers the oldest open request: nobody listens to its subject. */
  EVENT_NOBODY,
  /** Sends the content, with its checksum, to the subject below the inbox that its first line names. */
  EVENT_MESSAGE,
  /** As EVENT_REPLY, but the request stays open and is answered again. */
  EVENT_EARLY_REPLY,
  /** The next publication fails half-way, or without a connection; then the connection is restored. */
  EVENT_BROKEN_PIPE,
  EVENT_RECONNECT,
  /** The broker sends an error; the content is its text. */
  EVENT_ERROR,
  EVENT_KINDS
};

/** Begins a script, which must stay valid. */
void play(const uint8_t *script, size_t bytes);

/** The first request, which joins, is answered with these bytes and not from the script. */
void answer_join_with(const uint8_t *reply, size_t bytes);

#endif
