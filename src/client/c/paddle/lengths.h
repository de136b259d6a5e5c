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

/** The lengths of declared parameters and of the job's, by name. Those of the job never change. */
struct ps_lengths {
  pthread_mutex_t lock;
  /** A tree of search.h. */
  void *root;
};

/** False if there is no memory. */
bool ps_lengths_init(struct ps_lengths *lengths);
void ps_lengths_release(struct ps_lengths *lengths);

/** Finds the length of a parameter; false if it is not known. */
bool ps_lengths_find(struct ps_lengths *lengths, const char *name, struct ps_length *found);

/** Stores the length of a parameter, in place of one before. False if there is no memory. */
bool ps_lengths_note(struct ps_lengths *lengths, const char *name, struct ps_length length);

/** Returns the bytes of an element; 0 if it is not an element type. */
uint64_t ps_element_bytes(int element_type);

#endif
