#include "calls/calls.h"

#include <inttypes.h>

/* Calls under way: their deadlines, and the tasks that they give to the I/O thread. */

pserver_status ps_calls_init(struct ps_calls *calls, struct ps_io_thread *io) {
  *calls = (struct ps_calls){.io = io};
  if (ps_condition_init(&calls->idle) == 0) return PSERVER_OK;
  return ps_no_memory("a condition");
}

void ps_calls_release(struct ps_calls *calls) { pthread_cond_destroy(&calls->idle); }

void ps_calls_fail(struct ps_calls *calls, pserver_status code, const char *text) {
  pthread_mutex_lock(&calls->io->lock);
  if (calls->error.code == PSERVER_OK) {
    ps_error_set(&calls->error, code, "%s", text);
    for (struct ps_call *call = calls->first; call != NULL; call = call->next) {
      pthread_cond_signal(&call->woken);
    }
  }
  pthread_mutex_unlock(&calls->io->lock);
}

static void enlist(struct ps_call *call) {
  struct ps_calls *calls = call->calls;
  call->ends_at_ms = ps_now_ms() + call->timeout_ms;
  call->next = calls->first;
  calls->first = call;
  if (call->kind != PS_CALL_INNER) calls->running++;
}

static pserver_status aborted(const struct ps_call *call) {
  return ps_fail(PSERVER_ERR_ABORTED, "%s: aborted by the caller", call->what);
}

/** Returns OK if a call may begin. Called with the lock held. */
static pserver_status check_entry(const struct ps_call *call) {
  const struct ps_calls *calls = call->calls;
  if (call->kind == PS_CALL_INNER) return PSERVER_OK;
  bool can_look = call->kind == PS_CALL_LOOK && !calls->is_closing;
  if (calls->error.code != PSERVER_OK && !can_look) return ps_fail_with(&calls->error);
  if (call->cancellable.is_cancelled) return aborted(call);
  if (!calls->is_closing) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_CLOSED, "%s: the client is closed", call->what);
}

pserver_status ps_call_enter(struct ps_call *call, struct ps_calls *calls, const char *what,
                             int64_t timeout_ms, enum ps_call_kind kind) {
  *call = (struct ps_call){.calls = calls, .what = what, .timeout_ms = timeout_ms, .kind = kind};
  if (ps_condition_init(&call->woken) != 0) {
    return ps_fail(PSERVER_ERR_INTERNAL, "%s: no memory for a condition", what);
  }
  ps_cancellable_enter(&call->cancellable, &calls->io->lock, &call->woken);
  pthread_mutex_lock(&calls->io->lock);
  pserver_status status = check_entry(call);
  if (status == PSERVER_OK) enlist(call);
  pthread_mutex_unlock(&calls->io->lock);
  if (status == PSERVER_OK) return status;
  ps_cancellable_leave(&call->cancellable);
  pthread_cond_destroy(&call->woken);
  return status;
}

void ps_call_leave(struct ps_call *call) {
  struct ps_calls *calls = call->calls;
  pthread_mutex_lock(&calls->io->lock);
  struct ps_call **link = &calls->first;
  while (*link != call) link = &(*link)->next;
  *link = call->next;
  if (call->kind != PS_CALL_INNER && --calls->running == 0) pthread_cond_broadcast(&calls->idle);
  pthread_mutex_unlock(&calls->io->lock);
  ps_cancellable_leave(&call->cancellable);
  pthread_cond_destroy(&call->woken);
}

void ps_calls_count(struct ps_calls *calls, pserver_status status) {
  pthread_mutex_lock(&calls->io->lock);
  calls->ended++;
  if (status != PSERVER_OK) calls->failed[status]++;
  pthread_mutex_unlock(&calls->io->lock);
}

/** Checks as ps_call_check() does, with the lock held. */
static pserver_status check(const struct ps_call *call) {
  if (call->calls->error.code != PSERVER_OK && !call->is_last) {
    ps_fail_with(&call->calls->error);
    return ps_fail_prefixed("%s: ", call->what);
  }
  if (call->cancellable.is_cancelled) return aborted(call);
  if (ps_now_ms() < call->ends_at_ms) return PSERVER_OK;
  ps_fail(PSERVER_ERR_TIMEOUT, "%s: %s within %" PRId64 " ms", call->what,
          call->follows_progress ? "no progress" : "not finished", call->timeout_ms);
  return ps_detail_signed("timeoutMs", call->timeout_ms);
}

void ps_call_progressed(struct ps_call *call) {
  if (!call->follows_progress) return;
  pthread_mutex_lock(&call->calls->io->lock);
  call->ends_at_ms = ps_now_ms() + call->timeout_ms;
  pthread_mutex_unlock(&call->calls->io->lock);
}

pserver_status ps_call_check(struct ps_call *call) {
  pthread_mutex_lock(&call->calls->io->lock);
  pserver_status status = check(call);
  pthread_mutex_unlock(&call->calls->io->lock);
  return status;
}

pserver_status ps_call_sleep(struct ps_call *call, int64_t delay_ms) {
  int64_t until = ps_now_ms() + delay_ms;
  if (until > call->ends_at_ms) until = call->ends_at_ms;
  pthread_mutex_t *lock = &call->calls->io->lock;
  pthread_mutex_lock(lock);
  pserver_status status;
  while ((status = check(call)) == PSERVER_OK && ps_now_ms() < until) {
    ps_condition_wait(&call->woken, lock, until);
  }
  pthread_mutex_unlock(lock);
  return status;
}

