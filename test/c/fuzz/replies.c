/*
 * Fuzz target: a trainer makes one kind of call after the other, and what it is told by broker and
 * hosts is up to the input. No answer may make the library read or write where it must not, wait
 * without an end, say something malformed, leak, or count bytes as under way that are not.
 *
 * Input: a byte that chooses the calls, one that chooses how the job is synchronized and whether the
 * answer to `join` comes from the input, too; then the script of fake-broker.h.
 */
#include <stdlib.h>
#include <string.h>

#include "fake-broker.h"
#include "fake-connection.h"
#include "json-check.h"
#include "wire/wire.h"
#include "formats/formats.h"

#define TIMEOUT_MS 3000
#define SCRIPTED_JOIN 0x80
/** Set where trainers contribute to fragments. */
#define HAS_ROUNDS 0x40

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

static float values[4] = {1, -2.5f, 3, 0};

static pserver_tensor tensor_of(uint64_t rows, uint64_t columns) {
  return (pserver_tensor){PSERVER_FLOAT32, 2, {rows, columns}, values, rows * columns * sizeof(float)};
}

/** Reads all that a call has returned, so that a sanitizer finds what is not there. */
static void expect_tensor(pserver_status status, pserver_tensor *tensor) {
  if (status != PSERVER_OK) {
    if (tensor->data != NULL) abort();
    return;
  }
  uint64_t sum = 0;
  for (uint64_t i = 0; i < tensor->bytes; i++) sum += ((uint8_t *)tensor->data)[i];
  if (tensor->data == NULL || sum == UINT64_MAX) abort();
  pserver_tensor_release(tensor);
}

static void initialize(pserver_client *client) {
  bool is_selected = false;
  pserver_tensor value = tensor_of(2, 1);
  pserver_config config = {.text = "learningRate: 0.5"};
  pserver_begin_init(client, true, -1, &is_selected);
  pserver_init_param(client, "w", &value, &config, -1);
  pserver_finish_init(client, -1);
}

static void create(pserver_client *client) {
  pserver_tensor value = tensor_of(2, 1);
  pserver_tensor settled = {0};
  expect_tensor(pserver_create(client, "w", &value, NULL, -1, &settled), &settled);
}

static void note_progress(void *context, uint64_t done, uint64_t total) {
  (void)done;
  (void)total;
  ++*(size_t *)context;
}

static void look_closer(pserver_client *client) {
  pserver_job_info info = {0};
  pserver_position positions[PSERVER_SHARDS_MAX];
  pserver_parameter_details *list = NULL;
  pserver_saved_model saved = {.struct_size = sizeof saved};
  size_t count = 0;
  pserver_job_positions(client, &info, positions, &count, -1);
  if (count > PSERVER_SHARDS_MAX) abort();
  if (pserver_list_details(client, &list, &count, -1) == PSERVER_OK) {
    for (size_t i = 0; i < count; i++) {
      if (!is_json_object(list[i].config)) abort();
    }
    pserver_list_details_release(list, count);
  }
  pserver_save_model(client, "model", note_progress, &count, &saved, -1);
}

static void look(pserver_client *client) {
  pserver_job_info info = {0};
  pserver_parameter_info *list = NULL;
  size_t count = 0;
  pserver_job_status(client, &info, -1);
  if (memchr(info.by, '\0', sizeof info.by) == NULL) abort();
  if (pserver_list(client, &list, &count, -1) == PSERVER_OK) pserver_list_release(list, count);
  pserver_save(client, "model", -1);
  look_closer(client);
}

static void get_as(pserver_client *client, pserver_encoding encoding) {
  const char *names[2] = {"w", "emb:sparse-0"};
  for (size_t i = 0; i < 2; i++) {
    pserver_tensor got = {0};
    expect_tensor(pserver_get(client, &names[i], &got, 1, encoding, -1), &got);
  }
}

static void get(pserver_client *client) { get_as(client, PSERVER_AS_IS); }

static void get_encoded(pserver_client *client) { get_as(client, PSERVER_ENCODING_FLOAT16); }

static void get_grouped(pserver_client *client) {
  get_as(client, PSERVER_ENCODING_INT8);
  get_as(client, PSERVER_ENCODING_E3M0);
}

static const char *const both[2] = {"w", "emb:sparse-0"};

