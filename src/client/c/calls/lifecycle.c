#include "calls/calls.h"
#include "calls/client.h"
#include "errors/errors.h"
#include "push/push.h"
#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lifecycle requests, each sent under the session that is current at the time. */

static pserver_status write_request(struct ps_ask *ask, struct ps_draft *draft) {
  const struct ps_lifecycle_request *request = ask->context;
  if (request->has_session) {
    ps_draft_whole(draft, "session", request->lifecycle->core->session);
  }
  if (request->write != NULL) request->write(request->context, draft);
  return ps_draft_end(draft);
}

static pserver_status read_request(struct ps_ask *ask, const struct ps_message *message) {
  const struct ps_lifecycle_request *request = ask->context;
  return request->read == NULL ? PSERVER_OK : request->read(request->context, message);
}

static pserver_status note_received(struct ps_ask *ask, pserver_status status,
                                    const struct ps_message *message) {
  struct ps_lifecycle_request *request = ask->context;
  request->received = message == NULL ? 0 : ps_received_session(message);
  return status;
}

static pserver_status no_host(struct ps_ask *ask) {
  const struct ps_lifecycle_request *request = ask->context;
  const char *job = request->lifecycle->identity->job;
  ps_fail(PSERVER_ERR_NO_HOST,
          "no host of job \"%s\" answers: start one on this broker, or check the name of the job "
          "and the broker's address",
          job);
  return ps_detail_text("job", job);
}

struct ps_failure *ps_lifecycle_failure(const struct ps_lifecycle_request *request) {
  struct ps_failure *failure = ps_failure_of_last();
  if (failure->references > 0) failure->received = request->received;
  return failure;
}

/** Turns the timeout of a request into NO_HOST. */
static pserver_status explain(struct ps_lifecycle_request *request, pserver_status status) {
  if (status != PSERVER_ERR_TIMEOUT || ps_ask_group_remaining_ms(&request->group) > 0) return status;
  char text[PS_ERROR_TEXT_BYTES / 2];
  snprintf(text, sizeof text, "%.500s", ps_last_error()->text);
  status = no_host(&request->ask);
  ps_fail_prefixed("%s; ", text);
  return status;
}

static void on_over(struct ps_ask_group *group, pserver_status status) {
  struct ps_lifecycle_request *request = group->context;
  status = explain(request, status);
  if (status == PSERVER_OK || !request->is_asked_again) {
    request->over(request, status);
    return;
  }
  struct ps_failure *failure = ps_lifecycle_failure(request);
  ps_session_core_request_failed(request->lifecycle->core, &request->core, failure);
  ps_failure_drop(failure);
}

static void ask_now(struct ps_lifecycle_request *request) {
  const struct ps_identity *identity = request->lifecycle->identity;
  request->ask = (struct ps_ask){.write = write_request,
                                 .read = read_request,
                                 .nobody = no_host,
                                 .refused = note_received,
                                 .context = request};
  request->group = (struct ps_ask_group){.asks = &request->ask,
                                         .count = 1,
                                         .ends_at_ms = request->ends_at_ms,
                                         .over = on_over,
                                         .context = request};
  snprintf(request->ask.subject, sizeof request->ask.subject, "ps.%s.lifecycle.%s.%s", identity->job,
           identity->id, request->verb);
  ps_ask_group_begin(request->lifecycle->requests, &request->group);
}

void ps_lifecycle_begin(const struct ps_lifecycle *lifecycle, struct ps_lifecycle_request *request) {
  request->lifecycle = lifecycle;
  request->core = (struct ps_session_request){.context = request};
  request->received = 0;
  ask_now(request);
}

void ps_lifecycle_end(struct ps_lifecycle_request *request, pserver_status status) {
  if (!ps_is_queued(&request->core.place)) {
    ps_ask_group_end(&request->group, status);
    return;
  }
  ps_session_core_request_ended(request->lifecycle->core, &request->core);
  request->over(request, status);
}

void ps_repeat_request(void *shell, struct ps_session_request *request) {
  (void)shell;
  ask_now(request->context);
}

