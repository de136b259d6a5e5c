#ifndef PADDLE_READ_H
#define PADDLE_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "trainer.h"

/** A parameter to be read, and where to. */
struct ps_target {
  const char *name;
  /** NULL: memory is allocated, to be freed with ps_free_content(). */
  void *content;
  /** Bytes at `content`, which must be the parameter's or, with `may_exceed`, at least as many. */
  int64_t capacity;
  bool may_exceed;
  /** What was read. */
  int element_type;
  int length;
};

/** Reads parameters, waiting until they are initialized. 0, or -1 with a message; then `content` is as
 * it was. */
int ps_read_values(const char *function, struct ps_trainer *trainer, struct ps_target *targets, int total);

/** The length of a parameter: as declared, or as the job has it. False with a message. */
bool ps_look_up_length(const char *function, struct ps_trainer *trainer, const char *name,
                       struct ps_length *length);

/** Frees what ps_read_values() allocated. */
void ps_free_content(void *content);

#endif