static void get_many(pserver_client *client) {
  for (pserver_encoding encoding = PSERVER_AS_IS; encoding <= PSERVER_ENCODING_E3M0; encoding++) {
    pserver_tensor got[2] = {{0}, {0}};
    pserver_status status = pserver_get(client, both, got, 2, encoding, -1);
    for (size_t i = 0; i < 2; i++) expect_tensor(status, &got[i]);
  }
}

/** The tensors have the known values or memory of their own. */
static void expect_changes(pserver_status status, pserver_tensor *tensor, const pserver_known *known) {
  bool is_known = status == PSERVER_OK && tensor->data == NULL;
  if (is_known && (known->data == NULL || known->origins == NULL || tensor->bytes == 0)) abort();
  if (!is_known) expect_tensor(status, tensor);
}

static void get_changes(pserver_client *client) {
  pserver_tensor first[2] = {{0}, {0}};
  pserver_origins *before = NULL;
  pserver_known known[2] = {{0}, {0}};
  if (pserver_get_known(client, both, first, 2, NULL, &before, NULL, -1) != PSERVER_OK) return;
  for (size_t i = 0; i < 2; i++) known[i] = (pserver_known){first[i].data, before, i};
  for (int i = 0; i < 2; i++) {
    pserver_tensor got[2] = {{0}, {0}};
    pserver_origins *after = NULL;
    pserver_status status = pserver_get_known(client, both, got, 2, known, &after, NULL, -1);
    if ((after != NULL) != (status == PSERVER_OK)) abort();
    for (size_t j = 0; j < 2; j++) expect_changes(status, &got[j], &known[j]);
    pserver_origins_free(after);
  }
  for (size_t i = 0; i < 2; i++) pserver_tensor_release(&first[i]);
  pserver_origins_free(before);
}

static void initialize_many(pserver_client *client) {
  bool is_selected = false;
  pserver_config config = {.text = "learningRate: 0.5"};
  pserver_new_parameter parameters[2] = {{"w", tensor_of(2, 1), &config},
                                         {"emb:sparse-0", tensor_of(2, 2), NULL}};
  pserver_begin_init(client, true, -1, &is_selected);
  for (int i = 0; i < 2; i++) pserver_init_params(client, parameters, 2, -1);
  pserver_finish_init(client, -1);
}

static void send_gradients(pserver_client *client) {
  pserver_gradient grads[2] = {{"w", tensor_of(2, 1), NULL, 0}, {"w", tensor_of(2, 1), NULL, 0}};
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = true;
  options.learning_rate = 0.1;
  for (size_t count = 1; count <= 2; count++) pserver_send_grads(client, grads, count, &options, -1);
}

static void send_rows(pserver_client *client) {
  int64_t rows[2] = {1, -1};
  pserver_gradient grad = {"emb:sparse-0", tensor_of(2, 2), rows, 2};
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = true;
  options.learning_rate = 0.1;
  pserver_send_grads(client, &grad, 1, &options, -1);
}

/** Gradients that are encoded with what rounding has left out of those before. */
static void send_grouped(pserver_client *client) {
  int64_t rows[2] = {1, -1};
  pserver_tensor whole = tensor_of(2, 1);
  pserver_gradient grads[2] = {{"w", whole, NULL, 0}, {"emb:sparse-0", tensor_of(2, 2), rows, 2}};
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = true;
  options.learning_rate = 0.1;
  for (size_t i = 0; i < 4; i++) {
    options.encoding = i % 2 == 0 ? PSERVER_ENCODING_INT8 : PSERVER_ENCODING_E3M0;
    pserver_send_grads(client, grads, 1 + i / 2, &options, -1);
  }
  pserver_push(client, "w", &whole, 0.5, 2, PSERVER_ENCODING_E3M0, -1);
}

static void overwrite(pserver_client *client) {
  const char *name = "w";
  pserver_tensor value = tensor_of(2, 1);
  pserver_set(client, &name, &value, 1, -1);
  pserver_push(client, "w", &value, 0.5, 2, PSERVER_ENCODING_BFLOAT16, -1);
}

static void use_parts(pserver_client *client) {
  int64_t row = -1;
  int64_t columns[2] = {0, 0};
  pserver_indices indices[2] = {{&row, 1}, {columns, 2}};
  pserver_tensor part = tensor_of(1, 2);
  pserver_tensor got = {0};
  expect_tensor(pserver_pull_part(client, "emb:sparse-0", indices, 2, &got, -1), &got);
  pserver_push_part(client, "emb:sparse-0", &part, indices, 2, 1, 1, -1);
  pserver_read_options options;
  pserver_read_options_init(&options);
  options.encoding = PSERVER_ENCODING_BFLOAT16;
  expect_tensor(pserver_pull_part_with(client, "emb:sparse-0", indices, 2, &got, &options, -1), &got);
}

