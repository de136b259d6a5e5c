#include "client/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Counts of what a client does. */

/** Time for pserver_stats(), which waits for the I/O thread only. */
#define STATS_MS 1000

/** Size of the counts as JSON: each code and number has fewer than 50 characters. */
#define JSON_SIZE (50 * (PSERVER_STATUS_COUNT + 10) + 6 * PS_ID_SIZE)

static void take_stats(struct ps_client *client, void *context) {
  pserver_client_stats *stats = context;
  const struct ps_connection *connections[] = {&client->connection, &client->control};
  *stats = (pserver_client_stats){
      .struct_size = sizeof *stats,
      .records = client->sender.records,
      .resent = client->sender.resent,
      .clipped = client->sender.outbox->clipped,
      .set_aside = client->sender.outbox->set_aside,
      .reads = client->requests.tokens,
  };
  for (size_t i = 0; i < 2; i++) {
    stats->sent_bytes += connections[i]->sent_bytes;
    stats->received_bytes += connections[i]->received_bytes;
    stats->reconnects += connections[i]->reconnects;
  }
  pthread_mutex_lock(&client->io.lock);
  stats->calls = client->calls.ended;
  memcpy(stats->failed, client->calls.failed, sizeof stats->failed);
  pthread_mutex_unlock(&client->io.lock);
}

static pserver_status check_stats(const pserver_client_stats *stats) {
  if (stats == NULL) return ps_fail(PSERVER_ERR_BAD_VALUE, "stats: expected a pointer; received NULL");
  return ps_check_struct_size("pserver_stats", sizeof *stats, stats->struct_size, NULL);
}

pserver_status pserver_stats(pserver_client *handle, pserver_client_stats *stats) {
  struct ps_client *client;
  struct ps_call call;
  pserver_status status = ps_client_acquire(handle, "pserver_stats", &client);
  if (status != PSERVER_OK) return status;
  status = check_stats(stats);
  if (status == PSERVER_OK) {
    status = ps_call_enter(&call, &client->calls, "pserver_stats", STATS_MS, PS_CALL_LOOK);
  }
  if (status == PSERVER_OK) {
    call.client = client;
    ps_run_on_io_thread(&call, take_stats, stats);
    ps_call_leave(&call);
  }
  ps_client_release(client);
  return status;
}

static void write_number(struct ps_json *json, const char *key, uint64_t number) {
  ps_json_key(json, false, key, strlen(key));
  ps_json_whole(json, number);
}

static void write_failed(struct ps_json *json, const uint64_t failed[PSERVER_STATUS_COUNT]) {
  bool is_first = true;
  ps_json_key(json, false, "failed", strlen("failed"));
  ps_json_raw(json, "{");
  for (int status = 1; status < PSERVER_STATUS_COUNT; status++) {
    if (failed[status] == 0) continue;
    const char *name = pserver_status_name((pserver_status)status);
    ps_json_key(json, is_first, name, strlen(name));
    ps_json_whole(json, failed[status]);
    is_first = false;
  }
  ps_json_raw(json, "}");
}

void ps_stats_leave(struct ps_client *client) {
  const char *directory = getenv("PSERVER_STATS_DIR");
  char path[4096];
  char text[JSON_SIZE];
  struct ps_json json = {.bytes = text, .size = sizeof text};
  pserver_client_stats stats;
  if (directory == NULL || *directory == '\0') return;
  take_stats(client, &stats);
  ps_json_raw(&json, "{");
  ps_json_key(&json, true, "trainer", strlen("trainer"));
  ps_json_text(&json, client->identity.trainer, strlen(client->identity.trainer));
  write_number(&json, "calls", stats.calls);
  write_failed(&json, stats.failed);
  write_number(&json, "records", stats.records);
  write_number(&json, "resent", stats.resent);
  write_number(&json, "clipped", stats.clipped);
  write_number(&json, "setAside", stats.set_aside);
  write_number(&json, "reads", stats.reads);
  write_number(&json, "sentBytes", stats.sent_bytes);
  write_number(&json, "receivedBytes", stats.received_bytes);
  write_number(&json, "reconnects", stats.reconnects);
  ps_json_raw(&json, "}");
  int length = snprintf(path, sizeof path, "%s/%ld-%" PRIu64 ".json", directory, (long)getpid(), client->number);
  if (json.is_full || length < 0 || (size_t)length >= sizeof path) return;
  FILE *file = fopen(path, "w");
  /* Nothing depends on the counts, so a failure is nobody's. */
  if (file == NULL) return;
  fputs(text, file);
  fclose(file);
}
