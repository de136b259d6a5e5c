#include "wire/wire.h"

#include <fenv.h>

/* The I/O thread of a client, and its timers. */

/* Timers, in a pairing heap. */

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

/* The loop of the I/O thread. */

pserver_status ps_io_init(struct ps_io_thread *io) {
  *io = (struct ps_io_thread){0};
  if (pthread_mutex_init(&io->lock, NULL) == 0) {
    if (ps_condition_init(&io->woken) == 0) return PSERVER_OK;
    pthread_mutex_destroy(&io->lock);
  }
  return ps_no_memory("a lock");
}

void ps_io_release(struct ps_io_thread *io) {
  pthread_cond_destroy(&io->woken);
  pthread_mutex_destroy(&io->lock);
}

void ps_io_post_locked(struct ps_io_thread *io, struct ps_io_work *work) {
  if (ps_queue_append(&io->posted, &work->place, work)) pthread_cond_signal(&io->woken);
}

void ps_io_post(struct ps_io_thread *io, struct ps_io_work *work) {
  pthread_mutex_lock(&io->lock);
  ps_io_post_locked(io, work);
  pthread_mutex_unlock(&io->lock);
}

void ps_io_unpost_locked(struct ps_io_thread *io, struct ps_io_work *work) {
  ps_queue_remove(&io->posted, &work->place);
}

/** Runs posted work; false if there was none. */
static bool run_posted(struct ps_io_thread *io) {
  struct ps_io_work *work;
  bool was_any = false;
  pthread_mutex_lock(&io->lock);
  while ((work = ps_queue_take(&io->posted)) != NULL) {
    was_any = true;
    pthread_mutex_unlock(&io->lock);
    work->run(work->context);
    pthread_mutex_lock(&io->lock);
  }
  pthread_mutex_unlock(&io->lock);
  return was_any;
}

bool ps_io_run(struct ps_io_thread *io) {
  bool was_any = run_posted(io);
  if (ps_timers_next_ms(&io->timers) != PS_NEVER_MS) {
    was_any = ps_timers_run(&io->timers, ps_now_ms()) || was_any;
  }
  return was_any || (io->run_idle != NULL && io->run_idle(io->idle_context));
}

/** Waits for work; false if the thread shall end. */
static bool wait_for_work(struct ps_io_thread *io) {
  int64_t until_ms = ps_timers_next_ms(&io->timers);
  pthread_mutex_lock(&io->lock);
  bool is_over = io->posted.count == 0 && io->is_stopping;
  if (io->posted.count == 0 && !is_over) ps_condition_wait(&io->woken, &io->lock, until_ms);
  pthread_mutex_unlock(&io->lock);
  return !is_over;
}

static void *loop(void *closure) {
  struct ps_io_thread *io = closure;
  /* The thread that connects may take denormals for zeros, as programs built with -ffast-math do. This one encodes and
   * decodes elements, and must find the same bits as every other client. */
  fesetenv(FE_DFL_ENV);
  do {
    while (ps_io_run(io)) continue;
  } while (wait_for_work(io));
  nats_ReleaseThreadMemory();
  return NULL;
}

pserver_status ps_io_start(struct ps_io_thread *io) {
  int error = pthread_create(&io->thread, NULL, loop, io);
  if (error != 0) return ps_fail(PSERVER_ERR_INTERNAL, "no thread for a client: error %d", error);
  io->has_thread = true;
  return PSERVER_OK;
}

void ps_io_stop(struct ps_io_thread *io) {
  if (!io->has_thread) return;
  pthread_mutex_lock(&io->lock);
  io->is_stopping = true;
  pthread_cond_signal(&io->woken);
  pthread_mutex_unlock(&io->lock);
  pthread_join(io->thread, NULL);
  io->has_thread = false;
}