void ps_fail_request(void *shell, struct ps_session_request *request, struct ps_failure *failure) {
  (void)shell;
  struct ps_lifecycle_request *failed = request->context;
  failed->over(failed, ps_fail_as_core(failure));
}

/* Calls that wait for requests. */

struct lifecycle_task {
  struct ps_task task;
  const struct ps_lifecycle *lifecycle;
  struct ps_lifecycle_request *requests;
  size_t count;
  /** Number of requests that are not over, and one more while begin_task() or end_task() runs. */
  size_t open;
  /** The first error. */
  pserver_status status;
  struct ps_error error;
};

/** Counts one request less; the last one ends the task, which may be freed then. */
static void close_one(struct lifecycle_task *asked) {
  if (--asked->open > 0) return;
  if (asked->status != PSERVER_OK) ps_fail_with(&asked->error);
  ps_task_finish(&asked->task, asked->status);
}

static void note_over(struct ps_lifecycle_request *request, pserver_status status) {
  struct lifecycle_task *asked = request->owner;
  request->is_over = true;
  if (status != PSERVER_OK && asked->status == PSERVER_OK) {
    asked->status = status;
    asked->error = *ps_last_error();
  }
  close_one(asked);
}

static void begin_task(struct ps_task *task) {
  struct lifecycle_task *asked = (struct lifecycle_task *)task;
  asked->open = asked->count + 1;
  for (size_t i = 0; i < asked->count; i++) {
    ps_lifecycle_begin(asked->lifecycle, &asked->requests[i]);
  }
  close_one(asked);
}

static void end_task(struct ps_task *task, pserver_status why) {
  struct lifecycle_task *asked = (struct lifecycle_task *)task;
  struct ps_error error = *ps_last_error();
  asked->open++;
  for (size_t i = 0; i < asked->count; i++) {
    if (asked->requests[i].is_over) continue;
    ps_fail_with(&error);
    ps_lifecycle_end(&asked->requests[i], why);
  }
  close_one(asked);
}

/**
 * Sends the requests of a call, all at once, and waits for all answers. Returns the first error. Sets the
 * requests' `over`, `owner` and `ends_at_ms`.
 */
static pserver_status ps_run_lifecycles(struct ps_call *call, const struct ps_lifecycle *lifecycle,
                                        struct ps_lifecycle_request *requests, size_t count) {
  struct lifecycle_task asked = {.task = {.begin = begin_task, .end = end_task},
                                 .lifecycle = lifecycle,
                                 .requests = requests,
                                 .count = count};
  for (size_t i = 0; i < count; i++) {
    requests[i].over = note_over;
    requests[i].owner = &asked;
    requests[i].ends_at_ms = call->ends_at_ms;
  }
  return ps_task_run(call, &asked.task);
}

pserver_status ps_run_lifecycle(struct ps_call *call, const struct ps_lifecycle *lifecycle,
                                struct ps_lifecycle_request *request) {
  return ps_run_lifecycles(call, lifecycle, request, 1);
}

pserver_status ps_request_lifecycle(struct ps_call *call, const struct ps_lifecycle *lifecycle,
                                    const char *verb, ps_write_entries write, ps_read_reply read,
                                    void *context) {
  struct ps_lifecycle_request request = {.verb = verb,
                                         .write = write,
                                         .read = read,
                                         .context = context,
                                         .has_session = strcmp(verb, "status") != 0,
                                         .is_asked_again = true};
  return ps_run_lifecycle(call, lifecycle, &request);
}

/* Checks the parameters that callers declare, and declares them with few requests. */

/** Maximum bytes of a declaration without name, shape and configuration; and of one size of its shape. */
#define DECLARATION_BYTES 64
#define SIZE_BYTES 9

static bool has_paddle(const pserver_config *config) {
  return config != NULL && (config->optimizer_config != NULL || config->parameter_config != NULL);
}

