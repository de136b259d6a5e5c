/* Calls that read whole parameters. */
#include "pull/pull.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "errors/details.h"
#include "pull/origins.h"
#include "pull/whole-reads.h"
#include "push/gradients.h"
#include "push/parameter-update.h"
#include "wire/dtypes.h"

pserver_status ps_prepare_target(const struct ps_parameter *parameter, const uint64_t *shape, int32_t rank,
                                 uint64_t elements, pserver_tensor *tensor, bool *was_allocated) {
  uint64_t bytes = elements * ps_dtype_bytes(parameter->dtype);
  *was_allocated = false;
  if (tensor->data != NULL && tensor->dtype != parameter->dtype) {
    const char *name = ps_dtype_name(tensor->dtype);
    const char *received = name == NULL ? "no element type" : name;
    ps_fail(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected %s; received %s", parameter->name,
            ps_dtype_name(parameter->dtype), received);
    return ps_detail_mismatch(parameter->name, ps_dtype_name(parameter->dtype), received);
  }
  if (tensor->data != NULL && tensor->bytes != bytes) {
    return ps_fail_length(parameter->name, bytes, tensor->bytes);
  }
  if (tensor->data == NULL) {
    tensor->data = malloc(bytes == 0 ? 1 : bytes);
    if (tensor->data == NULL) {
      return ps_fail(PSERVER_ERR_INTERNAL, "\"%s\": no memory for %" PRIu64 " bytes", parameter->name,
                     bytes);
    }
    *was_allocated = true;
  }
  tensor->dtype = parameter->dtype;
  tensor->rank = rank;
  tensor->bytes = bytes;
  memcpy(tensor->shape, shape, (size_t)rank * sizeof shape[0]);
  return PSERVER_OK;
}

pserver_status ps_check_read_encoding(const struct ps_parameter *parameter, pserver_encoding encoding) {
  if (encoding == PSERVER_AS_IS || parameter->dtype == PSERVER_FLOAT32) return PSERVER_OK;
  ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": encodings are for float32; it is %s", parameter->name,
          ps_dtype_name(parameter->dtype));
  return ps_detail_mismatch(parameter->name, "float32", ps_dtype_name(parameter->dtype));
}

pserver_status ps_pull_parameters(struct ps_call *call, const char *const *names, pserver_tensor *tensors,
                                  size_t count, const pserver_read_options *options) {
  struct ps_whole_reads reads = {
      .names = names, .tensors = tensors, .count = count, .options = options};
  return ps_read_whole(call, &reads);
}

void pserver_read_options_init(pserver_read_options *options) {
  if (options == NULL) return;
  *options = (pserver_read_options){.struct_size = sizeof *options};
}

pserver_status ps_check_read_options(const struct ps_call *call, const pserver_read_options *options) {
  if (options->struct_size != sizeof *options) {
    ps_fail(
        PSERVER_ERR_BAD_VALUE,
        "%s: struct_size: expected %zu; received %zu: fill the options with pserver_read_options_init",
        call->what, sizeof *options, options->struct_size);
    return ps_detail_numbers(sizeof *options, options->struct_size);
  }
  if (options->encoding == PSERVER_AS_IS || ps_encoding_name(options->encoding) != NULL) {
    return PSERVER_OK;
  }
  return ps_bad_encoding(call->what, options->encoding);
}

static pserver_status check_reads(const struct ps_call *call, const struct ps_whole_reads *reads) {
  if (reads->count == 0) {
    return ps_fail(PSERVER_ERR_EMPTY, "%s: expected at least one name; received none", call->what);
  }
  if (reads->names == NULL || reads->tensors == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected names and tensors; received NULL", call->what);
  }
  return ps_check_read_options(call, reads->options);
}

static pserver_status check_known(const struct ps_call *call, const struct ps_whole_reads *reads) {
  for (size_t i = 0; reads->known != NULL && i < reads->count; i++) {
    const pserver_known *known = &reads->known[i];
    if (known->origins == NULL || known->index < known->origins->count) continue;
    ps_fail(PSERVER_ERR_BAD_VALUE, "%s: known: expected an index below %zu; received %zu", call->what,
            known->origins->count, known->index);
    return ps_detail_numbers(known->origins->count, known->index);
  }
  return PSERVER_OK;
}

static pserver_status get_with(const char *what, pserver_client *handle,
                               const struct ps_whole_reads *wanted, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_whole_reads reads = *wanted;
  pserver_read_options options;
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  pserver_read_options_init(&options);
  if (reads.options == NULL) reads.options = &options;
  status = check_reads(&call, &reads);
  if (status == PSERVER_OK) status = check_known(&call, &reads);
  if (status == PSERVER_OK) status = ps_read_whole(&call, &reads);
  return ps_call_end(&call, status);
}

pserver_status pserver_get(pserver_client *client, const char *const *names, pserver_tensor *tensors,
                           size_t count, pserver_encoding encoding, int64_t timeout_ms) {
  pserver_read_options options = {.struct_size = sizeof options, .encoding = encoding};
  struct ps_whole_reads reads = {
      .names = names, .tensors = tensors, .count = count, .options = &options};
  return get_with("pserver_get", client, &reads, timeout_ms);
}

pserver_status pserver_get_with(pserver_client *client, const char *const *names,
                                pserver_tensor *tensors, size_t count,
                                const pserver_read_options *options, int64_t timeout_ms) {
  struct ps_whole_reads reads = {
      .names = names, .tensors = tensors, .count = count, .options = options};
  return get_with("pserver_get_with", client, &reads, timeout_ms);
}

pserver_status pserver_get_known(pserver_client *client, const char *const *names,
                                 pserver_tensor *tensors, size_t count, const pserver_known *known,
                                 pserver_origins **origins, const pserver_read_options *options,
                                 int64_t timeout_ms) {
  struct ps_whole_reads reads = {.names = names,
                                 .tensors = tensors,
                                 .count = count,
                                 .options = options,
                                 .known = known,
                                 .origins = origins};
  if (origins == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "pserver_get_known: origins: expected a pointer; received NULL");
  }
  return get_with("pserver_get_known", client, &reads, timeout_ms);
}

void pserver_tensor_release(pserver_tensor *tensor) {
  if (tensor == NULL) return;
  free(tensor->data);
  tensor->data = NULL;
}
