#include "tensors/tensors.h"

#include <stdio.h>
#include <stdlib.h>

/* Divides the tensors of a model among fragments. */

/** Returns the next byte of a name in UTF-8, in which C0 80 stands for a NUL, and moves on; -1 at the end. */
static int next_byte(const char **name) {
  if (**name == '\0') return -1;
  if (ps_is_nul_of_name(*name, strlen(*name))) {
    *name += 2;
    return 0;
  }
  return (unsigned char)*(*name)++;
}

static int compare_names(const char *a, const char *b) {
  while (true) {
    int left = next_byte(&a);
    int right = next_byte(&b);
    if (left != right) return left < right ? -1 : 1;
    if (left < 0) return 0;
  }
}

static const pserver_balanced_tensor *tensor_at(const void *place) {
  return *(const pserver_balanced_tensor *const *)place;
}

/** Orders tensors by size, the largest first, and then by name. */
static int compare(const void *a, const void *b) {
  const pserver_balanced_tensor *left = tensor_at(a);
  const pserver_balanced_tensor *right = tensor_at(b);
  if (left->bytes != right->bytes) return left->bytes > right->bytes ? -1 : 1;
  return compare_names(left->name, right->name);
}

static int compare_by_name(const void *a, const void *b) {
  return compare_names(tensor_at(a)->name, tensor_at(b)->name);
}

/** Returns the first of the smallest fragments. */
static size_t least_of(const uint64_t *filled, size_t count) {
  size_t least = 0;
  for (size_t i = 1; i < count; i++) {
    if (filled[i] < filled[least]) least = i;
  }
  return least;
}

static pserver_status check_names(pserver_balanced_tensor **order, size_t count) {
  qsort(order, count, sizeof *order, compare_by_name);
  for (size_t i = 1; i < count; i++) {
    if (compare_by_name(&order[i - 1], &order[i]) != 0) continue;
    const char *name = order[i]->name;
    ps_fail(PSERVER_ERR_BAD_VALUE, "tensors: expected each name once; received \"%s\" twice", name);
    ps_detail_text("expected", "each name once");
    return ps_detail_text("received", name);
  }
  return PSERVER_OK;
}

static void divide(pserver_balanced_tensor *const *order, size_t count, uint64_t *filled, size_t fragments) {
  for (size_t i = 0; i < count; i++) {
    pserver_balanced_tensor *tensor = order[i];
    if (tensor->is_embedding) {
      snprintf(tensor->fragment, sizeof tensor->fragment, "embeddings");
      continue;
    }
    size_t least = least_of(filled, fragments);
    filled[least] += tensor->bytes;
    snprintf(tensor->fragment, sizeof tensor->fragment, "f%zu", least);
  }
}

pserver_status pserver_balance_fragments(pserver_balanced_tensor *tensors, size_t count, size_t fragments) {
  if (fragments == 0) {
    ps_fail(PSERVER_ERR_BAD_VALUE, "fragments: expected a whole number from 1 on; received 0");
    ps_detail_text("expected", "a whole number from 1 on");
    return ps_detail_whole("received", 0);
  }
  if (count == 0) return PSERVER_OK;
  if (fragments > count) fragments = count;
  for (size_t i = 0; i < count; i++) {
    if (tensors == NULL || tensors[i].name == NULL) {
      return ps_fail(PSERVER_ERR_BAD_VALUE, "tensors: expected names; received NULL");
    }
  }
  pserver_balanced_tensor **order = malloc(count * sizeof *order);
  uint64_t *filled = calloc(fragments, sizeof *filled);
  pserver_status status = PSERVER_OK;
  if (order == NULL || filled == NULL) status = ps_no_memory("%zu tensors", count);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) order[i] = &tensors[i];
  if (status == PSERVER_OK) status = check_names(order, count);
  if (status == PSERVER_OK) {
    qsort(order, count, sizeof *order, compare);
    divide(order, count, filled, fragments);
  }
  free(order);
  free(filled);
  return status;
}
