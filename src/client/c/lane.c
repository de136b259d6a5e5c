/* Numbers of the records of one shard. */
#include "lane.h"

#include <stdlib.h>
#include <string.h>

bool lane_has_room(const struct lane *lane) { return lane->last < lane->done + WINDOW_RECORDS; }

bool lane_open(struct lane *lane, struct piece *piece, uint64_t *n) {
  if (lane->open == NULL) lane->open = calloc(WINDOW_RECORDS, sizeof(struct piece *));
  if (lane->open == NULL) return false;
  *n = ++lane->last;
  lane->open[*n % WINDOW_RECORDS] = piece;
  return true;
}

struct piece *lane_find(const struct lane *lane, uint64_t n) {
  return n > lane->done && n <= lane->last ? lane->open[n % WINDOW_RECORDS] : NULL;
}

void lane_close(struct lane *lane, uint64_t n) {
  if (lane_find(lane, n) == NULL) return;
  lane->open[n % WINDOW_RECORDS] = NULL;
  while (lane->done < lane->last && lane->open[(lane->done + 1) % WINDOW_RECORDS] == NULL) {
    lane->done++;
  }
}

void lane_restart(struct lane *lane) {
  if (lane->open != NULL) memset(lane->open, 0, WINDOW_RECORDS * sizeof(struct piece *));
  lane->last = 0;
  lane->done = 0;
  lane->acked_sending = 0;
}

void lane_release(struct lane *lane) { free(lane->open); }