static void pack_config(struct ps_draft *draft, const pserver_config *config) {
  if (!has_paddle(config)) {
    if (config != NULL && config->text != NULL) ps_pack_text(draft, config->text, strlen(config->text));
    else ps_pack_map(draft, 0);
    return;
  }
  ps_pack_map(draft, (config->optimizer_config != NULL) + (size_t)(config->parameter_config != NULL));
  if (config->optimizer_config != NULL) {
    ps_pack_text(draft, "optimizerConfig", 15);
    ps_pack_bytes(draft, config->optimizer_config, config->optimizer_config_bytes);
  }
  if (config->parameter_config != NULL) {
    ps_pack_text(draft, "parameterConfig", 15);
    ps_pack_bytes(draft, config->parameter_config, config->parameter_config_bytes);
  }
}

void ps_pack_declaration(struct ps_draft *draft, const struct ps_declaration *declaration) {
  const pserver_tensor *value = declaration->value;
  const char *dtype = ps_dtype_name(value->dtype);
  ps_pack_map(draft, 4);
  ps_pack_text(draft, "name", 4);
  ps_pack_name(draft, declaration->name);
  ps_pack_text(draft, "dtype", 5);
  ps_pack_text(draft, dtype, strlen(dtype));
  ps_pack_text(draft, "shape", 5);
  ps_pack_shape(draft, value->shape, value->rank);
  ps_pack_text(draft, "config", 6);
  pack_config(draft, declaration->config);
}

static bool has_empty_dimension(const pserver_tensor *value) {
  for (int32_t axis = 0; axis < value->rank; axis++) {
    if (value->shape[axis] == 0) return true;
  }
  return false;
}

/** Whether a configuration may allow values that are not finite; the setting's name may contain escapes. */
static bool may_allow_non_finite(const pserver_config *config) {
  if (config == NULL || config->text == NULL) return false;
  return strstr(config->text, "allowNonFinite") != NULL || strchr(config->text, '\\') != NULL;
}

/**
 * NON_FINITE if the configuration cannot allow such values: before the parameter is declared, because
 * others would wait for the values of a declared one. If it may allow them, the values are checked after
 * the host has read it.
 */
static pserver_status check_first_values(struct ps_declaration *declaration, uint64_t elements) {
  if (may_allow_non_finite(declaration->config)) return PSERVER_OK;
  const pserver_tensor *value = declaration->value;
  const struct ps_parameter undeclared = {.name = (char *)declaration->name, .dtype = value->dtype};
  pserver_status status = ps_check_finite(&undeclared, PSERVER_AS_IS, value->data, elements);
  declaration->is_finite = status == PSERVER_OK;
  return status;
}

pserver_status ps_check_declaration(struct ps_declaration *declaration) {
  char token[PS_TOKEN_SIZE];
  const char *name = declaration->name;
  const pserver_tensor *value = declaration->value;
  pserver_status status = ps_escape_name(name, name == NULL ? 0 : strlen(name), token);
  if (status == PSERVER_OK) status = ps_check_tensor(name, value);
  if (status != PSERVER_OK) return status;
  uint64_t elements = ps_element_count(value->shape, value->rank);
  if (elements == 0) {
    return ps_fail_shape(name,
                         has_empty_dimension(value) ? "dimensions that are whole numbers of 1 or more"
                                                    : "fewer than 2^53 elements",
                         value);
  }
  uint64_t bytes = elements * ps_dtype_bytes(value->dtype);
  if (value->bytes != bytes) return ps_fail_length(name, bytes, value->bytes);
  if (has_paddle(declaration->config) && declaration->config->text != NULL) {
    ps_fail(PSERVER_ERR_BAD_CONFIG, "\"%s\": config: expected text or messages; received both", name);
    return ps_detail_mismatch(name, "text or messages", "both");
  }
  return check_first_values(declaration, elements);
}

pserver_status ps_read_declared(struct ps_declaration *const *declarations, size_t count,
                                const struct ps_message *message) {
  struct ps_parameter *listed[PS_PARAMETERS_PER_REQUEST_MAX] = {NULL};
  size_t received = 0;
  pserver_status status = ps_read_parameter_list(message, listed, count, &received);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    struct ps_declaration *declaration = declarations[i];
    const char *name = declaration->name;
    if (listed[i] == NULL || !ps_has_name(listed[i], name, strlen(name))) {
      ps_fail(PSERVER_ERR_BAD_MESSAGE,
              "expected the parameter \"%s\" in the reply; received another or none",
              name);
      status = ps_detail_text("parameter", name);
    } else {
      ps_parameters_unref(&declaration->parameter, 1);
      declaration->parameter = listed[i];
      listed[i] = NULL;
    }
  }
  ps_parameters_unref(listed, received);
  return status;
}

