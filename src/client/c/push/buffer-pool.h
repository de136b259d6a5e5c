#ifndef PUSH_BUFFER_POOL_H
#define PUSH_BUFFER_POOL_H

#include <stddef.h>
#include <stdint.h>

#define POOL_BUFFERS_MAX 32

/** Memory of messages that were sent, for the next ones: fresh pages cost as much as copying. */
struct buffer_pool {
  struct buffer {
    uint8_t *bytes;
    size_t capacity;
  } free[POOL_BUFFERS_MAX];
  size_t count;
  size_t free_bytes;
};

/** Memory of at least so many bytes; `bytes` NULL if there is none. Not thread-safe, as the others. */
struct buffer ps_pool_take(struct buffer_pool *pool, size_t bytes);

/** Keeps memory, or frees it if the pool holds `bytes_max` already. */
void ps_pool_give(struct buffer_pool *pool, struct buffer buffer, size_t bytes_max);

void ps_pool_free(struct buffer_pool *pool);

/**
 * Has the allocator keep up to about twice so many bytes that were freed: cnats allocates every message
 * that comes, and with glibc's first settings, which give more than a few hundred KB back at once, each
 * page of it would be mapped anew. Changes nothing in a process that has chosen its settings, by mallopt()
 * or the environment, or where another allocator is linked.
 */
void ps_keep_freed_memory(size_t bytes);

#endif
