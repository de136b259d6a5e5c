/* Calls that change whole parameters, and the checks that all updates share. Checks come before anything is
 * sent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "calls/parameters.h"
#include "errors/details.h"
#include "push/gradients.h"
#include "push/norm.h"
#include "push/parameter-set.h"
#include "push/parameter-update.h"
#include "push/sent-updates.h"
#include "wire/dtypes.h"

void pserver_grad_options_init(pserver_grad_options *options) {
  if (options == NULL) return;
  *options = (pserver_grad_options){.struct_size = sizeof *options, .end_step = true};
}

pserver_status ps_bad_encoding(const char *what, pserver_encoding encoding) {
  ps_fail(PSERVER_ERR_BAD_VALUE, "%s: encoding: expected bfloat16 or float16, or none; received %d",
          what, (int)encoding);
  ps_detail_json("expected", "[\"bfloat16\",\"float16\"]");
  return ps_detail_signed("received", (int)encoding);
}

pserver_status ps_check_encoding(const struct ps_parameter *parameter, pserver_encoding encoding) {
  if (encoding == PSERVER_AS_IS) return PSERVER_OK;
  if (ps_encoding_name(encoding) == NULL) {
    return ps_bad_encoding(parameter->name, encoding);
  }
  if (parameter->dtype == PSERVER_FLOAT32) return PSERVER_OK;
  ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": encoding: %s is for float32 elements; it is %s",
          parameter->name, ps_encoding_name(encoding), ps_dtype_name(parameter->dtype));
  return ps_detail_mismatch(parameter->name, "float32", ps_dtype_name(parameter->dtype));
}

pserver_status ps_check_changeable(const struct ps_parameter *parameter) {
  if (!parameter->is_static) return PSERVER_OK;
  ps_fail(PSERVER_ERR_STATIC, "\"%s\" is static: it takes no update", parameter->name);
  return ps_detail_text("parameter", parameter->name);
}

pserver_status ps_finish_update(struct ps_parameter_update *update, uint64_t elements) {
  const struct ps_parameter *parameter = update->parameter;
  pserver_status status = ps_check_finite(parameter, update->encoding, update->data, elements);
  update->has_norm = update->operation == PS_UPDATE_GRADIENT && parameter->clips_norm;
  if (status != PSERVER_OK || !update->has_norm) return status;
  update->norm = ps_l2_norm(parameter->dtype, update->encoding, update->data, elements);
  return PSERVER_OK;
}

/** Prepares an update of a whole parameter. */
static pserver_status whole_update(struct ps_parameter_update *update, const pserver_tensor *tensor) {
  const struct ps_parameter *parameter = update->parameter;
  pserver_status status = ps_check_changeable(parameter);
  if (status == PSERVER_OK) status = ps_check_encoding(parameter, update->encoding);
  if (status == PSERVER_OK) {
    status =
        ps_fit_tensor(parameter, tensor, parameter->shape, parameter->rank, parameter->layout.elements);
  }
  if (status != PSERVER_OK) return status;
  update->data = tensor->data;
  return ps_finish_update(update, parameter->layout.elements);
}

static pserver_status send_whole(struct ps_call *call, const char *const *names,
                                 const pserver_tensor *values, size_t count,
                                 const struct ps_parameter_update *kind, bool stored_is_enough) {
  struct ps_parameter **found = calloc(count, sizeof *found);
  struct ps_parameter_update *updates = calloc(count, sizeof *updates);
  struct ps_parameter_set set;
  bool has_memory = ps_parameter_set_init(&set, count) && found != NULL && updates != NULL;
  pserver_status status = has_memory
                              ? ps_find_parameters(call, names, count, false, found)
                              : ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu updates", count);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    updates[i] = *kind;
    updates[i].parameter = found[i];
    updates[i].is_repeated = !ps_parameter_set_add(&set, found[i]);
    status = whole_update(&updates[i], &values[i]);
  }
  struct ps_call_mode mode = {.is_done_when_stored = stored_is_enough};
  if (status == PSERVER_OK) status = ps_send_updates(call, updates, count, mode, false);
  if (found != NULL) ps_parameters_unref(found, count);
  ps_parameter_set_release(&set);
  free(found);
  free(updates);
  return status;
}

