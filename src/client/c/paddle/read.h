#ifndef PADDLE_READ_H
#define PADDLE_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "trainer.h"

/** A parameter to be read, and its memory. */
struct ps_target {
  const char *name;
  /** NULL: receives allocated memory, to be freed with ps_free_content(). */
  void *content;
  /** Bytes at `content`: exactly the parameter's or, with `may_exceed`, at least as many. */
  int64_t capacity;
  bool may_exceed;
  /** Type and length in bytes of the values that were read. */
  int element_type;
  int length;
};

/** Reads parameters; waits until they are initialized. 0, or -1 with an error, which leaves `content`
 * unchanged. */
int ps_read_values(const char *function, struct ps_trainer *trainer, struct ps_target *targets, int total);

/** Finds the length of a parameter: as declared, or as in the job. False with an error. */
bool ps_look_up_length(const char *function, struct ps_trainer *trainer, const char *name,
                       struct ps_length *length);

/** Frees what ps_read_values() allocated. */
void ps_free_content(void *content);

#endif
