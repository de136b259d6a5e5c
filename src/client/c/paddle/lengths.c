/* The lengths of parameters, by name. */
#include "lengths.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct known {
  struct ps_length length;
  const char *name;
  /** Memory of `name`, except in keys that are only looked up. */
  char text[];
};

static int compare(const void *left, const void *right) {
  return strcmp(((const struct known *)left)->name, ((const struct known *)right)->name);
}

bool ps_lengths_init(struct ps_lengths *lengths) {
  lengths->root = NULL;
  return pthread_mutex_init(&lengths->lock, NULL) == 0;
}

void ps_lengths_release(struct ps_lengths *lengths) {
  tdestroy(lengths->root, free);
  pthread_mutex_destroy(&lengths->lock);
}

bool ps_lengths_find(struct ps_lengths *lengths, const char *name, struct ps_length *found) {
  struct known key = {.name = name};
  pthread_mutex_lock(&lengths->lock);
  struct known **node = tfind(&key, &lengths->root, compare);
  if (node != NULL) *found = (*node)->length;
  pthread_mutex_unlock(&lengths->lock);
  return node != NULL;
}

static struct known *make_known(const char *name) {
  size_t bytes = strlen(name) + 1;
  struct known *entry = malloc(sizeof *entry + bytes);
  if (entry == NULL) return NULL;
  memcpy(entry->text, name, bytes);
  entry->name = entry->text;
  return entry;
}

bool ps_lengths_note(struct ps_lengths *lengths, const char *name, struct ps_length length) {
  struct known *entry = make_known(name);
  if (entry == NULL) return false;
  pthread_mutex_lock(&lengths->lock);
  struct known **node = tsearch(entry, &lengths->root, compare);
  if (node != NULL) (*node)->length = length;
  bool is_known_before = node != NULL && *node != entry;
  pthread_mutex_unlock(&lengths->lock);
  if (node == NULL || is_known_before) free(entry);
  return node != NULL;
}

uint64_t ps_element_bytes(int element_type) {
  switch (element_type) {
    case PSERVER_INT32:
    case PSERVER_UINT32:
    case PSERVER_FLOAT32:
      return 4;
    case PSERVER_INT64:
    case PSERVER_UINT64:
    case PSERVER_FLOAT64:
      return 8;
    default:
      return 0;
  }
}
