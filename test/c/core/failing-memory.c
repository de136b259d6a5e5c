/* Memory that runs out when a test wants it: the linker replaces malloc(), calloc() and realloc() by these
 * functions. */
#include "failing-memory.h"

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static int allowed = -1;

void allow_allocations(int count) { allowed = count; }

static bool is_allowed(void) {
  if (allowed == 0) return false;
  if (allowed > 0) allowed--;
  return true;
}

void *__wrap_malloc(size_t bytes) { return is_allowed() ? __real_malloc(bytes) : NULL; }

void *__wrap_calloc(size_t count, size_t bytes) {
  return is_allowed() ? __real_calloc(count, bytes) : NULL;
}

void *__wrap_realloc(void *memory, size_t bytes) {
  return is_allowed() ? __real_realloc(memory, bytes) : NULL;
}
