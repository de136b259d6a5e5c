#include "wire/wire.h"

#include <inttypes.h>
#include <pserver.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The broker's answers to journal records. */

/** JetStream's code for a limit of the stream, or for any error of its store; the description says which. */
enum { STORE_FAILED = 10077 };
/** JetStream's code for a limit of the broker itself. */
enum { INSUFFICIENT_RESOURCES = 10023 };
/** Statuses that mean that the broker could not process the message now. */
enum { STATUS_TIMEOUT = 408, STATUS_TOO_MANY = 429, STATUS_FAULT_MIN = 500 };

struct refusal_row {
  uint32_t error_code;
  pserver_status code;
};

#define ROW(error_code, code) {error_code, code},
static const struct refusal_row rows[] = {PS_REFUSAL_TABLE(ROW)};
#undef ROW

bool ps_parse_journal_stream(const char *job, const char *stream, unsigned *shard, uint64_t *generation) {
  char spelled[PS_STREAM_SIZE];
  int prefix = snprintf(spelled, sizeof spelled, "PS_%s_", job);
  if (strncmp(stream, spelled, (size_t)prefix) != 0) return false;
  char *end = NULL;
  unsigned long number = strtoul(stream + prefix, &end, 10);
  *generation = *end == '_' ? strtoull(end + 1, NULL, 10) : 1;
  if (number > 255) return false;
  *shard = (unsigned)number;
  /* Compare with the canonical name, so that no other spelling counts as the same stream. */
  if (*generation == 1) snprintf(spelled, sizeof spelled, "PS_%s_%u", job, *shard);
  else snprintf(spelled, sizeof spelled, "PS_%s_%u_%" PRIu64, job, *shard, *generation);
  return *generation > 0 && strcmp(spelled, stream) == 0;
}

/**
 * Returns the code for a refusal to store, as `storeRefusalCode` in src/protocol/jetstream-errors.ts does.
 */
static pserver_status refusal_code(const struct ps_pub_ack *answer) {
  const char *text = answer->description;
  if (answer->error_code == STORE_FAILED) {
    bool is_full = strstr(text, "exceeded") != NULL || strstr(text, "no space left") != NULL;
    return is_full ? PSERVER_ERR_JOURNAL_FULL : PSERVER_ERR_JOURNAL_FAULT;
  }
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].error_code == answer->error_code) return rows[i].code;
  }
  bool is_passing = answer->code == STATUS_TIMEOUT || answer->code == STATUS_TOO_MANY ||
                    answer->code >= STATUS_FAULT_MIN;
  return is_passing ? PSERVER_ERR_JETSTREAM_UNAVAILABLE : PSERVER_ERR_INTERNAL;
}

/** Returns the beginning of the error text of a refusal. */
static const char *refusal_text(pserver_status code) {
  switch (code) {
    case PSERVER_ERR_JOURNAL_FULL:
      return "the journal is full";
    case PSERVER_ERR_JOURNAL_FAULT:
      return "the broker cannot write the journal";
    case PSERVER_ERR_JETSTREAM_UNAVAILABLE:
      return "the journal cannot store at the moment";
    case PSERVER_ERR_NO_JETSTREAM:
      return "the broker runs without JetStream";
    case PSERVER_ERR_TOO_LARGE:
      return "the journal takes no record this large";
    default:
      return "the journal refused the record";
  }
}

/** Returns what the text of a refusal leaves out, as `refusalText` in src/protocol/jetstream-errors.ts does. */
static const char *missing_text(const struct ps_pub_ack *answer) {
  if (answer->error_code != INSUFFICIENT_RESOURCES) return "";
  return ": the broker's own limit is reached, max_file or else three quarters of what was free at its start";
}

static int refusal(const struct ps_pub_ack *answer) {
  pserver_status code = refusal_code(answer);
  ps_fail(code, "%s: %s%s", refusal_text(code), answer->description, missing_text(answer));
  return pserver_is_retryable(code) ? PS_ACK_LATER : PS_ACK_REFUSED;
}

void ps_read_journal_ack(const char *job, natsMsg *message, struct ps_journal_ack *ack) {
  struct ps_pub_ack answer;
  ack->kind = PS_ACK_REFUSED;
  if (natsMsg_IsNoResponders(message)) {
    ps_fail(PSERVER_ERR_NO_OWNER,
            "no journal takes records of job %s: the broker has restarted, or its stream was deleted",
            job);
    ack->kind = PS_ACK_LATER;
    return;
  }
  if (!ps_read_pub_ack(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message), &answer)) {
    ps_fail(PSERVER_ERR_BAD_MESSAGE, "the answer to a record: expected a PubAck; received other bytes");
    return;
  }
  if (answer.is_error) {
    ack->kind = refusal(&answer);
    return;
  }
  if (!ps_parse_journal_stream(job, answer.stream, &ack->shard, &ack->position.generation)) {
    ps_fail(PSERVER_ERR_BAD_MESSAGE, "no journal stream of job %s: %.80s", job, answer.stream);
    return;
  }
  ack->position.seq = answer.seq;
  ack->kind = PS_ACK_STORED;
}

