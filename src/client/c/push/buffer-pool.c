/* Memory of messages. */
#include "push/buffer-pool.h"

#include <stdlib.h>

struct buffer ps_pool_take(struct buffer_pool *pool, size_t bytes) {
  /* The newest first: it is the likeliest to be in a cache. */
  for (size_t i = pool->count; i-- > 0;) {
    struct buffer found = pool->free[i];
    /* A much larger one waits for a message that needs it. */
    if (found.capacity < bytes || found.capacity / 2 > bytes) continue;
    pool->free[i] = pool->free[--pool->count];
    pool->free_bytes -= found.capacity;
    return found;
  }
  return (struct buffer){malloc(bytes), bytes};
}

void ps_pool_give(struct buffer_pool *pool, struct buffer buffer, size_t bytes_max) {
  if (buffer.bytes == NULL) return;
  if (pool->count == POOL_BUFFERS_MAX || pool->free_bytes + buffer.capacity > bytes_max) {
    free(buffer.bytes);
    return;
  }
  pool->free[pool->count++] = buffer;
  pool->free_bytes += buffer.capacity;
}

void ps_keep_freed_memory(size_t bytes) {
  /* glibc takes the size of a block that was mapped by itself and is freed for one that will come
   * again, as mallopt(3) says of M_MMAP_THRESHOLD. No page of it is touched. */
  void *volatile block = malloc(bytes);
  free(block);
}

void ps_pool_free(struct buffer_pool *pool) {
  while (pool->count > 0) free(pool->free[--pool->count].bytes);
}
