/* A link without a socket: writing never waits, and PINGs are answered at once unless the broker holds them. */
#include "fake-connection.h"
#include "wire/wire.h"

static void report(void *context) {
  struct ps_connection *connection = context;
  struct ps_link *link = &connection->link;
  if (broker.holds_pings && connection == broker.connection) return;
  if (link->told == link->asked) return;
  link->told = link->asked;
  connection->listener->confirmed(connection->listener->owner, link->told);
}

static void tell_moved(void *context) {
  struct ps_connection *connection = context;
  connection->listener->moved(connection->listener->owner);
}

pserver_status ps_link_init(struct ps_connection *connection) {
  connection->link =
      (struct ps_link){.socket = -1, .report = {.run = report, .context = connection}};
  return PSERVER_OK;
}

uint64_t ps_link_ask(struct ps_connection *connection) {
  connection->link.asked++;
  ps_io_post(connection->io, &connection->link.report);
  return connection->link.asked;
}

void answer_pings(void) {
  broker.holds_pings = false;
  ps_io_post(broker.connection->io, &broker.connection->link.report);
}

void move_bytes(void) {
  static struct ps_io_work moved;
  moved = (struct ps_io_work){.run = tell_moved, .context = broker.connection};
  ps_io_post(broker.connection->io, &moved);
}

void ps_link_open(struct ps_connection *connection) { connection->link.told = connection->link.asked; }

bool ps_link_has_room(const struct ps_connection *connection, size_t bytes) {
  (void)connection;
  (void)bytes;
  return true;
}

bool ps_link_is_due(const struct ps_connection *connection) {
  (void)connection;
  return false;
}

void ps_link_note_sent(struct ps_connection *connection, size_t bytes) {
  (void)connection;
  (void)bytes;
}

void ps_link_watch(struct ps_connection *connection) { (void)connection; }

void ps_link_wake_locked(struct ps_connection *connection) { (void)connection; }

void ps_link_close(struct ps_connection *connection) { (void)connection; }

void ps_link_break(struct ps_connection *connection) { (void)connection; }

void ps_link_stop(struct ps_connection *connection) { (void)connection; }

void ps_link_release(struct ps_connection *connection) { (void)connection; }
