#include "wire/wire.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Finds out what the broker has read, and ends a connection on which nothing moves any more. */

/** Time between two looks at the socket while something is on its way. */
#define LOOK_MS 1000
/**
 * How long nothing may move while a PING is not answered or a message is not written: more while bytes may still be
 * in the buffers of a slow way, so much as 128 KB a second need, up to a limit.
 */
#define SILENCE_MS 3000
#define BYTES_PER_MS 128
#define SILENCE_MS_MAX 36000
/** So many bytes are progress: many more than those of PINGs in the time of a call. */
#define PROGRESS_BYTES 16384
/** How long a PING may take at most; the watch ends a silent connection before. */
#define PING_MS 3600000

/* The socket of cnats, which has no function for it: it is found by its local address. */

static bool is_socket_at(int fd, const char *ip, int port) {
  struct sockaddr_storage name = {0};
  socklen_t size = sizeof name;
  char text[INET6_ADDRSTRLEN] = "";
  if (getsockname(fd, (struct sockaddr *)&name, &size) != 0) return false;
  const struct sockaddr_in *v4 = (const struct sockaddr_in *)&name;
  const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&name;
  const void *address = name.ss_family == AF_INET ? (const void *)&v4->sin_addr : &v6->sin6_addr;
  in_port_t received = name.ss_family == AF_INET ? v4->sin_port : v6->sin6_port;
  if (name.ss_family != AF_INET && name.ss_family != AF_INET6) return false;
  if (ntohs(received) != port || inet_ntop(name.ss_family, address, text, sizeof text) == NULL) return false;
  size = sizeof name;
  bool is_connected = getpeername(fd, (struct sockaddr *)&name, &size) == 0;
  return is_connected && strcmp(text, ip) == 0;
}

/** Returns a duplicate of the connected socket with this local address; -1 if it is not found. */
static int find_socket(const char *ip, int port) {
  int found = -1;
  DIR *listing = opendir("/proc/self/fd");
  if (listing == NULL) return -1;
  const struct dirent *entry;
  while (found < 0 && (entry = readdir(listing)) != NULL) {
    int fd = (int)strtol(entry->d_name, NULL, 10);
    if (!is_socket_at(fd, ip, port)) continue;
    /* A duplicate stays this socket, whatever becomes of the number. */
    found = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (found < 0 || is_socket_at(found, ip, port)) continue;
    close(found);
    found = -1;
  }
  closedir(listing);
  return found;
}

void ps_link_open(struct ps_connection *connection) {
  struct ps_link *link = &connection->link;
  char *ip = NULL;
  int port = 0;
  ps_link_close(connection);
  if (natsConnection_GetLocalIPAndPort(connection->nats, &ip, &port) == NATS_OK) {
    link->socket = find_socket(ip, port);
  }
  free(ip);
  link->moved_bytes = 0;
  link->progress_bytes = 0;
  link->sent_bytes = 0;
  link->asked_bytes = 0;
  link->read_bytes = 0;
  /* PINGs of the connection before are not answered any more. */
  pthread_mutex_lock(&connection->io->lock);
  link->begun = link->asked;
  pthread_mutex_unlock(&connection->io->lock);
  link->told = link->asked;
}

void ps_link_close(struct ps_connection *connection) {
  if (connection->link.socket >= 0) close(connection->link.socket);
  connection->link.socket = -1;
}

void ps_link_break(struct ps_connection *connection) {
  if (connection->link.socket >= 0) shutdown(connection->link.socket, SHUT_RDWR);
}

/** Bytes for which a socket has room as long as little is on its way. */
#define SHORT_BYTES 16384

bool ps_link_has_room(const struct ps_connection *connection, size_t bytes) {
  int fd = connection->link.socket;
  int unsent = 0;
  int most = 0;
  socklen_t size = sizeof most;
  if (fd < 0 || ioctl(fd, SIOCOUTQ, &unsent) != 0) return bytes <= SHORT_BYTES;
  if (unsent == 0 && bytes <= SHORT_BYTES) return true;
  if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, &size) != 0) return false;
  /* The system counts more than the bytes themselves. */
  return (size_t)unsent + bytes <= (size_t)most / 2;
}

/* The watch, on the I/O thread. */

/** Returns the bytes that have left and come on the socket; 0 where the system does not tell. */
static uint64_t moved_bytes(const struct ps_link *link) {
  struct tcp_info told = {0};
  socklen_t size = sizeof told;
  if (getsockopt(link->socket, IPPROTO_TCP, TCP_INFO, &told, &size) != 0) return 0;
  return told.tcpi_bytes_acked + told.tcpi_bytes_received;
}

/** Whether something is on its way to the broker, or its answer to a PING. */
static bool is_waiting(const struct ps_connection *connection) {
  return connection->link.told < connection->link.asked || ps_is_publishing(connection);
}

static int64_t patience_ms(const struct ps_link *link) {
  uint64_t needed_ms = SILENCE_MS + (link->sent_bytes - link->read_bytes) / BYTES_PER_MS;
  return needed_ms < SILENCE_MS_MAX ? (int64_t)needed_ms : SILENCE_MS_MAX;
}

