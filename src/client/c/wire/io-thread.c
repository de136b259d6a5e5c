/* The loop of the I/O thread. */
#include "wire/io-thread.h"

#include <errno.h>
#include <limits.h>
#include <nats/nats.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "errors/errors.h"

pserver_status ps_io_init(struct ps_io_thread *io) {
  *io = (struct ps_io_thread){.socket = -1};
  io->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (io->wake_fd < 0) return ps_fail(PSERVER_ERR_INTERNAL, "no event to wake a thread: error %d", errno);
  if (pthread_mutex_init(&io->lock, NULL) == 0) return PSERVER_OK;
  close(io->wake_fd);
  return ps_fail(PSERVER_ERR_INTERNAL, "no room for a lock");
}

void ps_io_release(struct ps_io_thread *io) {
  close(io->wake_fd);
  pthread_mutex_destroy(&io->lock);
}

static void wake_locked(struct ps_io_thread *io) {
  if (!io->is_waiting) return;
  io->is_waiting = false;
  eventfd_write(io->wake_fd, 1);
}

void ps_io_post_locked(struct ps_io_thread *io, struct ps_io_work *work) {
  if (work->is_posted) return;
  work->is_posted = true;
  work->next = NULL;
  if (io->first == NULL) io->first = work;
  else io->last->next = work;
  io->last = work;
  wake_locked(io);
}

void ps_io_post(struct ps_io_thread *io, struct ps_io_work *work) {
  pthread_mutex_lock(&io->lock);
  ps_io_post_locked(io, work);
  pthread_mutex_unlock(&io->lock);
}

void ps_io_unpost_locked(struct ps_io_thread *io, struct ps_io_work *work) {
  if (!work->is_posted) return;
  work->is_posted = false;
  struct ps_io_work *before = NULL;
  struct ps_io_work *at = io->first;
  for (; at != work; at = at->next) before = at;
  if (before == NULL) io->first = work->next;
  else before->next = work->next;
  if (io->last == work) io->last = before;
}

void ps_io_watch_locked(struct ps_io_thread *io, int socket, bool wants_write) {
  bool is_news = io->socket != socket || (wants_write && !io->wants_write);
  io->socket = socket;
  io->wants_write = wants_write;
  if (is_news) wake_locked(io);
}

static void run_posted(struct ps_io_thread *io) {
  pthread_mutex_lock(&io->lock);
  while (io->first != NULL) {
    struct ps_io_work *work = io->first;
    io->first = work->next;
    work->is_posted = false;
    pthread_mutex_unlock(&io->lock);
    work->run(work->context);
    pthread_mutex_lock(&io->lock);
  }
  pthread_mutex_unlock(&io->lock);
}

void ps_io_run_due(struct ps_io_thread *io) {
  run_posted(io);
  if (ps_timers_next_ms(&io->timers) != NEVER_MS) ps_timers_run(&io->timers, ps_now_ms());
  if (io->handler.flush != NULL) io->handler.flush(io->handler.context);
}

/** Milliseconds to wait for the next timer, as poll() takes them. */
static int wait_ms(const struct ps_io_thread *io) {
  int64_t next_ms = ps_timers_next_ms(&io->timers);
  if (next_ms == NEVER_MS) return -1;
  int64_t left_ms = next_ms - ps_now_ms();
  if (left_ms < 0) return 0;
  return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

/** Says what to wait for; false if there is something to do before, or nothing ever again. */
static bool begin_waiting(struct ps_io_thread *io, struct pollfd waits[2]) {
  pthread_mutex_lock(&io->lock);
  io->is_waiting = io->first == NULL && !io->is_stopping;
  waits[0] = (struct pollfd){.fd = io->wake_fd, .events = POLLIN};
  waits[1] = (struct pollfd){.fd = io->socket, .events = POLLIN};
  if (io->wants_write) waits[1].events |= POLLOUT;
  bool is_waiting = io->is_waiting;
  pthread_mutex_unlock(&io->lock);
  return is_waiting;
}

static void end_waiting(struct ps_io_thread *io, struct pollfd waits[2]) {
  pthread_mutex_lock(&io->lock);
  io->is_waiting = false;
  /* A socket that was closed meanwhile is not waited for again. */
  if ((waits[1].revents & POLLNVAL) != 0 && io->socket == waits[1].fd) io->socket = -1;
  pthread_mutex_unlock(&io->lock);
  eventfd_t ignored;
  if (waits[0].revents != 0) eventfd_read(io->wake_fd, &ignored);
}

static void wait_for_news(struct ps_io_thread *io) {
  struct pollfd waits[2];
  if (!begin_waiting(io, waits)) return;
  int count = poll(waits, 2, wait_ms(io));
  if (count <= 0) waits[0].revents = waits[1].revents = 0;
  end_waiting(io, waits);
  bool is_readable = (waits[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
  bool is_writable = (waits[1].revents & POLLOUT) != 0;
  if (is_readable || is_writable) io->handler.ready(io->handler.context, is_readable, is_writable);
}

static bool is_stopping(struct ps_io_thread *io) {
  pthread_mutex_lock(&io->lock);
  bool is = io->is_stopping && io->first == NULL;
  pthread_mutex_unlock(&io->lock);
  return is;
}

static void *loop(void *closure) {
  struct ps_io_thread *io = closure;
  while (!is_stopping(io)) {
    ps_io_run_due(io);
    wait_for_news(io);
  }
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
  wake_locked(io);
  pthread_mutex_unlock(&io->lock);
  pthread_join(io->thread, NULL);
  io->has_thread = false;
}
