/* Updates of parameters: checks of their tensors, cutting them into blocks, and writing their elements. */
#include "push/parameter-update.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "errors/details.h"
#include "errors/errors.h"
#include "push/finite.h"
#include "wire/dtypes.h"
#include "wire/encodings.h"

const char *ps_verb_of(enum ps_operation operation) {
  if (operation == PS_UPDATE_INIT) return "init";
  return operation == PS_UPDATE_SET ? "set" : "push";
}

pserver_status ps_fail_length(const char *name, uint64_t expected, uint64_t received) {
  ps_fail(PSERVER_ERR_BAD_LENGTH, "\"%s\": expected %" PRIu64 " bytes; received %" PRIu64, name,
          expected, received);
  ps_detail_text("parameter", name);
  return ps_detail_numbers(expected, received);
}

pserver_status ps_check_tensor(const char *name, const pserver_tensor *tensor) {
  if (name == NULL) return ps_fail(PSERVER_ERR_BAD_NAME, "expected a name; received NULL");
  if (tensor == NULL)
    return ps_fail(PSERVER_ERR_BAD_VALUE, "\"%s\": expected a tensor; received NULL", name);
  if (ps_dtype_name(tensor->dtype) == NULL) {
    ps_fail(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected an element type; received %d", name,
            (int)tensor->dtype);
    ps_detail_text("parameter", name);
    ps_detail_text("expected", "an element type");
    return ps_detail_signed("received", (int)tensor->dtype);
  }
  if (tensor->data == NULL && tensor->bytes > 0) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "\"%s\": expected data; received NULL", name);
  }
  if (tensor->rank == PSERVER_RANK_OF_PARAMETER) return PSERVER_OK;
  if (tensor->rank < 0 || tensor->rank > PSERVER_RANK_MAX) {
    ps_fail(PSERVER_ERR_BAD_SHAPE, "\"%s\": expected at most %d dimensions; received %d", name,
            PSERVER_RANK_MAX, (int)tensor->rank);
    ps_detail_text("parameter", name);
    ps_detail_text("expected", "at most 32 dimensions");
    return ps_detail_signed("received", tensor->rank);
  }
  return PSERVER_OK;
}

static bool has_shape(const pserver_tensor *tensor, const uint64_t *shape, int32_t rank) {
  if (tensor->rank == PSERVER_RANK_OF_PARAMETER) return true;
  if (tensor->rank != rank) return false;
  for (int32_t axis = 0; axis < rank; axis++) {
    if (tensor->shape[axis] != shape[axis]) return false;
  }
  return true;
}

/** Bytes of the text of a shape; a longer one is cut. */
enum { SHAPE_TEXT_BYTES = 128 };

/** Writes the sizes, separated by commas; a long text is cut and ends with three dots. */
static void write_shape(char text[SHAPE_TEXT_BYTES], const uint64_t *shape, int32_t rank) {
  static const char cut[] = "...";
  size_t used = 0;
  text[0] = '\0';
  for (int32_t axis = 0; axis < rank; axis++) {
    size_t left = SHAPE_TEXT_BYTES - sizeof cut - used;
    int size = snprintf(text + used, left, "%s%" PRIu64, axis > 0 ? "," : "", shape[axis]);
    if (size < 0 || (size_t)size >= left) {
      memcpy(text + used, cut, sizeof cut);
      return;
    }
    used += (size_t)size;
  }
}

pserver_status ps_fail_shape(const char *name, const char *expected, const pserver_tensor *received) {
  char received_shape[SHAPE_TEXT_BYTES];
  write_shape(received_shape, received->shape, received->rank);
  ps_fail(PSERVER_ERR_BAD_SHAPE, "\"%s\": shape: expected %s; received [%s]", name, expected,
          received_shape);
  ps_detail_text("parameter", name);
  ps_detail_text("expected", expected);
  return ps_detail_shape("received", received->shape, received->rank);
}

