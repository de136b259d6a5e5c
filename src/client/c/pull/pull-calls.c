/* Whole parameters are read, all blocks of all names in one window. */
#include "pull/pull.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "calls/parameters.h"
#include "errors/details.h"
#include "push/gradients.h"
#include "wire/dtypes.h"

pserver_status ps_prepare_target(const struct parameter *parameter, const uint64_t *shape, int32_t rank,
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
    ps_fail(PSERVER_ERR_BAD_LENGTH, "\"%s\": expected %" PRIu64 " bytes; received %" PRIu64,
            parameter->name, bytes, tensor->bytes);
    ps_detail_text("parameter", parameter->name);
    ps_detail_whole("expected", bytes);
    return ps_detail_whole("received", tensor->bytes);
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

static void release_allocated(pserver_tensor *tensors, const bool *was_allocated, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (was_allocated[i]) pserver_tensor_release(&tensors[i]);
  }
}

static pserver_status read_all(struct call *call, struct parameter **found, pserver_tensor *tensors,
                               size_t count, const pserver_read_options *options, bool *is_replaced) {
  size_t total = 0;
  for (size_t i = 0; i < count; i++) total += found[i]->layout.blocks;
  struct block_read *reads = calloc(total, sizeof *reads);
  if (reads == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu blocks", total);
  struct block_read *next = reads;
  for (size_t i = 0; i < count; i++) {
    uint64_t *version = options->versions == NULL ? NULL : &options->versions[i];
    if (version != NULL) *version = 0;
    for (uint32_t index = 0; index < found[i]->layout.blocks; index++) {
      *next++ = (struct block_read){.parameter = found[i],
                                    .index = index,
                                    .encoding = options->encoding,
                                    .target = tensors[i].data,
                                    .version = version,
                                    .is_replaced = is_replaced};
    }
  }
  pserver_status status = ps_read_blocks(call, reads, total);
  free(reads);
  return status;
}

pserver_status ps_check_read_encoding(const struct parameter *parameter, pserver_encoding encoding) {
  if (encoding == PSERVER_AS_IS || parameter->dtype == PSERVER_FLOAT32) return PSERVER_OK;
  ps_fail(PSERVER_ERR_UNSUPPORTED, "\"%s\": encodings are for float32; it is %s", parameter->name,
          ps_dtype_name(parameter->dtype));
  return ps_detail_mismatch(parameter->name, "float32", ps_dtype_name(parameter->dtype));
}

static pserver_status prepare_all(struct parameter **found, pserver_tensor *tensors, bool *was_allocated,
                                  size_t count, pserver_encoding encoding) {
  pserver_status status = PSERVER_OK;
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    status = ps_check_read_encoding(found[i], encoding);
    if (status != PSERVER_OK) return status;
    status = ps_prepare_target(found[i], found[i]->shape, found[i]->rank, found[i]->layout.elements,
                               &tensors[i], &was_allocated[i]);
  }
  return status;
}

static pserver_status pull_once(struct call *call, const char *const *names, pserver_tensor *tensors,
                                size_t count, const pserver_read_options *options, bool *is_replaced) {
  struct parameter **found = calloc(count, sizeof *found);
  bool *was_allocated = calloc(count, sizeof *was_allocated);
  *is_replaced = false;
  pserver_status status = found == NULL || was_allocated == NULL
                              ? ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu names", count)
                              : ps_find_parameters(call, names, count, true, found);
  if (status == PSERVER_OK) {
    status = prepare_all(found, tensors, was_allocated, count, options->encoding);
  }
  if (status == PSERVER_OK) status = read_all(call, found, tensors, count, options, is_replaced);
  if (status != PSERVER_OK && was_allocated != NULL) release_allocated(tensors, was_allocated, count);
  if (found != NULL) ps_parameters_unref(found, count);
  free(found);
  free(was_allocated);
  return status;
}

pserver_status ps_pull_parameters(struct call *call, const char *const *names, pserver_tensor *tensors,
                                  size_t count, const pserver_read_options *options) {
  bool is_replaced = true;
  pserver_status status = PSERVER_OK;
  while (is_replaced) status = pull_once(call, names, tensors, count, options, &is_replaced);
  return status;
}

void pserver_read_options_init(pserver_read_options *options) {
  if (options == NULL) return;
  *options = (pserver_read_options){.struct_size = sizeof *options};
}

pserver_status ps_check_read_options(const struct call *call, const pserver_read_options *options) {
  if (options->struct_size != sizeof *options) {
    ps_fail(
        PSERVER_ERR_BAD_VALUE,
        "%s: struct_size: expected %zu; received %zu: fill the options with pserver_read_options_init",
        call->what, sizeof *options, options->struct_size);
    ps_detail_whole("expected", sizeof *options);
    return ps_detail_whole("received", options->struct_size);
  }
  if (options->encoding == PSERVER_AS_IS || ps_encoding_name(options->encoding) != NULL) {
    return PSERVER_OK;
  }
  return ps_bad_encoding(call->what, options->encoding);
}

static pserver_status get_with(const char *what, pserver_client *handle, const char *const *names,
                               pserver_tensor *tensors, size_t count, const pserver_read_options *given,
                               int64_t timeout_ms) {
  struct call call;
  pserver_read_options options;
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  pserver_read_options_init(&options);
  if (given != NULL) options = *given;
  if (count == 0) {
    status = ps_fail(PSERVER_ERR_EMPTY, "%s: expected at least one name; received none", what);
  } else if (names == NULL || tensors == NULL) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected names and tensors; received NULL", what);
  } else {
    status = ps_check_read_options(&call, &options);
  }
  if (status == PSERVER_OK) status = ps_pull_parameters(&call, names, tensors, count, &options);
  return ps_call_end(&call, status);
}

pserver_status pserver_get(pserver_client *client, const char *const *names, pserver_tensor *tensors,
                           size_t count, pserver_encoding encoding, int64_t timeout_ms) {
  pserver_read_options options = {.struct_size = sizeof options, .encoding = encoding};
  return get_with("pserver_get", client, names, tensors, count, &options, timeout_ms);
}

pserver_status pserver_get_with(pserver_client *client, const char *const *names,
                                pserver_tensor *tensors, size_t count,
                                const pserver_read_options *options, int64_t timeout_ms) {
  return get_with("pserver_get_with", client, names, tensors, count, options, timeout_ms);
}

void pserver_tensor_release(pserver_tensor *tensor) {
  if (tensor == NULL) return;
  free(tensor->data);
  tensor->data = NULL;
}