/* Reads the JSON of PubAcks: the entries that matter; all others are skipped. */

#define DEPTH_MAX 8
#define KEY_SIZE 32

struct text {
  const char *at;
  const char *end;
};

typedef bool (*read_entry)(struct text *text, const char *key, struct ps_pub_ack *ack);

static void skip_space(struct text *text) {
  while (text->at < text->end && memchr(" \t\r\n", *text->at, 4) != NULL) text->at++;
}

static bool take(struct text *text, char character) {
  skip_space(text);
  if (text->at >= text->end || *text->at != character) return false;
  text->at++;
  return true;
}

/** Reads a string, cut to `size` bytes; Unicode escapes become a question mark. */
static bool take_string(struct text *text, char *target, size_t size) {
  if (!take(text, '"')) return false;
  size_t used = 0;
  while (text->at < text->end && *text->at != '"') {
    char character = *text->at++;
    if (character == '\\') {
      if (text->at >= text->end) return false;
      character = *text->at++;
      if (character == 'u') {
        if (text->end - text->at < 4) return false;
        text->at += 4;
        character = '?';
      } else if (strchr("bfnrt", character) != NULL) {
        character = ' ';
      }
    }
    if (used + 1 < size) target[used++] = character;
  }
  target[used] = '\0';
  return take(text, '"');
}

static bool take_whole(struct text *text, uint64_t *number) {
  skip_space(text);
  const char *start = text->at;
  *number = 0;
  while (text->at < text->end && *text->at >= '0' && *text->at <= '9') {
    if (text->at - start >= 16) return false;
    *number = *number * 10 + (uint64_t)(*text->at++ - '0');
  }
  return text->at > start;
}

static bool skip_value(struct text *text, int depth);

static bool skip_entry(struct text *text, int depth, bool has_key) {
  char ignored[KEY_SIZE];
  if (has_key && (!take_string(text, ignored, sizeof ignored) || !take(text, ':'))) return false;
  return skip_value(text, depth + 1);
}

static bool skip_value(struct text *text, int depth) {
  char ignored[KEY_SIZE];
  skip_space(text);
  if (text->at >= text->end || depth > DEPTH_MAX) return false;
  if (*text->at == '"') return take_string(text, ignored, sizeof ignored);
  if (*text->at == '{' || *text->at == '[') {
    bool has_keys = *text->at++ == '{';
    char close = has_keys ? '}' : ']';
    if (take(text, close)) return true;
    do {
      if (!skip_entry(text, depth, has_keys)) return false;
    } while (take(text, ','));
    return take(text, close);
  }
  const char *start = text->at;
  while (text->at < text->end && memchr(",}] \t\r\n", *text->at, 7) == NULL) text->at++;
  return text->at > start;
}

static bool take_object(struct text *text, read_entry read, struct ps_pub_ack *ack) {
  char key[KEY_SIZE];
  if (!take(text, '{')) return false;
  if (take(text, '}')) return true;
  do {
    if (!take_string(text, key, sizeof key) || !take(text, ':')) return false;
    if (!read(text, key, ack)) return false;
  } while (take(text, ','));
  return take(text, '}');
}

static bool read_error_entry(struct text *text, const char *key, struct ps_pub_ack *ack) {
  uint64_t number = 0;
  if (strcmp(key, "description") == 0) {
    return take_string(text, ack->description, sizeof ack->description);
  }
  bool is_code = strcmp(key, "code") == 0;
  if (!is_code && strcmp(key, "err_code") != 0) return skip_value(text, 0);
  if (!take_whole(text, &number)) return false;
  if (is_code) ack->code = (uint32_t)number;
  else ack->error_code = (uint32_t)number;
  return true;
}

static bool read_ack_entry(struct text *text, const char *key, struct ps_pub_ack *ack) {
  if (strcmp(key, "error") == 0) {
    ack->is_error = true;
    return take_object(text, read_error_entry, ack);
  }
  if (strcmp(key, "stream") == 0) return take_string(text, ack->stream, sizeof ack->stream);
  if (strcmp(key, "seq") == 0) return take_whole(text, &ack->seq);
  return skip_value(text, 0);
}

bool ps_read_pub_ack(const char *json, size_t bytes, struct ps_pub_ack *ack) {
  struct text text = {json, json + bytes};
  *ack = (struct ps_pub_ack){0};
  if (!take_object(&text, read_ack_entry, ack)) return false;
  skip_space(&text);
  if (text.at != text.end) return false;
  return ack->is_error || (ack->stream[0] != '\0' && ack->seq > 0);
}