static void look(void *context) {
  struct ps_connection *connection = context;
  struct ps_link *link = &connection->link;
  int64_t now = ps_now_ms();
  uint64_t bytes = link->socket < 0 ? 0 : moved_bytes(link);
  /* A time in which this process was paused is no silence: what has come meanwhile is yet to be read. */
  bool is_late = now - link->looked_at_ms > 2 * LOOK_MS;
  link->looked_at_ms = now;
  if (is_late || bytes != link->moved_bytes) link->moved_at_ms = now;
  link->moved_bytes = bytes;
  if (bytes >= link->progress_bytes + PROGRESS_BYTES) {
    link->progress_bytes = bytes;
    connection->listener->moved(connection->listener->owner);
  }
  bool is_watched = link->socket >= 0 && connection->is_connected && is_waiting(connection);
  if (is_watched && now - link->moved_at_ms >= patience_ms(link)) {
    ps_link_break(connection);
    is_watched = false;
  }
  ps_timer_set(&connection->io->timers, &link->look, is_watched ? now + LOOK_MS : PS_NEVER_MS);
}

void ps_link_watch(struct ps_connection *connection) {
  struct ps_link *link = &connection->link;
  if (link->look.before != NULL || link->socket < 0) return;
  link->looked_at_ms = ps_now_ms();
  link->moved_at_ms = link->looked_at_ms;
  ps_timer_set(&connection->io->timers, &link->look, link->looked_at_ms + LOOK_MS);
}

void ps_link_note_sent(struct ps_connection *connection, size_t bytes) {
  connection->link.sent_bytes += bytes;
  connection->sent_bytes += bytes;
}

/* PINGs, on a thread of their own, because cnats has no way to send one without waiting for the answer. */

static void *ping_always(void *closure) {
  struct ps_connection *connection = closure;
  struct ps_link *link = &connection->link;
  struct ps_io_thread *io = connection->io;
  pthread_mutex_lock(&io->lock);
  while (!link->is_stopping) {
    bool is_due = link->begun < link->asked && !connection->publisher.is_writing &&
                  connection->publisher.waiting.count == 0;
    if (!is_due) {
      ps_condition_wait(&link->woken, &io->lock, PS_NEVER_MS);
      continue;
    }
    uint64_t number = link->asked;
    link->begun = number;
    /* The next record may be published now. */
    ps_io_post_locked(io, &link->report);
    pthread_mutex_unlock(&io->lock);
    natsStatus status = natsConnection_FlushTimeout(connection->nats, PING_MS);
    pthread_mutex_lock(&io->lock);
    if (status != NATS_OK) continue;
    link->answered = number;
    ps_io_post_locked(io, &link->report);
  }
  pthread_mutex_unlock(&io->lock);
  nats_ReleaseThreadMemory();
  return NULL;
}

static void report(void *context) {
  struct ps_connection *connection = context;
  struct ps_link *link = &connection->link;
  pthread_mutex_lock(&connection->io->lock);
  uint64_t answered = link->answered;
  pthread_mutex_unlock(&connection->io->lock);
  if (answered <= link->told) return;
  link->told = answered;
  if (answered == link->asked) link->read_bytes = link->asked_bytes;
  connection->listener->confirmed(connection->listener->owner, answered);
}

pserver_status ps_link_init(struct ps_connection *connection) {
  connection->link = (struct ps_link){.socket = -1,
                                      .look = {.due = look, .context = connection},
                                      .report = {.run = report, .context = connection}};
  return ps_condition_init(&connection->link.woken) == 0 ? PSERVER_OK : ps_no_memory("a connection");
}

void ps_link_wake_locked(struct ps_connection *connection) {
  pthread_cond_signal(&connection->link.woken);
}

uint64_t ps_link_ask(struct ps_connection *connection) {
  struct ps_link *link = &connection->link;
  if (!link->has_thread) {
    link->has_thread = pthread_create(&link->thread, NULL, ping_always, connection) == 0;
  }
  pthread_mutex_lock(&connection->io->lock);
  uint64_t number = ++link->asked;
  /* Without a thread there is no answer: what is repeated then may be repeated too early. */
  if (!link->has_thread) {
    link->begun = number;
    link->answered = number;
    ps_io_post_locked(connection->io, &link->report);
  }
  ps_link_wake_locked(connection);
  pthread_mutex_unlock(&connection->io->lock);
  link->asked_bytes = link->sent_bytes;
  ps_link_watch(connection);
  return number;
}

bool ps_link_is_due(const struct ps_connection *connection) {
  const struct ps_link *link = &connection->link;
  if (!link->has_thread) return false;
  pthread_mutex_lock(&connection->io->lock);
  bool is_due = link->begun < link->asked;
  pthread_mutex_unlock(&connection->io->lock);
  return is_due;
}

void ps_link_stop(struct ps_connection *connection) {
  struct ps_link *link = &connection->link;
  if (!link->has_thread) return;
  pthread_mutex_lock(&connection->io->lock);
  link->is_stopping = true;
  pthread_cond_signal(&link->woken);
  pthread_mutex_unlock(&connection->io->lock);
  pthread_join(link->thread, NULL);
  link->has_thread = false;
}

void ps_link_release(struct ps_connection *connection) {
  ps_link_stop(connection);
  ps_link_close(connection);
  pthread_cond_destroy(&connection->link.woken);
}