/** Declarations of one request. */
struct declare_part {
  uint64_t epoch;
  struct ps_declaration *declarations;
  size_t count;
};

static void write_declare(void *context, struct ps_draft *draft) {
  const struct declare_part *part = context;
  ps_draft_whole(draft, "epoch", part->epoch);
  ps_draft_key(draft, "parameters");
  ps_pack_list(draft, part->count);
  for (size_t i = 0; i < part->count; i++) ps_pack_declaration(draft, &part->declarations[i]);
}

static pserver_status read_declare(void *context, const struct ps_message *message) {
  const struct declare_part *part = context;
  struct ps_declaration *listed[PS_PARAMETERS_PER_REQUEST_MAX];
  for (size_t i = 0; i < part->count; i++) listed[i] = &part->declarations[i];
  return ps_read_declared(listed, part->count, message);
}

/** Returns the maximum number of bytes of a declaration in a request. */
static size_t declaration_bytes(const struct ps_declaration *declaration) {
  const pserver_config *config = declaration->config;
  size_t bytes = DECLARATION_BYTES + strlen(declaration->name) +
                 SIZE_BYTES * (size_t)declaration->value->rank;
  if (config == NULL) return bytes;
  if (config->text != NULL) bytes += strlen(config->text);
  if (config->optimizer_config != NULL) bytes += config->optimizer_config_bytes;
  if (config->parameter_config != NULL) bytes += config->parameter_config_bytes;
  return bytes;
}

/** Limits of a request. */
struct part_limits {
  size_t count;
  size_t bytes;
};

/** Divides declarations among requests, as many in each as the limits allow; returns the number of
 * requests. */
static size_t divide(uint64_t epoch, struct ps_declaration *declarations, size_t count,
                     struct part_limits most, struct declare_part *parts) {
  size_t part_count = 0;
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    size_t more = declaration_bytes(&declarations[i]);
    bool fits = part_count > 0 && parts[part_count - 1].count < most.count &&
                bytes + more <= most.bytes;
    if (!fits) {
      parts[part_count++] = (struct declare_part){.epoch = epoch, .declarations = &declarations[i]};
      bytes = 0;
    }
    parts[part_count - 1].count++;
    bytes += more;
  }
  return part_count;
}

static pserver_status ask(struct ps_call *call, struct declare_part *parts, size_t count) {
  struct ps_lifecycle_request *requests = calloc(count, sizeof *requests);
  if (requests == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu requests", count);
  for (size_t i = 0; i < count; i++) {
    requests[i] = (struct ps_lifecycle_request){.verb = "declare",
                                                .write = write_declare,
                                                .read = read_declare,
                                                .context = &parts[i],
                                                .has_session = true,
                                                .is_asked_again = true};
  }
  pserver_status status =
      ps_run_lifecycles(call, &call->client->session.lifecycle, requests, count);
  free(requests);
  return status;
}

pserver_status ps_declare(struct ps_call *call, uint64_t epoch, struct ps_declaration *declarations,
                          size_t count) {
  struct declare_part *parts = calloc(count, sizeof *parts);
  if (parts == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu declarations", count);
  /* Also limited by bytes, because a configuration as given may be longer than as the host stores it. */
  struct part_limits most = {ps_parameters_per_request(call->client),
                             ps_data_bytes_max(&call->client->connection)};
  size_t part_count = divide(epoch, declarations, count, most, parts);
  pserver_status status = ask(call, parts, part_count);
  free(parts);
  return status;
}

void ps_declarations_release(struct ps_declaration *declarations, size_t count) {
  for (size_t i = 0; i < count; i++) ps_parameters_unref(&declarations[i].parameter, 1);
}
