#ifndef CALLS_OPEN_INITS_H
#define CALLS_OPEN_INITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/parameter.h"

/**
 * The initializations of parameters that a client has begun and not ended well: it may not know which
 * of their blocks are stored. Under one epoch only the session that is selected writes, so a block that
 * is initialized already in a repeat of the same values is this client's own.
 * The I/O thread owns them.
 */
struct ps_open_init {
  struct ps_open_init *next;
  char *name;
  size_t name_bytes;
  uint64_t epoch;
  /** Checksum of the values that were sent; of no use once there were several. */
  uint32_t crc;
  bool has_several;
};

/** Whether an attempt has failed: blocks of the parameter may be stored. */
bool ps_is_open_init(const struct ps_open_init *open, const struct ps_parameter *parameter);

/** Whether attempts under this epoch have failed, and all of them sent values of this checksum. */
bool ps_is_repeated_init(const struct ps_open_init *open, const struct ps_parameter *parameter, uint32_t crc);

/** An attempt failed after it may have stored blocks. Without memory it is not noted. */
void ps_note_failed_init(struct ps_open_init **open, const struct ps_parameter *parameter, uint32_t crc);

/** The parameter is initialized. */
void ps_forget_open_init(struct ps_open_init **open, const struct ps_parameter *parameter);

/** Forgets all. */
void ps_release_open_inits(struct ps_open_init **open);

#endif
