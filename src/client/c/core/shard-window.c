/* The numbers of a session's records in one shard. */
#include "core/shard-window.h"

#include <stdlib.h>

struct ps_shard_window *ps_shard_window_new(unsigned shard, size_t records) {
  struct ps_shard_window *window = calloc(1, sizeof *window + records * sizeof window->open[0]);
  if (window == NULL) return NULL;
  window->shard = shard;
  window->asked_at_ms = PS_LONG_AGO_MS;
  window->records = records;
  return window;
}

bool ps_shard_window_has_room(const struct ps_shard_window *window) {
  return window->last < window->done + window->records;
}

struct ps_block_update *ps_shard_window_get(const struct ps_shard_window *window, uint64_t n) {
  if (n <= window->done || n > window->last) return NULL;
  return window->open[n % window->records];
}

static void remove_update(struct ps_shard_window *window, struct ps_block_update *update) {
  window->open[update->n % window->records] = NULL;
  update->is_open = false;
}

void ps_shard_window_open(struct ps_shard_window *window, struct ps_block_update *update) {
  window->last++;
  update->n = window->last;
  update->is_open = true;
  window->open[update->n % window->records] = update;
}

void ps_shard_window_take_back(struct ps_shard_window *window, struct ps_block_update *update) {
  remove_update(window, update);
  window->last--;
  update->n = 0;
}

void ps_shard_window_close(struct ps_shard_window *window, struct ps_block_update *update) {
  remove_update(window, update);
  while (window->done < window->last && ps_shard_window_get(window, window->done + 1) == NULL) {
    window->done++;
  }
}

void ps_shard_window_restart(struct ps_shard_window *window) {
  window->last = 0;
  window->done = 0;
}
