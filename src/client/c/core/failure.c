/* Reference-counted errors, which several updates and calls can share. */
#include "core/failure.h"

#include <stdlib.h>
#include <string.h>

struct ps_failure *ps_failure_new(pserver_status code, const char *text, const char *details) {
  size_t text_bytes = strlen(text) + 1;
  size_t details_bytes = strlen(details) + 1;
  struct ps_failure *failure = malloc(sizeof *failure + text_bytes + details_bytes);
  if (failure == NULL) return NULL;
  char *texts = (char *)(failure + 1);
  memcpy(texts, text, text_bytes);
  memcpy(texts + text_bytes, details, details_bytes);
  *failure = (struct ps_failure){
      .code = code, .text = texts, .details = texts + text_bytes, .references = 1};
  return failure;
}

struct ps_failure *ps_failure_keep(struct ps_failure *failure) {
  if (failure != NULL && failure->references > 0) failure->references++;
  return failure;
}

void ps_failure_drop(struct ps_failure *failure) {
  if (failure == NULL || failure->references == 0) return;
  failure->references--;
  if (failure->references == 0) free(failure);
}

void ps_failure_set(struct ps_failure **place, struct ps_failure *failure) {
  struct ps_failure *before = *place;
  *place = ps_failure_keep(failure);
  ps_failure_drop(before);
}

void ps_failure_set_first(struct ps_failure **place, struct ps_failure *failure) {
  if (*place == NULL) *place = ps_failure_keep(failure);
}
