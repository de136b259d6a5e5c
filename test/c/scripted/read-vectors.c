/* Compares the requests of reads with those of the TypeScript client. */
#include <stdlib.h>
#include <string.h>

#include "calls/calls.h"
#include "pull/pull.h"
#include "scripted.h"

struct expected_request {
  const char *subject;
  size_t bytes;
  uint32_t crc;
};

/** A read, and the requests that are expected first. */
struct read_vector {
  const char *what;
  /** The reply to a request for the state of the parameters, in hexadecimal digits. */
  const char *status;
  const char *const *names;
  size_t name_count;
  bool is_part;
  const pserver_indices *indices;
  size_t rank;
  pserver_encoding encoding;
  /** For each name the generation, and then the versions of the blocks that the reader has; or NULL. */
  const uint64_t *const *known;
  const struct expected_request *requests;
  size_t request_count;
};

/* The cases. */
#include "reads.h"

/** Every call ends after this time, because none of its requests is answered. */
#define TIMEOUT_MS 950

static const struct read_vector *vector;

static void answer_status(const struct published *message) {
  if (!is_to(message, "status")) {
    serve(message);
    return;
  }
  size_t count = strlen(vector->status) / 2;
  uint8_t *bytes = malloc(count);
  for (size_t i = 0; i < count; i++) {
    char digits[3] = {vector->status[2 * i], vector->status[2 * i + 1], '\0'};
    bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
  }
  bytes_after(0, message->reply, bytes, count);
  free(bytes);
}

/** Ends a read once its requests are sent. */
static void expect_timeout(pserver_status status) { EXPECT(status == PSERVER_ERR_TIMEOUT); }

static void read_known(pserver_client *client, const pserver_known *known) {
  pserver_tensor *tensors = calloc(vector->name_count, sizeof *tensors);
  pserver_origins *origins = NULL;
  pserver_read_options options;
  pserver_read_options_init(&options);
  options.encoding = vector->encoding;
  expect_timeout(pserver_get_known(client, vector->names, tensors, vector->name_count, known, &origins,
                                   &options, TIMEOUT_MS));
  EXPECT(origins == NULL);
  free(tensors);
}

/** Makes origins with the versions of the vector, of parameters that the client has looked up. */
static pserver_origins *origins_of_vector(void) {
  struct ps_parameter **found = calloc(vector->name_count, sizeof *found);
  pserver_origins *origins = NULL;
  const char *missing;
  EXPECT(ps_parameters_take(&broker.client->parameters, vector->names, vector->name_count, found,
                            &missing, 1) == 0);
  EXPECT_OK(ps_origins_new(broker.client->number, found, vector->name_count, vector->encoding, &origins));
  for (size_t i = 0; i < vector->name_count; i++) {
    for (uint64_t block = 0; block < found[i]->layout.blocks; block++) {
      origins->list[i].blocks[block] =
          (struct ps_block_state){vector->known[i][1 + block], vector->known[i][0]};
    }
  }
  ps_parameters_unref(found, vector->name_count);
  free(found);
  return origins;
}

static void read_changes(pserver_client *client) {
  static const uint8_t values[1];
  pserver_known *known = calloc(vector->name_count, sizeof *known);
  pserver_origins *origins = origins_of_vector();
  for (size_t i = 0; i < vector->name_count; i++) known[i] = (pserver_known){values, origins, i};
  read_known(client, known);
  pserver_origins_free(origins);
  free(known);
}

static void read_part(pserver_client *client) {
  pserver_tensor part = {0};
  expect_timeout(pserver_pull_part(client, vector->names[0], vector->indices, vector->rank, &part,
                                   TIMEOUT_MS));
}

/** Whether the requests since the `skipped` ones are those of the vector. */
static bool is_as_expected(size_t pulls, size_t reads) {
  size_t count = count_to("pull") + count_to("read");
  if (count != pulls + reads + vector->request_count) return false;
  for (size_t i = 0; i < vector->request_count; i++) {
    const struct expected_request *expected = &vector->requests[i];
    const char *verb = strrchr(expected->subject, '.') + 1;
    const struct published *sent = strcmp(verb, "pull") == 0 ? to(verb, pulls++) : to(verb, reads++);
    uint64_t crc = 0;
    ps_map_whole(&sent->message.fields, "crc", &crc);
    if (strcmp(sent->subject, expected->subject) != 0 || sent->count != expected->bytes ||
        crc != expected->crc) {
      return false;
    }
  }
  return true;
}

static bool asks_as_expected(void) {
  begin(answer_status);
  job.shards = 4;
  pserver_client *client = connected(0);
  speed_up();
  size_t pulls = 0;
  size_t reads = 0;
  if (vector->known != NULL) {
    read_known(client, NULL);
    pulls = count_to("pull");
    reads = count_to("read");
    read_changes(client);
  } else if (vector->is_part) {
    read_part(client);
  } else {
    read_known(client, NULL);
  }
  bool is_right = is_as_expected(pulls, reads);
  closed(client);
  return is_right;
}

void asks_as_typescript(void) {
  size_t differences = 0;
  for (size_t i = 0; i < sizeof read_vectors / sizeof read_vectors[0]; i++) {
    vector = &read_vectors[i];
    if (asks_as_expected()) continue;
    fprintf(stderr, "%s: other requests than expected\n", vector->what);
    differences++;
  }
  EXPECT(differences == 0);
}
