#ifndef WIRE_PUB_ACK_H
#define WIRE_PUB_ACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a stream's name and of a description that are kept, the final zeros included. */
#define STREAM_SIZE 128
#define DESCRIPTION_SIZE 1024

/** The broker's answer to what was published to a stream. */
struct pub_ack {
  char stream[STREAM_SIZE];
  uint64_t seq;
  bool is_error;
  uint32_t code;
  uint32_t error_code;
  char description[DESCRIPTION_SIZE];
};

/** Reads the JSON of an answer. False if it is none. */
bool ps_read_pub_ack(const char *json, size_t bytes, struct pub_ack *ack);

#endif
