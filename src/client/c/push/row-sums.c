/* Sorts the rows of a gradient, and adds up repeated ones. */
#include "push/row-sums.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors/details.h"
#include "errors/errors.h"
#include "parts/numbered.h"
#include "wire/dtypes.h"

#define ADD(type)                                      \
  do {                                                 \
    type sum;                                          \
    type value;                                        \
    memcpy(&sum, target + i * sizeof sum, sizeof sum); \
    memcpy(&value, from + i * sizeof sum, sizeof sum); \
    sum += value;                                      \
    memcpy(target + i * sizeof sum, &sum, sizeof sum); \
  } while (0)

/** Adds a row to another; integers as unsigned ones, so that signed ones wrap around. */
static void add_row(pserver_dtype dtype, uint8_t *target, const uint8_t *from, uint64_t elements) {
  for (uint64_t i = 0; i < elements; i++) {
    if (dtype == PSERVER_FLOAT32) ADD(float);
    else if (dtype == PSERVER_FLOAT64) ADD(double);
    else if (ps_dtype_bytes(dtype) == 4) ADD(uint32_t);
    else ADD(uint64_t);
  }
}

static pserver_status normalize(const struct ps_parameter *parameter, const int64_t *rows, size_t count,
                                struct ps_numbered *places, bool *is_ascending) {
  int64_t size = (int64_t)parameter->shape[0];
  *is_ascending = true;
  for (size_t i = 0; i < count; i++) {
    if (rows[i] < -size || rows[i] >= size) {
      char expected[80];
      snprintf(expected, sizeof expected, "whole numbers from %" PRId64 " to %" PRId64, -size, size - 1);
      ps_fail(PSERVER_ERR_BAD_INDEX, "\"%s\": rows: expected %s; received %" PRId64, parameter->name,
              expected, rows[i]);
      ps_detail_text("parameter", parameter->name);
      ps_detail_whole("dimension", 0);
      ps_detail_text("expected", expected);
      return ps_detail_number("received", (double)rows[i]);
    }
    places[i] = (struct ps_numbered){(uint64_t)(rows[i] < 0 ? rows[i] + size : rows[i]), i};
    if (i > 0 && places[i].number <= places[i - 1].number) *is_ascending = false;
  }
  return PSERVER_OK;
}

static void add_up(const struct ps_parameter *parameter, const struct ps_numbered *places, size_t count,
                   const uint8_t *values, struct ps_row_sums *sums) {
  uint64_t width = ps_row_elements(parameter);
  size_t row_bytes = (size_t)width * ps_dtype_bytes(parameter->dtype);
  for (size_t i = 0; i < count; i++) {
    const uint8_t *from = values + places[i].place * row_bytes;
    if (i > 0 && places[i].number == places[i - 1].number) {
      add_row(parameter->dtype, sums->sums + (sums->count - 1) * row_bytes, from, width);
      continue;
    }
    /* Copy the first one: adding it to 0 would lose the sign of a negative zero. */
    memcpy(sums->sums + sums->count * row_bytes, from, row_bytes);
    sums->rows[sums->count++] = places[i].number;
  }
}

pserver_status ps_sum_rows(const struct ps_parameter *parameter, const int64_t *rows, size_t count,
                           const void *values, struct ps_row_sums *sums) {
  if (count == 0) return PSERVER_OK;
  bool is_ascending = true;
  struct ps_numbered *places = malloc(count * sizeof *places);
  sums->rows = malloc(count * sizeof *sums->rows);
  pserver_status status = places == NULL || sums->rows == NULL
                              ? ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu rows", count)
                              : normalize(parameter, rows, count, places, &is_ascending);
  if (status == PSERVER_OK && is_ascending) {
    for (size_t i = 0; i < count; i++) sums->rows[i] = places[i].number;
    sums->count = count;
    sums->values = values;
  } else if (status == PSERVER_OK) {
    bool is_sorted = ps_sort_numbered(places, count, parameter->shape[0] - 1);
    sums->sums = malloc(count * (size_t)ps_row_elements(parameter) * ps_dtype_bytes(parameter->dtype));
    bool has_memory = is_sorted && sums->sums != NULL;
    if (has_memory) add_up(parameter, places, count, values, sums);
    else status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu rows", count);
    sums->values = sums->sums;
  }
  free(places);
  return status;
}

void ps_row_sums_release(struct ps_row_sums *sums) {
  free(sums->rows);
  free(sums->sums);
}
