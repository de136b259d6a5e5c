/* The connection of cnats, played from a script. */
#include "fake-broker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "envelope.h"
#include "fake-clock.h"
#include "fake-connection.h"

#define CRC_AT 6
#define CRC_END 10

struct broker broker;

static void drop_questions(void) {
  while (broker.question_count > 0) free(broker.questions[--broker.question_count]);
}

void play(const uint8_t *script, size_t bytes) {
  drop_questions();
  free(broker.error);
  broker = (struct broker){.at = script, .end = script + bytes};
  set_clock();
}

void answer_join_with(const uint8_t *reply, size_t bytes) {
  broker.join_reply = reply;
  broker.join_bytes = bytes;
}

struct client *connected_client(void) { return broker.client; }

/** Bytes in memory of exactly their size, so that a read beyond them is found. */
static void *copy_of(const void *bytes, size_t count) {
  void *copy = malloc(count == 0 ? 1 : count);
  if (copy == NULL) abort();
  if (count > 0) memcpy(copy, bytes, count);
  return copy;
}

static void seal(uint8_t *data, size_t bytes) {
  if (bytes < CRC_END) return;
  uint32_t crc = crc32_update(crc32_update(0, data, CRC_AT), data + CRC_END, bytes - CRC_END);
  seal_message(data, crc);
}

static natsMsg *message_to(const char *subject, const uint8_t *data, size_t bytes) {
  natsMsg *message = copy_of(&(natsMsg){.bytes = (int)bytes}, sizeof *message);
  message->subject = copy_of(subject, strlen(subject) + 1);
  message->data = copy_of(data, bytes);
  return message;
}

static void deliver(natsMsg *message) {
  broker.on_message(CONNECTION, SUBSCRIPTION, message, broker.client);
}

/** An answer to the oldest question, which `stays` or is done. */
static void deliver_reply(const uint8_t *data, size_t bytes, bool is_sealed, bool is_nobody,
                          bool stays) {
  if (broker.question_count == 0) return;
  natsMsg *message = message_to(broker.questions[0], data, bytes);
  message->is_nobody = is_nobody;
  if (is_sealed) seal(message->data, bytes);
  if (!stays) {
    free(broker.questions[0]);
    broker.question_count--;
    memmove(broker.questions, broker.questions + 1, broker.question_count * sizeof(char *));
  }
  deliver(message);
}

static void deliver_to_place(const uint8_t *content, size_t bytes) {
  char subject[INBOX_ROOM + 64];
  const uint8_t *end = bytes == 0 ? NULL : memchr(content, '\n', bytes);
  if (end == NULL) return;
  snprintf(subject, sizeof subject, "%s.%.*s", broker.client->inbox,
           end - content < 60 ? (int)(end - content) : 60, (const char *)content);
  natsMsg *message = message_to(subject, end + 1, bytes - (size_t)(end + 1 - content));
  seal(message->data, (size_t)message->bytes);
  deliver(message);
}

static void break_connection(natsStatus next_publication) {
  broker.next_publication = next_publication;
  broker.is_disconnected = true;
  broker.on_disconnected(CONNECTION, broker.client);
}

static void tell_error(const uint8_t *text, size_t bytes) {
  free(broker.error);
  broker.error = strndup((const char *)text, bytes);
  if (broker.error == NULL) abort();
  broker.on_error(CONNECTION, SUBSCRIPTION, NATS_NOT_PERMITTED, broker.client);
}

static void take_event(void) {
  uint8_t kind = *broker.at++;
  size_t bytes = (size_t)(broker.end - broker.at);
  if (bytes >= 2) {
    size_t said = (size_t)broker.at[0] | (size_t)broker.at[1] << 8;
    broker.at += 2;
    bytes = said < bytes - 2 ? said : bytes - 2;
  }
  const uint8_t *content = broker.at;
  broker.at += bytes;
  switch (kind % EVENT_KINDS) {
    case EVENT_REPLY:
    case EVENT_EARLY_REPLY:
      deliver_reply(content, bytes, true, false, kind % EVENT_KINDS == EVENT_EARLY_REPLY);
      break;
    case EVENT_RAW_REPLY:
    case EVENT_NOBODY:
      deliver_reply(content, bytes, false, kind % EVENT_KINDS == EVENT_NOBODY, false);
      break;
    case EVENT_MESSAGE:
      deliver_to_place(content, bytes);
      break;
    case EVENT_BROKEN_PIPE:
      break_connection(NATS_IO_ERROR);
      break;
    case EVENT_RECONNECT:
      break_connection(NATS_INSUFFICIENT_BUFFER);
      break;
    default:
      tell_error(content, bytes);
  }
}

bool something_happens(void) {
  if (broker.client == NULL) return false;
  if (broker.is_disconnected) {
    broker.is_disconnected = false;
    broker.next_publication = NATS_OK;
    broker.on_reconnected(CONNECTION, broker.client);
    return true;
  }
  if (broker.at == broker.end) return false;
  take_event();
  return true;
}

natsStatus broker_takes(const char *subject, const char *reply, const void *data, size_t bytes) {
  struct message message;
  if (open_message(data, bytes, &message) != PSERVER_OK) abort();
  if (broker.next_publication != NATS_OK) return broker.next_publication;
  if (broker.question_count == QUESTIONS_MAX) return NATS_OK;
  broker.questions[broker.question_count++] = copy_of(reply, strlen(reply) + 1);
  if (broker.join_reply != NULL && strstr(subject, ".join") != NULL) {
    deliver_reply(broker.join_reply, broker.join_bytes, true, false, false);
    broker.join_reply = NULL;
  }
  return NATS_OK;
}
