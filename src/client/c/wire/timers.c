/* Timers, in a pairing heap. */
#include "wire/timers.h"

#include <stddef.h>

/** Joins two heaps, whose roots have no siblings. */
static struct ps_timer *join(struct ps_timer *one, struct ps_timer *other) {
  if (one == NULL) return other;
  if (other == NULL) return one;
  struct ps_timer *first = other->at_ms < one->at_ms ? other : one;
  struct ps_timer *later = first == one ? other : one;
  later->next = first->child;
  if (later->next != NULL) later->next->before = later;
  later->before = first;
  first->child = later;
  return first;
}

/** Joins siblings in pairs, then the pairs from the last to the first. */
static struct ps_timer *join_siblings(struct ps_timer *first) {
  struct ps_timer *pairs = NULL;
  while (first != NULL) {
    struct ps_timer *one = first;
    struct ps_timer *other = one->next;
    first = other == NULL ? NULL : other->next;
    one->next = NULL;
    if (other != NULL) other->next = NULL;
    struct ps_timer *pair = join(one, other);
    pair->next = pairs;
    pairs = pair;
  }
  struct ps_timer *root = NULL;
  while (pairs != NULL) {
    struct ps_timer *pair = pairs;
    pairs = pair->next;
    pair->next = NULL;
    root = join(root, pair);
  }
  return root;
}

static void clear(struct ps_timers *timers, struct ps_timer *timer) {
  if (timer->before == NULL) return;
  struct ps_timer *rest = join_siblings(timer->child);
  if (timers->root == timer) {
    timers->root = rest;
  } else {
    if (timer->before->child == timer) timer->before->child = timer->next;
    else timer->before->next = timer->next;
    if (timer->next != NULL) timer->next->before = timer->before;
    timers->root = join(timers->root, rest);
  }
  if (timers->root != NULL) timers->root->before = timers->root;
  timer->child = NULL;
  timer->next = NULL;
  timer->before = NULL;
}

void ps_timer_set(struct ps_timers *timers, struct ps_timer *timer, int64_t at_ms) {
  clear(timers, timer);
  timer->at_ms = at_ms;
  if (at_ms == PS_NEVER_MS) return;
  timers->root = join(timers->root, timer);
  timers->root->before = timers->root;
}

int64_t ps_timers_next_ms(const struct ps_timers *timers) {
  return timers->root == NULL ? PS_NEVER_MS : timers->root->at_ms;
}

bool ps_timers_run(struct ps_timers *timers, int64_t now_ms) {
  bool was_any = false;
  while (timers->root != NULL && timers->root->at_ms <= now_ms) {
    struct ps_timer *timer = timers->root;
    clear(timers, timer);
    timer->due(timer->context);
    was_any = true;
  }
  return was_any;
}
