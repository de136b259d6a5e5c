#ifndef CALLS_OPEN_INITS_H
#define CALLS_OPEN_INITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/parameter.h"

/**
 * A parameter whose initialization by this client has failed, so that some of its blocks may be stored.
 * Only the selected session writes under an epoch, so in a repeat with the same values, a block that is
 * initialized already was stored by this client. Used on the I/O thread only.
 */
struct ps_open_init {
  struct ps_open_init *next;
  char *name;
  size_t name_bytes;
  uint64_t epoch;
  /** Checksum of the values sent; `has_several`: attempts had different values. */
  uint32_t crc;
  bool has_several;
};

/** Whether an attempt under the parameter's epoch has failed, so that blocks may be stored. */
bool ps_is_open_init(const struct ps_open_init *open, const struct ps_parameter *parameter);

/** Whether attempts under the parameter's epoch have failed, all with values of this checksum. */
bool ps_is_repeated_init(const struct ps_open_init *open, const struct ps_parameter *parameter, uint32_t crc);

/** Notes an attempt that failed and may have stored blocks; does nothing if there is no memory. */
void ps_note_failed_init(struct ps_open_init **open, const struct ps_parameter *parameter, uint32_t crc);

/** Forgets a parameter, which is now initialized. */
void ps_forget_open_init(struct ps_open_init **open, const struct ps_parameter *parameter);

/** Forgets all parameters. */
void ps_release_open_inits(struct ps_open_init **open);

#endif
