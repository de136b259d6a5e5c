#ifndef WIRE_PUB_ACK_H
#define WIRE_PUB_ACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a stream's name and of a description that are kept, the final zeros included. */
#define STREAM_ROOM 128
#define DESCRIPTION_ROOM 1024

/** The broker's answer to what was published to a stream. */
struct pub_ack {
  char stream[STREAM_ROOM];
  uint64_t seq;
  bool is_error;
  uint32_t code;
  uint32_t error_code;
  char description[DESCRIPTION_ROOM];
};

/** Reads the JSON of an answer. False if it is none. */
bool ps_read_pub_ack(const char *json, size_t bytes, struct pub_ack *ack);

#endif
