#ifndef WIRE_PUB_ACK_H
#define WIRE_PUB_ACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a stream's name and of a description, including the final zero; longer ones are cut. */
#define PS_STREAM_SIZE 128
#define PS_DESCRIPTION_SIZE 1024

/** The broker's answer to a message that was published to a stream. */
struct ps_pub_ack {
  char stream[PS_STREAM_SIZE];
  uint64_t seq;
  bool is_error;
  uint32_t code;
  uint32_t error_code;
  char description[PS_DESCRIPTION_SIZE];
};

/** Reads the JSON of an answer. False if it is not one. */
bool ps_read_pub_ack(const char *json, size_t bytes, struct ps_pub_ack *ack);

#endif
