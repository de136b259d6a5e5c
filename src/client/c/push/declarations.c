#include "push/push.h"

#include <stdlib.h>
#include <string.h>

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
    ps_pack_key(draft, "optimizerConfig");
    ps_pack_bytes(draft, config->optimizer_config, config->optimizer_config_bytes);
  }
  if (config->parameter_config != NULL) {
    ps_pack_key(draft, "parameterConfig");
    ps_pack_bytes(draft, config->parameter_config, config->parameter_config_bytes);
  }
}

void ps_pack_declaration(struct ps_draft *draft, const struct ps_declaration *declaration) {
  const pserver_tensor *value = declaration->value;
  const char *dtype = ps_dtype_name(value->dtype);
  ps_pack_map(draft, 4);
  ps_pack_key(draft, "name");
  ps_pack_name(draft, declaration->name);
  ps_pack_key(draft, "dtype");
  ps_pack_text(draft, dtype, strlen(dtype));
  ps_pack_key(draft, "shape");
  ps_pack_shape(draft, value->shape, value->rank);
  ps_pack_key(draft, "config");
  pack_config(draft, declaration->config);
}

static bool has_empty_dimension(const pserver_tensor *value) {
  for (int32_t axis = 0; axis < value->rank; axis++) {
    if (value->shape[axis] == 0) return true;
  }
  return false;
}

/**
 * Whether a configuration may allow values that are not finite; the setting's name has two spellings, and may
 * contain escapes.
 */
static bool may_allow_non_finite(const pserver_config *config) {
  if (config == NULL || config->text == NULL) return false;
  return strstr(config->text, "onFinite") != NULL || strstr(config->text, "on_finite") != NULL ||
         strchr(config->text, '\\') != NULL;
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
  status = ps_check_bools(name, value);
  if (status != PSERVER_OK) return status;
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
              "expected the parameter \"%s\" in the reply; received another or none", name);
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
  size_t bytes =
      DECLARATION_BYTES + strlen(declaration->name) + SIZE_BYTES * (size_t)declaration->value->rank;
  if (config == NULL) return bytes;
  if (config->text != NULL) bytes += strlen(config->text);
  if (config->optimizer_config != NULL) bytes += config->optimizer_config_bytes;
  if (config->parameter_config != NULL) bytes += config->parameter_config_bytes;
  return bytes;
}

/** How many declarations, and how many bytes of them, fit into one request. */
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
    bool fits = part_count > 0 && parts[part_count - 1].count < most.count && bytes + more <= most.bytes;
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
  if (requests == NULL) return ps_no_memory("%zu requests", count);
  for (size_t i = 0; i < count; i++) {
    requests[i] = (struct ps_lifecycle_request){.verb = "declare",
                                                .write = write_declare,
                                                .read = read_declare,
                                                .context = &parts[i],
                                                .has_session = true,
                                                .is_asked_again = true};
  }
  pserver_status status = ps_run_lifecycles(call, &call->client->session.lifecycle, requests, count);
  free(requests);
  return status;
}

pserver_status ps_declare(struct ps_call *call, uint64_t epoch, struct ps_declaration *declarations,
                          size_t count) {
  struct declare_part *parts = calloc(count, sizeof *parts);
  if (parts == NULL) return ps_no_memory("%zu declarations", count);
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