void pserver_update_options_init(pserver_update_options *options) {
  if (options == NULL) return;
  *options = (pserver_update_options){.struct_size = sizeof *options};
}

pserver_status ps_check_update_options(const struct ps_call *call, const pserver_update_options *options) {
  if (options == NULL) return PSERVER_OK;
  if (options->struct_size == sizeof *options) {
    bool is_known = options->encoding == PSERVER_AS_IS || ps_encoding_name(options->encoding) != NULL;
    return is_known ? PSERVER_OK : ps_bad_encoding(call->what, options->encoding);
  }
  ps_fail(
      PSERVER_ERR_BAD_VALUE,
      "%s: struct_size: expected %zu; received %zu: fill the options with pserver_update_options_init",
      call->what, sizeof *options, options->struct_size);
  return ps_detail_numbers(sizeof *options, options->struct_size);
}

static pserver_status set_with(const char *what, pserver_client *handle, const char *const *names,
                               const pserver_tensor *values, size_t count,
                               const pserver_update_options *options, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_parameter_update kind = {.operation = PS_UPDATE_SET};
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = ps_check_update_options(&call, options);
  if (status != PSERVER_OK) return ps_call_end(&call, status);
  if (count == 0) {
    status = ps_fail(PSERVER_ERR_EMPTY, "%s: expected at least one tensor; received none", what);
  } else if (names == NULL || values == NULL) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected names and values; received NULL", what);
  } else if (options != NULL && options->encoding != PSERVER_AS_IS) {
    status =
        ps_fail(PSERVER_ERR_UNSUPPORTED, "%s: encoding: values that are set cannot be encoded", what);
  } else {
    status =
        send_whole(&call, names, values, count, &kind, options != NULL && options->stored_is_enough);
  }
  return ps_call_end(&call, status);
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

pserver_status ps_check_factors(double alpha, double beta) {
  if (isfinite(alpha) && isfinite(beta)) return PSERVER_OK;
  ps_fail(PSERVER_ERR_BAD_VALUE, "alpha and beta: expected finite numbers; received %g and %g", alpha,
          beta);
  ps_detail_text("expected", "a finite number");
  return ps_detail_number("received", isfinite(alpha) ? beta : alpha);
}

static pserver_status push_with(const char *what, pserver_client *handle, const char *name,
                                const pserver_tensor *value, double alpha, double beta,
                                const pserver_update_options *options, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_parameter_update kind = {.operation = PS_UPDATE_MIX, .alpha = alpha, .beta = beta};
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = ps_check_update_options(&call, options);
  if (status == PSERVER_OK) status = ps_check_factors(alpha, beta);
  if (status == PSERVER_OK) status = ps_check_tensor(name, value);
  if (status == PSERVER_OK && options != NULL) kind.encoding = options->encoding;
  if (status == PSERVER_OK) {
    status = send_whole(&call, &name, value, 1, &kind, options != NULL && options->stored_is_enough);
  }
  return ps_call_end(&call, status);
}

pserver_status pserver_push(pserver_client *client, const char *name, const pserver_tensor *value,
                            double alpha, double beta, pserver_encoding encoding, int64_t timeout_ms) {
  pserver_update_options options = {.struct_size = sizeof options, .encoding = encoding};
  return push_with("pserver_push", client, name, value, alpha, beta, &options, timeout_ms);
}

pserver_status pserver_push_with(pserver_client *client, const char *name, const pserver_tensor *value,
                                 double alpha, double beta, const pserver_update_options *options,
                                 int64_t timeout_ms) {
  return push_with("pserver_push_with", client, name, value, alpha, beta, options, timeout_ms);
}
