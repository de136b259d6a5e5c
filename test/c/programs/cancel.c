/*
 * Ends what one thread does from another. Arguments: what it does, URL, job. `connect` to a broker that does
 * not answer; `get` of what is never initialized; `save`; `close` while another thread gets and is
 * held up. Cancels when it reads a line, and prints what the call said.
 */
#include <pserver.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

/** So long that only the canceller ends the call. */
#define PS_NEVER_MS (INT64_C(3600) * 1000)

static pserver_canceller *canceller;
static pserver_client *client;
static pserver_options options;

static pserver_status make_client(void) {
  pserver_client *made = NULL;
  pserver_status status = pserver_connect(&options, &made);
  client = made;
  return status;
}

static pserver_status get(void) {
  const char *name = "w";
  pserver_tensor got = {0};
  return pserver_get(client, &name, &got, 1, PSERVER_AS_IS, PS_NEVER_MS);
}

static pserver_status save(void) { return pserver_save(client, "model.npz", PS_NEVER_MS); }

static pserver_status end(void) { return pserver_close(client, PS_NEVER_MS); }

/** A call on another thread, which may use the canceller. */
struct attempt {
  pserver_status (*call)(void);
  pserver_canceller *canceller;
  pserver_status status;
  pthread_t thread;
};

static void *attempt(void *argument) {
  struct attempt *attempt = argument;
  pserver_use_canceller(attempt->canceller);
  attempt->status = attempt->call();
  return NULL;
}

static void begin(struct attempt *begun) {
  EXPECT(pthread_create(&begun->thread, NULL, attempt, begun) == 0);
}

static pserver_status result(struct attempt *of) {
  EXPECT(pthread_join(of->thread, NULL) == 0);
  return of->status;
}

static void cancel_when_told(void) {
  char line[8];
  EXPECT(fgets(line, sizeof line, stdin) != NULL);
  pserver_cancel(canceller);
}

static void connecting(void) {
  struct attempt made = {.call = make_client, .canceller = canceller};
  begin(&made);
  cancel_when_told();
  EXPECT(result(&made) == PSERVER_ERR_ABORTED);
  EXPECT(client == NULL);
}

/** While the canceller is cancelled each call ends, and none after it is rearmed. */
static void until_rearmed(void) {
  pserver_job_info info;
  pserver_use_canceller(canceller);
  EXPECT_ERROR(ABORTED, pserver_job_status(client, &info, -1));
  EXPECT_ERROR(ABORTED, make_client());
  pserver_canceller_rearm(canceller);
}

/** A call of a client that is used afterwards. */
static void calling(pserver_status (*call)(void)) {
  pserver_job_info info;
  struct attempt got = {.call = call, .canceller = canceller};
  EXPECT_OK(make_client());
  pserver_client *made = client;
  begin(&got);
  cancel_when_told();
  EXPECT(result(&got) == PSERVER_ERR_ABORTED);
  until_rearmed();
  client = made;
  EXPECT_OK(pserver_job_status(client, &info, -1));
  pserver_cancel(canceller);
  pserver_use_canceller(NULL);
  EXPECT_OK(pserver_job_status(client, &info, -1));
  EXPECT_OK(pserver_close(client, -1));
}

static int gate[2];

/** Holds up the thread that it runs on, between any two of its instructions. */
static void hold_up(int signal) {
  char byte;
  (void)signal;
  while (read(gate[0], &byte, 1) != 1) continue;
}

static void closing(void) {
  pserver_client_info info = {.struct_size = sizeof info};
  struct attempt got = {.call = get};
  struct attempt closed = {.call = end, .canceller = canceller};
  EXPECT_OK(make_client());
  begin(&got);
  cancel_when_told();
  pserver_canceller_rearm(canceller);
  EXPECT(pipe(gate) == 0);
  EXPECT(signal(SIGUSR1, hold_up) != SIG_ERR);
  EXPECT(pthread_kill(got.thread, SIGUSR1) == 0);
  begin(&closed);
  while (pserver_describe(client, &info) == PSERVER_OK) sched_yield();
  pserver_cancel(canceller);
  EXPECT(result(&closed) == PSERVER_ERR_ABORTED);
  /* Calls of other threads on the client end, too, whenever they come to it. */
  for (int i = 0; i < 10000; i++) sched_yield();
  EXPECT(write(gate[1], "", 1) == 1);
  EXPECT(result(&got) == PSERVER_ERR_CLOSED);
}

int main(int argc, char **argv) {
  EXPECT(argc == 4);
  EXPECT_ERROR(BAD_VALUE, pserver_canceller_new(NULL));
  EXPECT_OK(pserver_canceller_new(&canceller));
  pserver_cancel(NULL);
  pserver_canceller_rearm(NULL);
  pserver_canceller_free(NULL);
  pserver_options_init(&options);
  options.url = argv[2];
  options.job = argv[3];
  options.connect_timeout_ms = PS_NEVER_MS;
  options.attempt_timeout_ms = PS_NEVER_MS;
  if (strcmp(argv[1], "connect") == 0) connecting();
  else if (strcmp(argv[1], "get") == 0) calling(get);
  else if (strcmp(argv[1], "save") == 0) calling(save);
  else closing();
  pserver_canceller_free(canceller);
  return 0;
}
