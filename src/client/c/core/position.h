#ifndef CORE_POSITION_H
#define CORE_POSITION_H

#include <stdbool.h>
#include <stdint.h>

/** A place in a shard's journal; `generation` 0 is none. */
struct ps_position {
  uint64_t generation;
  uint64_t seq;
};

/** Whether `a` is later than `b`, in one shard. */
static inline bool ps_is_later(struct ps_position a, struct ps_position b) {
  return a.generation != b.generation ? a.generation > b.generation : a.seq > b.seq;
}

#endif
