#include "records/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Gradients in int8 and e3m0. Rounding to so few bits would lose the same small elements in each step; so what it leaves
 * out of a gradient is kept, and added to the next one.
 */

/* The residuals of a client, in a hash table by the names of parameters. */

void ps_residuals_forget(struct ps_residuals *residuals) {
  for (size_t i = 0; i < PS_RESIDUAL_BUCKETS && residuals->count > 0; i++) {
    while (residuals->buckets[i] != NULL) {
      struct ps_residual *residual = residuals->buckets[i];
      residuals->buckets[i] = residual->next;
      residuals->count--;
      free(residual->values);
      free(residual);
    }
  }
}

static struct ps_residual *new_residual(const struct ps_parameter *parameter) {
  struct ps_residual *residual = malloc(sizeof *residual + parameter->name_bytes);
  if (residual == NULL) return NULL;
  *residual = (struct ps_residual){.epoch = parameter->epoch, .name_bytes = parameter->name_bytes};
  memcpy(residual->name, parameter->name, parameter->name_bytes);
  residual->values = calloc((size_t)parameter->layout.elements, sizeof *residual->values);
  if (residual->values != NULL) return residual;
  free(residual);
  return NULL;
}

/** Returns the residual of each element of a parameter, zeros at first; NULL if there is no memory. */
static float *values_of(struct ps_residuals *residuals, const struct ps_parameter *parameter) {
  const char *name = parameter->name;
  size_t bytes = parameter->name_bytes;
  struct ps_residual **link = &residuals->buckets[ps_name_hash(name, bytes) % PS_RESIDUAL_BUCKETS];
  while (*link != NULL && ((*link)->name_bytes != bytes || memcmp((*link)->name, name, bytes) != 0)) {
    link = &(*link)->next;
  }
  struct ps_residual *found = *link;
  if (found != NULL && found->epoch != parameter->epoch) {
    /* The parameter has been initialized again. */
    *link = found->next;
    residuals->count--;
    free(found->values);
    free(found);
    found = NULL;
  }
  if (found != NULL) return found->values;
  struct ps_residual *made = new_residual(parameter);
  if (made == NULL) return NULL;
  made->next = *link;
  *link = made;
  residuals->count++;
  return made->values;
}

/* Encodes gradients. */

void ps_group_gradient(struct ps_grouped_gradient *gradient, uint8_t **encoded) {
  for (size_t i = 0; i < gradient->count; i++) {
    struct ps_block_source *source = &gradient->sources[i];
    source->gradient = gradient;
    source->encoded = *encoded;
    *encoded += ps_source_bytes(source);
  }
}

/**
 * Copies numbers between a group of an entry, of `count` elements from `first` on, and the places of these elements in
 * the parameter.
 */
static void copy_residual(const struct ps_block_source *source, uint64_t first, size_t count, float *values,
                          float *group, bool is_written) {
  const struct ps_part_slice *slice = source->slice;
  const struct ps_parameter *parameter = source->update->parameter;
  uint64_t start = source->index * parameter->layout.block_elements;
  uint64_t width = slice == NULL ? source->elements : slice->width;
  uint64_t row = first / width;
  uint64_t column = first % width;
  while (count > 0) {
    size_t taken = width - column < count ? (size_t)(width - column) : count;
    uint64_t number = slice == NULL || slice->is_whole_block ? row : slice->rows[row];
    float *place = values + start + number * width + column;
    if (is_written) memcpy(place, group, taken * sizeof(float));
    else memcpy(group, place, taken * sizeof(float));
    group += taken;
    count -= taken;
    column = 0;
    row++;
  }
}

static double sum_of_squares(const float group[PS_GROUP_ELEMENTS]) {
  double sum = 0;
  for (size_t i = 0; i < PS_GROUP_ELEMENTS; i++) sum += (double)group[i] * (double)group[i];
  return sum;
}

/** Encodes a source; `values`: the residual of its parameter, or NULL. */
static void encode_source(struct ps_block_source *source, float *values) {
  pserver_encoding encoding = source->update->encoding;
  uint8_t *scale = source->encoded;
  uint8_t *codes = source->encoded + ps_scale_bytes(source->elements);
  for (uint64_t start = 0; start < source->elements; start += PS_GROUP_ELEMENTS, scale += sizeof(float)) {
    float group[PS_GROUP_ELEMENTS] = {0};
    float kept[PS_GROUP_ELEMENTS] = {0};
    float sent[PS_GROUP_ELEMENTS];
    uint64_t left = source->elements - start;
    size_t count = left < PS_GROUP_ELEMENTS ? (size_t)left : PS_GROUP_ELEMENTS;
    ps_gather_floats(source, start, count, group);
    if (values != NULL) copy_residual(source, start, count, values, kept, false);
    for (size_t i = 0; i < PS_GROUP_ELEMENTS; i++) group[i] += kept[i];
    ps_encode_group(encoding, group, count, scale, codes);
    ps_decode_group(encoding, scale, codes, count, sent);
    if (source->update->has_norm) source->squares += sum_of_squares(sent);
    /* Hosts reject a group that is not finite, or take it as it is: then nothing is left out. */
    if (values != NULL && isfinite(sent[0])) {
      for (size_t i = 0; i < PS_GROUP_ELEMENTS; i++) kept[i] = group[i] - sent[i];
      copy_residual(source, start, count, values, kept, true);
    }
    codes += ps_code_bytes(encoding, count);
  }
  source->is_encoded = true;
}

static pserver_status encode_once(struct ps_residuals *residuals, struct ps_block_source *source) {
  const struct ps_parameter *parameter = source->update->parameter;
  float *values = NULL;
  if (source->is_encoded) return PSERVER_OK;
  if (source->gradient->feeds_back) {
    values = values_of(residuals, parameter);
    if (values == NULL) return ps_no_memory("the rounding errors of \"%s\"", parameter->name);
  }
  encode_source(source, values);
  return PSERVER_OK;
}

/** Encodes all of a gradient, because each of its records has the norm of all. */
static pserver_status encode_with_norm(struct ps_residuals *residuals, struct ps_grouped_gradient *gradient) {
  pserver_status status = PSERVER_OK;
  double squares = 0;
  for (size_t i = 0; i < gradient->count && status == PSERVER_OK; i++) {
    status = encode_once(residuals, &gradient->sources[i]);
    squares += gradient->sources[i].squares;
  }
  gradient->update->norm = sqrt(squares);
  return status;
}

pserver_status ps_encode_gradients(struct ps_residuals *residuals, const struct ps_record *record) {
  pserver_status status = PSERVER_OK;
  for (size_t i = 0; i < record->blocks && status == PSERVER_OK; i++) {
    const struct ps_block_source *source = record->sources[i];
    struct ps_grouped_gradient *gradient = source->gradient;
    if (gradient == NULL || source->is_encoded) continue;
    status = gradient->update->has_norm
                 ? encode_with_norm(residuals, gradient)
                 : encode_once(residuals, &gradient->sources[source - gradient->sources]);
  }
  return status;
}
