/* The calls that change whole parameters, and rows of them. All is checked before any is sent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "details.h"
#include "dtypes.h"
#include "gradients.h"
#include "norm.h"
#include "update.h"

void pserver_grad_options_init(pserver_grad_options *options) {
  if (options == NULL) return;
  *options = (pserver_grad_options){.struct_size = sizeof *options, .end_step = true};
}

pserver_status bad_encoding(const char *what, pserver_encoding encoding) {
  fail(PSERVER_ERR_BAD_VALUE, "%s: encoding: expected bfloat16 or float16, or none; received %d", what,
       (int)encoding);
  detail_json("expected", "[\"bfloat16\",\"float16\"]");
  return detail_signed("received", (int)encoding);
}

pserver_status check_encoding(const struct parameter *parameter, pserver_encoding encoding) {
  if (encoding == PSERVER_AS_IS) return PSERVER_OK;
  if (encoding_name(encoding) == NULL) {
    return bad_encoding(parameter->name, encoding);
  }
  if (parameter->dtype == PSERVER_FLOAT32) return PSERVER_OK;
  fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": encoding: %s is for float32 elements; it is %s",
       parameter->name, encoding_name(encoding), dtype_name(parameter->dtype));
  return detail_mismatch(parameter->name, "float32", dtype_name(parameter->dtype));
}

pserver_status check_changeable(const struct parameter *parameter) {
  if (!parameter->is_static) return PSERVER_OK;
  fail(PSERVER_ERR_STATIC, "\"%s\" is static: it takes no update", parameter->name);
  return detail_text("parameter", parameter->name);
}

pserver_status finish_update(struct update *update, uint64_t elements) {
  const struct parameter *parameter = update->parameter;
  pserver_status status = check_finite(parameter, update->encoding, update->data, elements);
  update->has_norm = update->operation == UPDATE_GRADIENT && parameter->clips_norm;
  if (status != PSERVER_OK || !update->has_norm) return status;
  update->norm = l2_norm(parameter->dtype, update->encoding, update->data, elements);
  return PSERVER_OK;
}

/** An update of all of a parameter. */
static pserver_status whole_update(struct update *update, const pserver_tensor *tensor) {
  const struct parameter *parameter = update->parameter;
  pserver_status status = check_changeable(parameter);
  if (status == PSERVER_OK) status = check_encoding(parameter, update->encoding);
  if (status == PSERVER_OK) {
    status = fit_tensor(parameter, tensor, parameter->shape, parameter->rank,
                        parameter->layout.elements);
  }
  if (status != PSERVER_OK) return status;
  update->data = tensor->data;
  return finish_update(update, parameter->layout.elements);
}

static pserver_status send_whole(struct call *call, const char *const *names,
                                 const pserver_tensor *values, size_t count,
                                 const struct update *kind, bool stored_is_enough) {
  struct parameter **found = calloc(count, sizeof *found);
  struct update *updates = calloc(count, sizeof *updates);
  pserver_status status = found == NULL || updates == NULL
                              ? fail(PSERVER_ERR_INTERNAL, "no memory for %zu updates", count)
                              : find_parameters(call, names, count, false, found);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    updates[i] = *kind;
    updates[i].parameter = found[i];
    status = whole_update(&updates[i], &values[i]);
  }
  if (status == PSERVER_OK) status = send_updates(call, updates, count, stored_is_enough);
  if (found != NULL) give_back_parameters(call->client, found, count);
  free(found);
  free(updates);
  return status;
}

void pserver_update_options_init(pserver_update_options *options) {
  if (options == NULL) return;
  *options = (pserver_update_options){.struct_size = sizeof *options};
}

pserver_status check_update_options(const struct call *call, const pserver_update_options *options) {
  if (options == NULL) return PSERVER_OK;
  if (options->struct_size == sizeof *options) {
    bool is_known = options->encoding == PSERVER_AS_IS || encoding_name(options->encoding) != NULL;
    return is_known ? PSERVER_OK : bad_encoding(call->what, options->encoding);
  }
  fail(PSERVER_ERR_BAD_VALUE,
       "%s: struct_size: expected %zu; received %zu: fill the options with pserver_update_options_init",
       call->what, sizeof *options, options->struct_size);
  detail_whole("expected", sizeof *options);
  return detail_whole("received", options->struct_size);
}

static pserver_status set_with(const char *what, pserver_client *handle, const char *const *names,
                               const pserver_tensor *values, size_t count,
                               const pserver_update_options *options, int64_t timeout_ms) {
  struct call call;
  struct update kind = {.operation = UPDATE_SET};
  pserver_status status = call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = check_update_options(&call, options);
  if (status != PSERVER_OK) return call_end(&call, status);
  if (count == 0) {
    status = fail(PSERVER_ERR_EMPTY, "%s: expected at least one tensor; received none", what);
  } else if (names == NULL || values == NULL) {
    status = fail(PSERVER_ERR_BAD_VALUE, "%s: expected names and values; received NULL", what);
  } else if (options != NULL && options->encoding != PSERVER_AS_IS) {
    status = fail(PSERVER_ERR_UNSUPPORTED, "%s: encoding: values that are set travel as they are", what);
  } else {
    status = send_whole(&call, names, values, count, &kind,
                        options != NULL && options->stored_is_enough);
  }
  return call_end(&call, status);
}

pserver_status pserver_set(pserver_client *client, const char *const *names,
                           const pserver_tensor *values, size_t count, int64_t timeout_ms) {
  return set_with("pserver_set", client, names, values, count, NULL, timeout_ms);
}

pserver_status pserver_set_with(pserver_client *client, const char *const *names,
                                const pserver_tensor *values, size_t count,
                                const pserver_update_options *options, int64_t timeout_ms) {
  return set_with("pserver_set_with", client, names, values, count, options, timeout_ms);
}

pserver_status check_factors(double alpha, double beta) {
  if (isfinite(alpha) && isfinite(beta)) return PSERVER_OK;
  fail(PSERVER_ERR_BAD_VALUE, "alpha and beta: expected finite numbers; received %g and %g", alpha, beta);
  detail_text("expected", "a finite number");
  return detail_number("received", isfinite(alpha) ? beta : alpha);
}

static pserver_status push_with(const char *what, pserver_client *handle, const char *name,
                                const pserver_tensor *value, double alpha, double beta,
                                const pserver_update_options *options, int64_t timeout_ms) {
  struct call call;
  struct update kind = {.operation = UPDATE_MIX, .alpha = alpha, .beta = beta};
  pserver_status status = call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = check_update_options(&call, options);
  if (status == PSERVER_OK) status = check_factors(alpha, beta);
  if (status == PSERVER_OK) status = check_tensor(name, value);
  if (status == PSERVER_OK && options != NULL) kind.encoding = options->encoding;
  if (status == PSERVER_OK) {
    status = send_whole(&call, &name, value, 1, &kind, options != NULL && options->stored_is_enough);
  }
  return call_end(&call, status);
}

pserver_status pserver_push(pserver_client *client, const char *name, const pserver_tensor *value,
                            double alpha, double beta, pserver_encoding encoding,
                            int64_t timeout_ms) {
  pserver_update_options options = {.struct_size = sizeof options, .encoding = encoding};
  return push_with("pserver_push", client, name, value, alpha, beta, &options, timeout_ms);
}

pserver_status pserver_push_with(pserver_client *client, const char *name,
                                 const pserver_tensor *value, double alpha, double beta,
                                 const pserver_update_options *options, int64_t timeout_ms) {
  return push_with("pserver_push_with", client, name, value, alpha, beta, options, timeout_ms);
}
