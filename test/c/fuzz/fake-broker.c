/* Replaces the connection of cnats; its events come from a script. */
#include "fake-broker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake-clock.h"
#include "fake-connection.h"
#include "wire/wire.h"

/** The maximum number of open requests; further ones get no answer. */
#define QUESTIONS_MAX 64

static struct {
  const uint8_t *at;
  const uint8_t *end;
  const uint8_t *join_reply;
  size_t join_bytes;
  /** Reply subjects of open requests, oldest first. */
  char *questions[QUESTIONS_MAX];
  size_t question_count;
  natsStatus next_publication;
  bool is_disconnected;
} script;

static void drop_questions(void) {
  while (script.question_count > 0) free(script.questions[--script.question_count]);
}

void play(const uint8_t *events, size_t bytes) {
  drop_questions();
  free(broker.error);
  broker = (struct broker){0};
  memset(&script, 0, sizeof script);
  script.at = events;
  script.end = events + bytes;
  set_clock();
}

void answer_join_with(const uint8_t *reply, size_t bytes) {
  script.join_reply = reply;
  script.join_bytes = bytes;
}

/** Answers the oldest open request, which `stays` open or is done. */
static void deliver_reply(const uint8_t *data, size_t bytes, bool is_sealed, bool is_nobody,
                          bool stays) {
  if (script.question_count == 0) return;
  natsMsg *message = make_message(script.questions[0], data, bytes);
  message->is_nobody = is_nobody;
  if (is_sealed) seal_bytes(message->data, bytes);
  if (!stays) {
    free(script.questions[0]);
    script.question_count--;
    memmove(script.questions, script.questions + 1, script.question_count * sizeof(char *));
  }
  deliver_message(message);
}

static void deliver_to_place(const uint8_t *content, size_t bytes) {
  char subject[PS_INBOX_SIZE + 64];
  const uint8_t *end = bytes == 0 ? NULL : memchr(content, '\n', bytes);
  if (end == NULL) return;
  snprintf(subject, sizeof subject, "%s.%.*s", broker.client->identity.inbox,
           end - content < 60 ? (int)(end - content) : 60, (const char *)content);
  natsMsg *message = make_message(subject, end + 1, bytes - (size_t)(end + 1 - content));
  seal_bytes(message->data, (size_t)message->bytes);
  deliver_message(message);
}

static void break_connection(natsStatus next_publication) {
  script.next_publication = next_publication;
  script.is_disconnected = true;
  break_off();
}

static void tell_error(const uint8_t *text, size_t bytes) {
  free(broker.error);
  broker.error = strndup((const char *)text, bytes);
  if (broker.error == NULL) abort();
  broker.on_error(CONNECTION, SUBSCRIPTION, NATS_NOT_PERMITTED, broker.connection);
}

static void take_event(void) {
  uint8_t kind = *script.at++;
  size_t bytes = (size_t)(script.end - script.at);
  if (bytes >= 2) {
    size_t said = (size_t)script.at[0] | (size_t)script.at[1] << 8;
    script.at += 2;
    bytes = said < bytes - 2 ? said : bytes - 2;
  }
  const uint8_t *content = script.at;
  script.at += bytes;
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

int64_t next_event_ms(void) {
  bool is_any = broker.client != NULL && (script.is_disconnected || script.at != script.end);
  return is_any ? 0 : PS_NEVER_MS;
}

void happen(void) {
  if (script.is_disconnected) {
    script.is_disconnected = false;
    script.next_publication = NATS_OK;
    make_anew();
    return;
  }
  take_event();
}

natsStatus broker_takes(const char *subject, const char *reply, const void *data, size_t bytes) {
  struct ps_message message;
  if (ps_open_message(data, bytes, &message) != PSERVER_OK) abort();
  if (script.next_publication != NATS_OK) return script.next_publication;
  if (script.question_count == QUESTIONS_MAX || *reply == '\0') return NATS_OK;
  script.questions[script.question_count++] = strdup(reply);
  if (script.join_reply != NULL && strstr(subject, ".join") != NULL) {
    deliver_reply(script.join_reply, script.join_bytes, true, false, false);
    script.join_reply = NULL;
  }
  return NATS_OK;
}
