#ifndef PADDLE_LENGTHS_H
#define PADDLE_LENGTHS_H

#include <pserver.h>
#include <pthread.h>
#include <stdbool.h>

/** Type and length of a parameter. */
struct ps_length {
  pserver_dtype dtype;
  uint64_t elements;
};

/** Lengths by name, of what was declared, and of what the job has: that stays as it is for ever. */
struct ps_lengths {
  pthread_mutex_t lock;
  /** A tree of search.h. */
  void *root;
};

/** False without memory. */
bool ps_lengths_init(struct ps_lengths *lengths);
void ps_lengths_release(struct ps_lengths *lengths);

/** Whether the length of a parameter is known. */
bool ps_lengths_find(struct ps_lengths *lengths, const char *name, struct ps_length *found);

/** Replaces what is known. False without memory. */
bool ps_lengths_note(struct ps_lengths *lengths, const char *name, struct ps_length length);

/** Bytes of an element; 0 for what is no element type. */
uint64_t ps_element_bytes(int element_type);

#endif
