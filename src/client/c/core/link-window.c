#include "core/core.h"

/* How many bytes may be under way on a link. */

/** Time for which a link may have work: long enough to keep it busy, and short enough to let others through. */
#define WORK_MS 1500
/** Bytes that may always be under way: until something was measured, and while little is sent. */
#define BYTES_MIN ((size_t)256 * 1024)
/** Time after which a measurement counts as old; two such times are remembered. */
#define PERIOD_MS 2000

size_t ps_link_window_bytes(const struct ps_link_window *window) {
  size_t bytes = window->present > window->before ? window->present : window->before;
  if (bytes < BYTES_MIN) bytes = BYTES_MIN;
  return bytes < window->bytes_max ? bytes : window->bytes_max;
}

void ps_link_window_note(struct ps_link_window *window, uint64_t bytes, int64_t duration_ms,
                         int64_t now_ms) {
  if (now_ms - window->period_at_ms >= PERIOD_MS) {
    window->before = window->present;
    window->present = 0;
    window->period_at_ms = now_ms;
  }
  size_t carried = (size_t)(bytes * WORK_MS / (uint64_t)(duration_ms > 1 ? duration_ms : 1));
  if (carried > window->present) window->present = carried;
}

void ps_link_window_reset(struct ps_link_window *window) {
  window->present = 0;
  window->before = 0;
}
