/* Reads a stream while it is written. */
#include <stdio.h>
#include <stdlib.h>

#include "nats-status.h"
#include "stream-reader.h"

static natsConnection *connection;

/** Connects. Argument: URL. */
static bool open_receiver(char **arguments, struct answer *answer) {
  return nats_is_ok(natsConnection_ConnectTo(&connection, arguments[0]), "open", answer);
}

/** Makes a stream and starts to read it. Arguments: its name, its subject, bytes of a message. */
static bool read_stream(char **arguments, struct answer *answer) {
  struct stream_options options = {
      .name = arguments[0],
      .subject = arguments[1],
      .storage = js_FileStorage,
      .bytes = strtoull(arguments[2], NULL, 10),
  };
  return nats_is_ok(stream_reader_start(connection, &options), "read", answer);
}

/** Deletes the stream. Argument: number of messages to wait for. Answer: time of the last in ms. */
static bool last(char **arguments, struct answer *answer) {
  double last_ms;
  bool has_all = counter_wait(&stream_received, strtoull(arguments[0], NULL, 10), &last_ms);
  snprintf(answer->text, sizeof answer->text, "%.6f", last_ms);
  natsStatus status = stream_reader_stop();
  if (!has_all) return refuse(answer, "not all of %s messages came", arguments[0]);
  return nats_is_ok(status, "last", answer);
}

int main(void) {
  static const struct command commands[] = {
      {"open", 1, open_receiver}, {"read", 3, read_stream}, {"last", 1, last}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  natsConnection_Destroy(connection);
  return 0;
}