static void keep_step(pserver_client *client) {
  send_gradients(client);
  pserver_end_step(client, -1);
  get(client);
  pserver_exit_steps(client, -1);
}

static void use_rounds(pserver_client *client) {
  static const char *const name = "w";
  pserver_tensor value = tensor_of(2, 1);
  pserver_tensor got = {0};
  pserver_contribution work;
  pserver_fragment *list = NULL;
  pserver_account account;
  size_t count = 0;
  uint64_t number = 0;
  pserver_contribution_init(&work);
  work.fragment = "f";
  pserver_contribute(client, &name, &value, 1, &work, -1, &number);
  if (pserver_fragments(client, &list, &count, &account, -1) == PSERVER_OK) {
    for (size_t i = 0; i < count; i++) {
      if (list[i].name == NULL || list[i].parameter_count == 0) abort();
    }
    pserver_fragments_release(list, count);
  }
  expect_tensor(pserver_pull_fragment(client, "f", &name, &got, 1, 1, PSERVER_AS_IS, -1, &number), &got);
  pserver_exit_steps(client, -1);
}

static void (*const calls[])(pserver_client *) = {initialize,  create,         look,      get,
                                                  get_encoded, send_gradients, send_rows, overwrite,
                                                  use_parts,   keep_step,      get_many,  get_changes,
                                                  initialize_many, get_grouped, send_grouped, use_rounds};

/** The answer to `join` of a job in the mode that the input chooses. */
static void write_join_reply(struct ps_draft *draft, unsigned choice) {
  static const char *const modes[] = {"async", "sync", "ssp"};
  const char *mode = (choice & HAS_ROUNDS) != 0 ? "diloco" : modes[choice % 3];
  ps_draft_begin(draft);
  ps_draft_whole(draft, "session", 41);
  ps_draft_whole(draft, "shards", 16);
  ps_draft_whole(draft, "leaseMs", 5000);
  ps_draft_key(draft, "synchronization");
  ps_pack_map(draft, 2);
  ps_pack_text(draft, "mode", 4);
  ps_pack_text(draft, mode, strlen(mode));
  ps_pack_text(draft, "backups", 7);
  ps_pack_whole(draft, choice / 3 % 2);
  ps_draft_whole(draft, "maxPayloadBytes", 8388608);
  ps_draft_text(draft, "made", "2026-11-22T10:00:00Z");
  if (ps_draft_end(draft) != PSERVER_OK) abort();
}

/** Checks that nothing is under way after every call has returned. */
static void expect_idle(const struct ps_client *client) {
  if (client->calls.first != NULL || client->calls.running != 0) abort();
  if (client->requests.window_bytes != 0 || client->sender.outbox->waiting != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes) {
  if (bytes < 2) return 0;
  struct ps_draft join_reply;
  pserver_options options;
  pserver_client *client = NULL;
  pserver_options_init(&options);
  options.url = "nats://broker";
  options.job = "mnist";
  options.trainer = "worker/1";
  options.inbox_token = "7f3a";
  options.connect_timeout_ms = TIMEOUT_MS;
  options.call_timeout_ms = TIMEOUT_MS;
  options.in_flight_bytes = 65536;
  write_join_reply(&join_reply, input[1] & ~SCRIPTED_JOIN);
  play(input + 2, bytes - 2);
  if ((input[1] & SCRIPTED_JOIN) == 0) {
    answer_join_with((const uint8_t *)join_reply.buffer.data, join_reply.buffer.size);
  }
  if (pserver_connect(&options, &client) == PSERVER_OK) {
    calls[input[0] % (sizeof calls / sizeof calls[0])](client);
    expect_idle(broker.client);
    if (pserver_close(client, -1) != PSERVER_OK) abort();
  }
  const char *message = NULL;
  if (pserver_last_error(&message) != PSERVER_OK && strlen(message) == 0) abort();
  if (!ps_is_utf8(message, strlen(message)) || !is_json_object(pserver_last_error_details())) abort();
  ps_draft_release(&join_reply);
  return 0;
}
