#ifndef CORE_POSITION_H
#define CORE_POSITION_H

#include <stdbool.h>
#include <stdint.h>

/** A position in a shard's journal; `generation` 0: none. */
struct ps_position {
  uint64_t generation;
  uint64_t seq;
};

/** Whether `a` is later than `b` in the same shard. */
static inline bool ps_is_later(struct ps_position a, struct ps_position b) {
  return a.generation != b.generation ? a.generation > b.generation : a.seq > b.seq;
}

#endif