int64_t ps_call_remaining_ms(const struct ps_call *call) {
  int64_t left = call->ends_at_ms - ps_now_ms();
  return left > 0 ? left : 0;
}

static void begin(void *context) {
  struct ps_task *task = context;
  task->begin(task);
}

/** Ends a task; ps_call_check() still fails, as it did when this work was posted. */
static void end(void *context) {
  struct ps_task *task = context;
  task->end(task, ps_call_check(task->call));
}

/**
 * Calls `on_progress` if the task has made progress. Called with the lock held, which it releases during that
 * call.
 */
static void run_progress(struct ps_task *task) {
  if (!task->has_progress) return;
  task->has_progress = false;
  pthread_mutex_unlock(&task->call->calls->io->lock);
  task->on_progress(task);
  pthread_mutex_lock(&task->call->calls->io->lock);
}

/** Waits until the task is over; ends it when its call has ended. Called with the lock held. */
static void await(struct ps_call *call, struct ps_task *task) {
  struct ps_io_thread *io = call->calls->io;
  while (!task->is_over) {
    if (!task->is_ending && task->end != NULL && check(call) != PSERVER_OK) {
      task->is_ending = true;
      ps_io_post_locked(io, &task->ending);
    }
    bool is_timed = task->end != NULL && !task->is_ending;
    ps_condition_wait(&call->woken, &io->lock, is_timed ? call->ends_at_ms : PS_NEVER_MS);
    run_progress(task);
  }
  /* The last progress may have come together with the end. */
  run_progress(task);
}

pserver_status ps_task_run(struct ps_call *call, struct ps_task *task) {
  struct ps_io_thread *io = call->calls->io;
  task->call = call;
  task->beginning = (struct ps_io_work){.run = begin, .context = task};
  task->ending = (struct ps_io_work){.run = end, .context = task};
  pthread_mutex_lock(&io->lock);
  ps_io_post_locked(io, &task->beginning);
  await(call, task);
  pthread_mutex_unlock(&io->lock);
  return task->status == PSERVER_OK ? PSERVER_OK : ps_fail_with(&task->error);
}

void ps_task_finish(struct ps_task *task, pserver_status status) {
  struct ps_call *call = task->call;
  task->status = status;
  if (status != PSERVER_OK) task->error = *ps_last_error();
  pthread_mutex_lock(&call->calls->io->lock);
  ps_io_unpost_locked(call->calls->io, &task->ending);
  task->is_over = true;
  pthread_cond_signal(&call->woken);
  pthread_mutex_unlock(&call->calls->io->lock);
}

/** Makes the calling thread call `on_progress`. On the I/O thread. */
static void task_note_progress(struct ps_task *task) {
  pthread_mutex_lock(&task->call->calls->io->lock);
  task->has_progress = true;
  pthread_cond_signal(&task->call->woken);
  pthread_mutex_unlock(&task->call->calls->io->lock);
}

struct io_function {
  struct ps_task task;
  void (*run)(struct ps_client *client, void *context);
  void *context;
};

static void run_function(struct ps_task *task) {
  const struct io_function *io_function = (const struct io_function *)task;
  io_function->run(task->call->client, io_function->context);
  ps_task_finish(task, PSERVER_OK);
}

void ps_run_on_io_thread(struct ps_call *call,
                         void (*io_function)(struct ps_client *client, void *context), void *context) {
  struct io_function made = {.task = {.begin = run_function}, .run = io_function, .context = context};
  ps_task_run(call, &made.task);
}

/* Sends the requests of a call and waits for the answers. */

struct request_task {
  struct ps_task task;
  struct ps_ask_group group;
  struct ps_requests *requests;
};

static void group_over(struct ps_ask_group *group, pserver_status status) {
  struct request_task *request = group->context;
  ps_task_finish(&request->task, status);
}

static void note_progress(struct ps_ask_group *group) {
  struct request_task *request = group->context;
  task_note_progress(&request->task);
}

static void progressed(struct ps_ask_group *group) {
  const struct request_task *request = group->context;
  ps_call_progressed(request->task.call);
  group->ends_at_ms = request->task.call->ends_at_ms;
}

static void run_request_progress(struct ps_task *task) {
  const struct request_task *request = (const struct request_task *)task;
  for (size_t i = 0; i < request->group.count; i++) {
    struct ps_ask *ask = &request->group.asks[i];
    if (ask->on_progress != NULL) ask->on_progress(ask);
  }
}

static void begin_task(struct ps_task *task) {
  struct request_task *request = (struct request_task *)task;
  ps_ask_group_begin(request->requests, &request->group);
}

static void end_task(struct ps_task *task, pserver_status why) {
  struct request_task *request = (struct request_task *)task;
  ps_ask_group_end(&request->group, why);
}

pserver_status ps_run_requests(struct ps_call *call, struct ps_requests *requests, struct ps_ask *asks,
                               size_t count) {
  struct request_task request = {
      .task = {.begin = begin_task, .end = end_task, .on_progress = run_request_progress},
      .group = {.asks = asks,
                .count = count,
                .ends_at_ms = call->ends_at_ms,
                .over = group_over,
                .progressed = progressed,
                .on_progress = note_progress},
      .requests = requests};
  request.group.context = &request;
  return ps_task_run(call, &request.task);
}