pserver_status ps_fit_tensor(const struct ps_parameter *parameter, const pserver_tensor *tensor,
                             const uint64_t *shape, int32_t rank, uint64_t elements) {
  pserver_status status = ps_check_tensor(parameter->name, tensor);
  if (status != PSERVER_OK) return status;
  if (tensor->dtype != parameter->dtype) {
    ps_fail(PSERVER_ERR_BAD_DTYPE, "\"%s\": expected %s; received %s", parameter->name,
            ps_dtype_name(parameter->dtype), ps_dtype_name(tensor->dtype));
    return ps_detail_mismatch(parameter->name, ps_dtype_name(parameter->dtype),
                              ps_dtype_name(tensor->dtype));
  }
  if (!has_shape(tensor, shape, rank)) {
    char expected_shape[SHAPE_TEXT_BYTES];
    char received_shape[SHAPE_TEXT_BYTES];
    write_shape(expected_shape, shape, rank);
    write_shape(received_shape, tensor->shape, tensor->rank);
    ps_fail(PSERVER_ERR_BAD_SHAPE, "\"%s\": expected shape [%s]; received [%s]", parameter->name,
            expected_shape, received_shape);
    ps_detail_text("parameter", parameter->name);
    ps_detail_shape("expected", shape, rank);
    return ps_detail_shape("received", tensor->shape, tensor->rank);
  }
  uint64_t expected = elements * ps_dtype_bytes(parameter->dtype);
  return tensor->bytes == expected ? PSERVER_OK : ps_fail_length(parameter->name, expected, tensor->bytes);
}

pserver_status ps_check_finite(const struct ps_parameter *parameter, pserver_encoding encoding,
                               const void *data, uint64_t elements) {
  pserver_dtype dtype = parameter->dtype;
  if (parameter->allows_non_finite || ps_stays_finite(dtype, encoding, data, elements)) {
    return PSERVER_OK;
  }
  uint64_t index;
  double received = ps_first_non_finite(dtype, encoding, data, &index);
  bool is_encoded = isfinite(received);
  ps_fail(PSERVER_ERR_NON_FINITE,
          "\"%s\": expected finite values; received %g%s%s%s as element %" PRIu64
          ". Declare it with allowNonFinite to take them",
          parameter->name, received, is_encoded ? ", an infinity as " : "",
          is_encoded ? ps_encoding_name(encoding) : "", is_encoded ? "," : "", index);
  ps_detail_text("parameter", parameter->name);
  ps_detail_text("expected", "finite values");
  ps_detail_number("received", received);
  return ps_detail_whole("index", index);
}

void ps_cut_into_blocks(const struct ps_parameter_update *update, struct ps_update_source *sources) {
  const struct ps_parameter *parameter = update->parameter;
  const struct ps_layout *layout = &parameter->layout;
  size_t element = ps_dtype_bytes(parameter->dtype);
  for (uint64_t i = 0; i < layout->blocks; i++) {
    uint64_t start = i * layout->block_elements;
    uint64_t elements = ps_block_elements(parameter, i);
    size_t data_bytes = elements * ps_encoded_bytes(parameter->dtype, update->encoding);
    sources[i] = (struct ps_update_source){
        .update = update,
        .index = (uint32_t)i,
        .shard = (unsigned)((layout->first_shard + i) % layout->shards),
        .values = update->data + start * element,
        .start = start,
        .elements = elements,
        .data_bytes = data_bytes,
        .entry_bytes = data_bytes,
    };
  }
}

void ps_write_elements(const struct ps_parameter_update *update, const uint8_t *from, uint64_t elements,
                       uint8_t *target) {
  if (update->encoding == PSERVER_AS_IS) {
    memcpy(target, from, elements * ps_dtype_bytes(update->parameter->dtype));
  } else {
    ps_encode_elements(update->encoding, from, elements, target);
  }
}
