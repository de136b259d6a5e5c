#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

/*
 * Connection and I/O thread of a client; requests and their answers; messages, names and element types as they
 * are sent.
 */

#include <msgpack.h>
#include <nats/nats.h>
#include <pserver.h>
#include <pthread.h>
#include <string.h>

#include "core/core.h"

/** Addresses that are used; further ones of a list are only checked. */
#define PS_ADDRESSES_MAX 32

/** A list of broker addresses. It owns its texts. */
struct ps_addresses {
  /** `scheme://host:port` or `host:port`, without credentials. */
  const char *servers[PS_ADDRESSES_MAX];
  int count;
  /** Whether all addresses are `tls://`; otherwise none is. */
  bool wants_tls;
  /** The host of all addresses, without a port; NULL if they have different ones. */
  char *host;
  /** The credentials of the first address that has any: a user and a password, or a token. */
  char *user;
  char *password;
  char *token;

  /** Memory that `servers` points into. */
  char *text;
};

/**
 * Reads addresses separated by commas: `nats://host:port`, `tls://…` or `host:port`, with `user:password@`
 * or `token@` before the host. In these, `/ @ : ? # % ,` are written as `%` and two hexadecimal digits.
 * Release the addresses also after an error. BAD_VALUE; its message shows nothing of the list, because any
 * part of a malformed list may be part of a password.
 */
pserver_status ps_read_addresses(const char *list, struct ps_addresses *addresses);
void ps_release_addresses(struct ps_addresses *addresses);

/** Bytes of a broker's token and its end. */
#define PS_LOCAL_TOKEN_SIZE 1025

/**
 * Finds the token of the first of these addresses that has one, in the file of the user who has started a broker
 * there; "" if none has, or if an address is not of this machine. BAD_VALUE for a file that others may read or that
 * belongs to another user; IO.
 */
pserver_status ps_find_local_token(const struct ps_addresses *addresses, char token[PS_LOCAL_TOKEN_SIZE]);

/** A wait of a thread that the canceller of the thread can end. */
struct ps_cancellable {
  /** NULL: the thread uses none. */
  pserver_canceller *canceller;
  pthread_mutex_t *lock;
  pthread_cond_t *woken;
  /** Stays true when the canceller is rearmed. Guarded by `lock`. */
  bool is_cancelled;
  struct ps_cancellable *next;
};

/**
 * Makes the canceller of this thread, if it uses one, signal `woken` when it is cancelled, until
 * ps_cancellable_leave(). Call neither with `lock` held: a canceller takes it while it holds its own.
 */
void ps_cancellable_enter(struct ps_cancellable *entered, pthread_mutex_t *lock, pthread_cond_t *woken);
void ps_cancellable_leave(struct ps_cancellable *entered);

/** The first and the longest pause between attempts. */
#define PS_PAUSE_MS 50
#define PS_PAUSE_MS_MAX 500

/** Returns the milliseconds of a clock that never goes back. */
int64_t ps_now_ms(void);

/** Initializes a condition that uses the clock of ps_now_ms(). Returns an error number, or 0. */
int ps_condition_init(pthread_cond_t *condition);

/** Waits, with the mutex held, until the condition is signalled or the time has come. */
void ps_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ms);

/** Returns random bits, which differ between processes and threads. */
uint64_t ps_random_bits(void);

/** Returns the delay after `delay_ms`: twice as long, at most `max_ms`. */
int64_t ps_doubled_ms(int64_t delay_ms, int64_t max_ms);

/** Returns the delay less a random part, up to a quarter, so that clients do not all retry at once. */
int64_t ps_varied_ms(int64_t delay_ms);

/** A function to call at a time. The caller owns it; setting it allocates no memory. All zeros: not set. */
struct ps_timer {
  void (*due)(void *context);
  void *context;
  int64_t at_ms;
  /** Links of the heap: the first child, which is due later, and the next child of the same parent. */
  struct ps_timer *child;
  struct ps_timer *next;
  /** The previous child of the same parent; the parent, of a first child; itself, of the root; NULL: not
   * set. */
  struct ps_timer *before;
};

/** Timers that are set, in a pairing heap: setting takes constant time, clearing O(log n) amortized. */
struct ps_timers {
  struct ps_timer *root;
};

/** Sets a timer to this time, instead of a time set before; PS_NEVER_MS clears it. */
void ps_timer_set(struct ps_timers *timers, struct ps_timer *timer, int64_t at_ms);

/** Returns when the first timer is due; PS_NEVER_MS if none is set. */
int64_t ps_timers_next_ms(const struct ps_timers *timers);

/** Calls the functions of all timers that are due; false if there are none. */
bool ps_timers_run(struct ps_timers *timers, int64_t now_ms);

/** Work for the I/O thread. Who posts it owns it, and keeps it until it has run. */
struct ps_io_work {
  void (*run)(void *context);
  void *context;
  struct ps_queue_link place;
};

/**
 * The thread that owns the state of one client. Other threads post work to it. `lock` guards the fields up
 * to `is_stopping`, and fields elsewhere whose comments say so; it is held for a few instructions only,
 * never while cnats is called.
 */
struct ps_io_thread {
  pthread_mutex_t lock;
  struct ps_queue posted;
  bool is_stopping;
  /** Signalled when there is work. */
  pthread_cond_t woken;

  pthread_t thread;
  bool has_thread;
  /** Used on the I/O thread only. */
  struct ps_timers timers;
  /** Does one piece of low-priority work when nothing else is due; false if there is none. May be NULL. */
  bool (*run_idle)(void *context);
  void *idle_context;
};

/** Initializes the state of a thread, which ps_io_start() starts. INTERNAL. */
pserver_status ps_io_init(struct ps_io_thread *io);
pserver_status ps_io_start(struct ps_io_thread *io);

/** Ends the thread after it has run all posted work. Work posted later never runs. */
void ps_io_stop(struct ps_io_thread *io);
void ps_io_release(struct ps_io_thread *io);

/** Posts work, which runs after work posted before. The first is called with the lock held. */
void ps_io_post_locked(struct ps_io_thread *io, struct ps_io_work *work);
void ps_io_post(struct ps_io_thread *io, struct ps_io_work *work);

/** Removes posted work that has not run yet. Called with the lock held. */
void ps_io_unpost_locked(struct ps_io_thread *io, struct ps_io_work *work);

/** Runs posted work and due timers, or else low-priority work once; false if there was nothing to run. */
bool ps_io_run(struct ps_io_thread *io);

/** Bytes of the inbox's name, and of the subjects below it, with the final zero. */
#define PS_INBOX_SIZE 192
#define PS_REPLY_SIZE (PS_INBOX_SIZE + 64)
/** Bytes of a subject with job, shard, escaped trainer and parameter, and the words between. */
#define PS_SUBJECT_SIZE 384
/** Notifications of the connection. On the I/O thread, except `retain` and `release`. */
struct ps_connection_listener {
  void *owner;
  /** Takes a message to the inbox, which is valid until this returns. */
  void (*received)(void *owner, natsMsg *message);
  /** Tells that the connection is lost; nothing can be published until `reconnected`. */
  void (*disconnected)(void *owner);
  /** Tells that the connection is back. */
  void (*reconnected)(void *owner);
  /** Tells that the client can do nothing more: the connection is closed, or the inbox is denied. */
  void (*lost)(void *owner, pserver_status code, const char *text);
  /** Tells that the broker denied publishing to a subject. */
  void (*denied)(void *owner, const char *subject);
  /** Tells that the broker has answered the PINGs up to this number: see ps_link_ask(). */
  void (*confirmed)(void *owner, uint64_t number);
  /** Tells that bytes have left or come since the last time, more than those of a few PINGs. */
  void (*moved)(void *owner);
  /** Keeps the connection and its owner alive until `release`. Both on any thread. */
  void (*retain)(void *owner);
  void (*release)(void *owner);
};

/** Received messages, in order. */
struct ps_received {
  natsMsg **messages;
  size_t count;
  size_t capacity;
};

/** A message to be published in its turn. Who hands it over keeps it, and what it points to, until `done`. */
struct ps_publication {
  const char *subject;
  /** NULL: without a reply subject. */
  const char *reply;
  const void *bytes;
  size_t count;
  /** Called once on the I/O thread, with OK or as ps_publish() fails. May free the publication. */
  void (*done)(struct ps_publication *publication, pserver_status status);
  void *context;

  /** Set by the publisher. */
  pserver_status status;
  struct ps_queue_link place;
};

/** Publishes, on a thread of its own where that can block, so that a slow link never stops the I/O thread. */
struct ps_publisher {
  struct ps_connection *connection;
  /** Used on the I/O thread: started for the first message that needs it. */
  pthread_t thread;
  bool has_thread;
  /** Signalled when there is a message to write. */
  pthread_cond_t woken;
  struct ps_io_work report;

  /** Guarded by the I/O thread's lock. */
  struct ps_queue waiting;
  struct ps_queue written;
  bool is_writing;
  bool is_stopping;
};

/** What is known of the way to the broker: what it has read, and whether anything moves. */
struct ps_link {
  /** Used on the I/O thread: started for the first PING. */
  pthread_t thread;
  bool has_thread;
  /** A duplicate of the socket of cnats, by which the system tells what moves; -1 if there is none. */
  int socket;
  struct ps_timer look;
  int64_t looked_at_ms;
  int64_t moved_at_ms;
  uint64_t moved_bytes;
  uint64_t progress_bytes;
  /** Bytes published on this connection, and those of them before the last PING and the last answered one. */
  size_t sent_bytes;
  size_t asked_bytes;
  size_t read_bytes;
  /** The last answer that the listener was told. */
  uint64_t told;
  /** Signalled when a PING is due. */
  pthread_cond_t woken;
  struct ps_io_work report;

  /** Guarded by the I/O thread's lock: the numbers of the last PING wanted, begun and answered. */
  uint64_t asked;
  uint64_t begun;
  uint64_t answered;
  bool is_stopping;
};

/**
 * A connection to the broker, and its inbox. Threads of cnats read the socket and pass messages and events to
 * the I/O thread.
 */
struct ps_connection {
  struct ps_io_thread *io;
  const struct ps_connection_listener *listener;
  /** The client subscribes to all subjects below this name. */
  const char *inbox_name;
  natsConnection *nats;
  natsSubscription *inbox;
  struct ps_publisher publisher;
  struct ps_link link;

  /** Guarded by the I/O thread's lock. */
  struct ps_received received;
  bool is_lost;
  bool is_back;
  bool is_closed;
  struct ps_io_work events;

  /** Used on the I/O thread: whether there is a connection. */
  bool is_connected;
  /** Used on the I/O thread: bytes of all messages sent and received, and how often the connection came back. */
  uint64_t sent_bytes;
  uint64_t received_bytes;
  uint64_t reconnects;
  /** The largest message that the broker accepts, as last read from cnats; 0 before. Atomic. */
  size_t payload_bytes_max;
  /** Messages that are being handled. */
  struct ps_received handled;
};

/** Initializes a connection, to be opened by ps_connect(); `listener` and `inbox_name` must outlive it. INTERNAL. */
pserver_status ps_connection_init(struct ps_connection *connection, struct ps_io_thread *io,
                                  const struct ps_connection_listener *listener, const char *inbox_name);

/** Closes a connection, whose I/O thread has ended or has nothing to do with it. */
void ps_disconnect(struct ps_connection *connection);

/** Returns the largest message that the broker accepts, or the last broker accepted. On any thread. */
size_t ps_payload_bytes_max(const struct ps_connection *connection);

/** Returns how many tensor bytes a message can have: the broker's limit less that of the other entries. */
size_t ps_data_bytes_max(const struct ps_connection *connection);

/**
 * Publishes a message, now or after those handed over before; `reply` NULL: without a reply subject. Copies what
 * it cannot write at once. On the I/O thread, as all functions of the publisher. NO_BROKER while there is no
 * connection; IO if it broke during the write, so that part of the message may be sent; TOO_LARGE, CLOSED,
 * INTERNAL.
 */
pserver_status ps_publish(struct ps_connection *connection, const char *subject, const char *reply,
                          const void *bytes, size_t count);

/** Whether ps_publish() would write so many bytes now, without waiting for room. */
bool ps_can_write_now(const struct ps_connection *connection, size_t count);

/** Publishes a message without copying it. OK: `done` will follow. NO_BROKER, TOO_LARGE, INTERNAL: it will not. */
pserver_status ps_publish_later(struct ps_connection *connection, struct ps_publication *publication);

/** Whether messages wait to be written, or one is being written. */
bool ps_is_publishing(const struct ps_connection *connection);

/** Initializes a publisher without a thread. INTERNAL. */
pserver_status ps_publisher_init(struct ps_publisher *publisher, struct ps_connection *connection);
/** Ends all publications that wait with NO_BROKER, because the connection is lost. */
void ps_publisher_drop(struct ps_publisher *publisher);
/** Ends the thread after what it is writing. */
void ps_publisher_stop(struct ps_publisher *publisher);
/** Frees what a publisher holds, after the I/O thread has ended. */
void ps_publisher_release(struct ps_publisher *publisher);

/**
 * Asks the broker by a PING for a sign that it has read all that was published before, and that all has come which
 * it had sent by then; returns the number of the question. `confirmed` of the listener follows, unless the
 * connection is lost before. On the I/O thread, as the other functions of the link.
 */
uint64_t ps_link_ask(struct ps_connection *connection);

/** Whether a PING waits for what is being written: publish nothing large before it. */
bool ps_link_is_due(const struct ps_connection *connection);

/** Whether the socket has room for so many bytes, so that writing them does not wait. */
bool ps_link_has_room(const struct ps_connection *connection, size_t bytes);

/** Notes that so many bytes are published. */
void ps_link_note_sent(struct ps_connection *connection, size_t bytes);

/** Watches the connection while something is on its way, and ends it if nothing moves any more. */
void ps_link_watch(struct ps_connection *connection);

/** Notes that the publisher has nothing more to write. On any thread, with the I/O thread's lock held. */
void ps_link_wake_locked(struct ps_connection *connection);

/** Initializes the link of a connection that is not open. INTERNAL. */
pserver_status ps_link_init(struct ps_connection *connection);
/** Takes the socket of a connection that was opened, or opened again. */
void ps_link_open(struct ps_connection *connection);
/** Gives the socket back. */
void ps_link_close(struct ps_connection *connection);
/** Ends the present connection at once, also a write that waits; cnats then opens another one. */
void ps_link_break(struct ps_connection *connection);
/** Ends the thread; the connection must be closed. */
void ps_link_stop(struct ps_connection *connection);
/** Frees what a link holds, after the I/O thread has ended. */
void ps_link_release(struct ps_connection *connection);

/** Frees what a connection holds, which is closed or was never opened; the I/O thread has ended. */
void ps_connection_release(struct ps_connection *connection);

/**
 * A message that is being written: a map that begins with `crc` and `v`, and ends with the tensor bytes, if
 * any. Entries are written between ps_draft_begin() and ps_draft_end(); text must be UTF-8. Release a draft
 * with ps_draft_release(). Only the functions that end a draft report that memory ran out.
 */
struct ps_draft {
  msgpack_sbuffer buffer;
  msgpack_packer packer;
  uint32_t entries;
  bool has_no_memory;
};

void ps_draft_begin(struct ps_draft *draft);
void ps_draft_whole(struct ps_draft *draft, const char *key, uint64_t value);
void ps_draft_flag(struct ps_draft *draft, const char *key, bool value);
void ps_draft_text(struct ps_draft *draft, const char *key, const char *text);

/** Writes a key; the ps_pack_ functions then write its value. */
void ps_draft_key(struct ps_draft *draft, const char *key);
/** Packs the key of an entry of an inner map. */
void ps_pack_key(struct ps_draft *draft, const char *key);
void ps_pack_text(struct ps_draft *draft, const char *text, size_t bytes);
void ps_pack_bytes(struct ps_draft *draft, const void *bytes, size_t count);
void ps_pack_whole(struct ps_draft *draft, uint64_t value);
void ps_pack_number(struct ps_draft *draft, double value);
void ps_pack_flag(struct ps_draft *draft, bool value);
void ps_pack_list(struct ps_draft *draft, size_t count);
void ps_pack_shape(struct ps_draft *draft, const uint64_t *shape, int32_t rank);
void ps_pack_map(struct ps_draft *draft, size_t count);
/** Appends a value that is encoded already. */
void ps_pack_raw(struct ps_draft *draft, const void *bytes, size_t count);

/** Ends a message without tensor bytes and writes its checksum. INTERNAL if memory has run out. */
pserver_status ps_draft_end(struct ps_draft *draft);

/**
 * Ends the draft of a message that continues with so many tensor bytes, which are not part of the draft. The
 * checksum is to be written by ps_seal_message(). INTERNAL if memory has run out.
 */
pserver_status ps_draft_end_with_data(struct ps_draft *draft, size_t data_bytes);

/** Ends a message with these tensor bytes and writes its checksum. INTERNAL if memory has run out. */
pserver_status ps_draft_end_and_append(struct ps_draft *draft, const void *data, size_t bytes);

/** Returns the checksum of the draft's bytes, to be updated with the tensor bytes by ps_crc32_update(). */
uint32_t ps_draft_crc(const struct ps_draft *draft);

/** Writes its checksum into a message. */
void ps_seal_message(uint8_t *message, uint32_t crc);

void ps_draft_release(struct ps_draft *draft);

/*
 * Batches, batched reads and their answers say what they say of many blocks in columns: arrays of little-endian
 * numbers in their tensor bytes. A column, and the values of a block in an answer, are padded with zeros to a
 * multiple of 8 bytes.
 */

/** Returns the bytes of a column, or of a block's values in an answer, with the zeros behind them. */
static inline size_t ps_padded_bytes(size_t bytes) { return (bytes + 7) / 8 * 8; }

/** Returns the padded bytes of a column of `count` uint32 numbers. */
static inline size_t ps_uint32_column_bytes(size_t count) {
  return ps_padded_bytes(count * sizeof(uint32_t));
}

/** Returns the bytes of a column of `count` float64 numbers. */
static inline size_t ps_float64_column_bytes(size_t count) { return count * sizeof(double); }

/** Takes `bytes` at `*at` for a column that the caller writes; pads it with zeros, and moves `*at` behind it. */
uint8_t *ps_place_column(uint8_t **at, size_t bytes);

/** Writes the next number of a column, and moves `*at` behind it. */
static inline void ps_put_uint32(uint8_t **at, uint32_t number) {
  memcpy(*at, &number, sizeof number);
  *at += sizeof number;
}
static inline void ps_put_float64(uint8_t **at, double number) {
  memcpy(*at, &number, sizeof number);
  *at += sizeof number;
}

/** Writes the next `count` numbers of a column, and moves `*at` behind them. */
static inline void ps_put_uint32_list(uint8_t **at, const uint32_t *numbers, size_t count) {
  memcpy(*at, numbers, count * sizeof *numbers);
  *at += count * sizeof *numbers;
}

/** A received message; everything points into its bytes. */
struct ps_message {
  struct ps_value fields;
  const uint8_t *data;
  size_t data_bytes;
};

/** Checks and reads a message. BAD_MESSAGE, BAD_CHECKSUM, BAD_VERSION. */
pserver_status ps_open_message(const uint8_t *bytes, size_t count, struct ps_message *message);

/** Makes the error in a message the last error; OK if the message has none. */
pserver_status ps_error_in_message(const struct ps_message *message);

/** Reads a position from a map's `generation` and `seq`. False if one is missing. */
bool ps_map_position(const struct ps_value *map, struct ps_position *position);

/** Returns the position that the error in a message says was expected; 0 where it says none. */
struct ps_position ps_expected_position(const struct ps_message *message);

/** Returns the session that the error in a message says is over; 0 if it says none. */
uint64_t ps_received_session(const struct ps_message *message);

/** Returns the delay in ms that the error in a message asks for before a retry, at most 5,000; 0 if none. */
int64_t ps_retry_after_ms(const struct ps_message *message);

/** Maximum bytes of a job's name, and the sizes of buffers for escaped names, with the final zero. */
#define PS_JOB_BYTES_MAX 40
#define PS_TOKEN_SIZE (PS_NAME_BYTES_MAX + 1)
#define PS_ID_SIZE (PS_ID_BYTES_MAX + 1)

/**
 * Escapes a parameter's name of so many bytes as a subject token. BAD_NAME if it is empty, not UTF-8, or
 * longer than PS_NAME_BYTES_MAX once escaped.
 */
pserver_status ps_escape_name(const char *name, size_t bytes, char token[PS_TOKEN_SIZE]);

/* In this library a name is a C string, in which the bytes C0 80 stand for a NUL. In messages it is plain
 * UTF-8. */

/** Packs a name that ps_escape_name() has accepted. */
void ps_pack_name(struct ps_draft *draft, const char *name);

/** Returns a text of a message as a name, to be freed; NULL if there is no memory. */
char *ps_name_of_text(const void *text, size_t bytes);

/** Returns the FNV-1a hash of a name. */
uint32_t ps_name_hash(const char *name, size_t bytes);

/** Escapes a trainer's id as a subject token. BAD_NAME. */
pserver_status ps_escape_id(const char *id, char token[PS_ID_SIZE]);

/** Fails with BAD_NAME unless a job's name is 1 to 40 characters A-Z a-z 0-9 and -. */
pserver_status ps_check_job_name(const char *job);

/** The job and trainer of a client. Never changes. */
struct ps_identity {
  char job[PS_JOB_BYTES_MAX + 1];
  char trainer[PS_ID_SIZE];
  /** The trainer's id as a subject token. */
  char id[PS_ID_SIZE];
  /** The subject prefix of all messages to the client, and of those on the connection for lifecycle requests. */
  char inbox[PS_INBOX_SIZE];
  char control_inbox[PS_INBOX_SIZE];
};

/**
 * Connects to the broker under this name, and subscribes to the inbox; retries until the time has come. The
 * connection keeps the client alive until ps_disconnect(). NO_BROKER, DENIED, NO_TLS, BAD_VALUE, IO; ABORTED as
 * soon as the thread's canceller is cancelled: an attempt under way is then closed in the background.
 */
pserver_status ps_connect(struct ps_connection *connection, const char *name,
                          const pserver_options *options, int64_t ends_at_ms);

/** Bytes to copy before their checksum is computed, while they are still in the cache. */
#define PS_CRC32_CHUNK_BYTES 16384

/** Returns the CRC-32, as in zlib, of bytes that follow those with checksum `crc`; 0 for the first bytes. */
uint32_t ps_crc32_update(uint32_t crc, const void *bytes, size_t count);

/** Does the same as ps_crc32_update() without carry-less multiplication, for tests to compare. */
uint32_t ps_crc32_by_table(uint32_t crc, const void *bytes, size_t count);

/** Returns the bytes of an element; 0 if `dtype` is not an element type. */
size_t ps_dtype_bytes(pserver_dtype dtype);

/** Returns the type's name in messages; NULL if it is not an element type. */
const char *ps_dtype_name(pserver_dtype dtype);

/** Finds the type with this name. False if there is none. */
bool ps_dtype_from_name(const char *name, size_t bytes, pserver_dtype *dtype);

bool ps_dtype_is_float(pserver_dtype dtype);

/** Returns the encoding in which float32 has the bits of a type of half floats; PSERVER_AS_IS for any other type. */
pserver_encoding ps_half_form(pserver_dtype dtype);

/** Returns the encoding's name in messages; NULL for PSERVER_AS_IS and unknown ones. */
const char *ps_encoding_name(pserver_encoding encoding);

/** Returns the bytes of the elements of one entry in a message. */
size_t ps_encoded_bytes(pserver_dtype dtype, pserver_encoding encoding, uint64_t elements);

/** Returns the number of elements of a shape; 0 for a dimension of 0, too many dimensions, or 2^53
 * elements. */
uint64_t ps_element_count(const uint64_t *shape, int32_t rank);

/**
 * Encodes float32 elements in two bytes each, rounded to nearest even; a NaN becomes the canonical one. Any
 * alignment; the two memories must not overlap.
 */
void ps_encode_halves(pserver_encoding encoding, const void *floats, size_t elements, void *halves);

/** Decodes elements of two bytes to float32, exactly. */
void ps_decode_halves(pserver_encoding encoding, const void *halves, size_t elements, void *floats);

/*
 * int8 and e3m0. Elements of an entry that follow each other are a group, whose elements share a float32 scale. An
 * encoded entry is the scales of its groups, and then the codes of its elements.
 */

/** Elements of a group; the last group of an entry may have fewer. */
#define PS_GROUP_ELEMENTS 256

/** Whether elements are encoded in groups: int8 and e3m0. */
bool ps_is_grouped(pserver_encoding encoding);

/** Returns the number of groups of an entry. */
size_t ps_group_count(uint64_t elements);

/** Returns the bytes of the scales of an entry, and of its codes. */
size_t ps_scale_bytes(uint64_t elements);
size_t ps_code_bytes(pserver_encoding encoding, uint64_t elements);

/**
 * Encodes the first `count` elements of a group, which is filled up with zeros. `scale` and `codes` may have any
 * alignment. The scale of a group with an element that is not finite is NaN or infinite.
 */
void ps_encode_group(pserver_encoding encoding, const float elements[PS_GROUP_ELEMENTS], size_t count,
                     uint8_t *scale, uint8_t *codes);

/**
 * Decodes a group; the elements after `count` become 0. All become NaN or infinite if the scale is. False for codes or
 * a scale that no encoder writes.
 */
bool ps_decode_group(pserver_encoding encoding, const uint8_t *scale, const uint8_t *codes, size_t count,
                     float elements[PS_GROUP_ELEMENTS]);

/**
 * Decodes an entry in any encoding to float32, at any alignment; false for codes or scales that no encoder writes.
 */
bool ps_decode_elements(pserver_encoding encoding, const void *encoded, uint64_t elements, void *floats);

/** The broker's answer to a journal record. Unless it is PS_ACK_STORED, the last error is the reason. */
struct ps_journal_ack {
  enum {
    PS_ACK_STORED,
    /** Refused; the broker may store the same record later. */
    PS_ACK_LATER,
    /** Refused for good. */
    PS_ACK_REFUSED
  } kind;
  unsigned shard;
  struct ps_position position;
};

/** Reads the answer to a record of the job. */
void ps_read_journal_ack(const char *job, natsMsg *message, struct ps_journal_ack *ack);

/** Reads shard and generation from the name of a journal's stream: `PS_<job>_<shard>`, from generation 2 on
 * with `_<generation>`. False if it is not a journal of the job. */
bool ps_parse_journal_stream(const char *job, const char *stream, unsigned *shard, uint64_t *generation);

/** Bytes of a stream's name and of a description, including the final zero; longer ones are cut. */
#define PS_STREAM_SIZE 128
#define PS_DESCRIPTION_SIZE 1024

/** The broker's answer to a message that was published to a stream. */
struct ps_pub_ack {
  char stream[PS_STREAM_SIZE];
  uint64_t seq;
  bool is_error;
  uint32_t code;
  uint32_t error_code;
  char description[PS_DESCRIPTION_SIZE];
};

/** Reads the JSON of an answer. False if it is not one. */
bool ps_read_pub_ack(const char *json, size_t bytes, struct ps_pub_ack *ack);

struct ps_ask_group;

enum ps_ask_state { PS_ASK_WAITING, PS_ASK_OPEN, PS_ASK_DONE };

/** What the timer of a request is set for, and what the answer to its PING says. */
enum ps_ask_due {
  /** A PING, to learn that the broker has read the request. */
  PS_ASK_DUE_READ,
  /** A PING, to learn that no answer is on the way. */
  PS_ASK_DUE_REPEAT,
  /** The request itself, at once. */
  PS_ASK_DUE_AGAIN,
};

/**
 * A request to hosts. It is repeated 1 s, 2 s and then 4 s after the broker has read it and while no answer is on
 * the way, and retried after errors that can pass; the first answer counts. Its functions run on the I/O thread,
 * except `on_progress`.
 */
struct ps_ask {
  char subject[PS_SUBJECT_SIZE];
  /** Writes the entries of the message, and its tensor bytes, if any, each time it is sent. */
  pserver_status (*write)(struct ps_ask *ask, struct ps_draft *draft);
  /** Reads a message of the answer. */
  pserver_status (*read)(struct ps_ask *ask, const struct ps_message *message);
  /** Sets the last error when nobody listens to the subject; returns its code. NULL: no host serves `shard`. */
  pserver_status (*nobody)(struct ps_ask *ask);
  /**
   * Reacts to an error that is not retried: returns OK to send the request again at once, else the status to
   * fail with. NULL: the request fails with the error. `message` is NULL if no host answered, or if the
   * broker denied the request, which then fails in any case.
   */
  pserver_status (*refused)(struct ps_ask *ask, pserver_status status, const struct ps_message *message);
  /** Called on the calling thread after `read` has set `goes_on`; may be NULL. */
  void (*on_progress)(struct ps_ask *ask);
  void *context;
  /** The shard that it asks, set by ps_ask_shard(). */
  unsigned shard;
  /** How long errors that can pass are retried; 0: until the call ends. */
  int64_t retry_ms;
  /** Whether it is never repeated, because repeating it would do it twice. */
  bool is_sent_once;
  /** Set by `read`: further messages of the answer follow. */
  bool goes_on;
  /** Set by `read`: messages of the answer are missing, so the request is sent again at once. */
  bool is_incomplete;
  /** The reply subject; valid in `write`. */
  const char *reply;
  /** Bytes of its answer that count in the window of replies; 0: none. */
  size_t window_bytes;

  /** Set by ps_requests. */
  struct ps_ask_group *group;
  enum ps_ask_state state;
  int64_t started_ms;
  struct ps_timer timer;
  enum ps_ask_due due;
  /** The number of the PING whose answer it waits for, and its place among the requests that do. */
  uint64_t question;
  struct ps_queue_link asking;
  /** Whether it was answered with an error that can pass, and with nothing else since it was opened. */
  bool is_refused;
  /** How often it was sent, when last, and how many bytes of answers had come before. */
  unsigned sends;
  int64_t sent_at_ms;
  uint64_t received_before;
  int64_t repeat_ms;
  int64_t pause_ms;
};

/** Requests of one call, as many under way as the window permits. The first error ends all of them. */
struct ps_ask_group {
  struct ps_ask *asks;
  size_t count;
  /** When the owner ends the group by ps_ask_group_end(). */
  int64_t ends_at_ms;
  /** Called once: with OK when all requests are answered, else with the last error. May free the group. */
  void (*over)(struct ps_ask_group *group, pserver_status status);
  /** Makes the calling thread call `on_progress` of the requests; may be NULL. */
  void (*on_progress)(struct ps_ask_group *group);
  /** Tells that an answer has come, or bytes behind which answers may be; may be NULL. */
  void (*progressed)(struct ps_ask_group *group);
  void *context;

  /** Set by ps_requests. */
  struct ps_requests *requests;
  size_t slot;
  uint64_t first_token;
  /** Index of the next request to begin, and the number of requests that are not answered. */
  size_t next;
  size_t missing;
  struct ps_queue_link place;
  /** The last error that was retried; NULL if none. */
  struct ps_failure *obstacle;
};

/** The requests of one client that are under way, on its I/O thread. */
struct ps_requests {
  struct ps_connection *connection;
  /** How many bytes requests under way may ask for, and their present number. */
  struct ps_link_window window;
  size_t window_bytes;
  /** Requests that are refused for the time being: they have no bytes under way. */
  size_t refused;
  /** Bytes of all answers. */
  uint64_t received_bytes;
  /** Requests that wait for the answer to a PING, in the order of these. */
  struct ps_queue asking;
  /** Groups by slot, which is part of the reply subject; and those that wait for the window, in turn. */
  struct ps_ask_group **slots;
  size_t slot_count;
  struct ps_queue waiting;
  /** How many requests were begun: each has a token of its own. */
  uint64_t tokens;
};

/** Initializes requests of a connection, which may ask for so many bytes at a time if the link is fast. */
void ps_requests_init(struct ps_requests *requests, struct ps_connection *connection, size_t bytes_max);

/** Addresses a request to the owner of a shard. */
void ps_ask_shard(struct ps_ask *ask, const struct ps_identity *identity, unsigned shard,
                  const char *verb);

/** Begins the requests of a group, except those that are done already. On the I/O thread. */
void ps_ask_group_begin(struct ps_requests *requests, struct ps_ask_group *group);

/** Ends a group that is under way with the last error, which calls `over`. On the I/O thread. */
void ps_ask_group_end(struct ps_ask_group *group, pserver_status status);

/** Returns the milliseconds left for an answer, at least 0. */
int64_t ps_ask_group_remaining_ms(const struct ps_ask_group *group);

/** Returns the ms a host may hold a request of the group before it answers: less than until its repeat. */
uint64_t ps_ask_group_wait_ms(const struct ps_ask_group *group);

/** Takes a reply; slot and token are from its subject. On the I/O thread, as the functions below. */
void ps_on_reply(struct ps_requests *requests, uint64_t slot, uint64_t token, natsMsg *message);

/** Takes the broker's denial to publish to a subject. */
void ps_requests_denied(struct ps_requests *requests, const char *subject);

/** Takes the broker's answer to the PINGs up to this number: see ps_link_ask(). */
void ps_requests_confirmed(struct ps_requests *requests, uint64_t number);

/** Tells groups that bytes have left or come: their requests or answers may be behind them. */
void ps_requests_moved(struct ps_requests *requests);

/** Sends all requests again, because the connection is back. */
void ps_requests_reconnected(struct ps_requests *requests);

void ps_requests_release(struct ps_requests *requests);

/**
 * Makes the options of cnats from the client's options and the environment; the caller destroys them.
 * BAD_VALUE for an invalid setting, IO for a file that cannot be read.
 */
pserver_status ps_make_nats_options(const pserver_options *options, const char *name, natsOptions **made);

/** Returns a variable of the environment; NULL if it is not set or empty. */
const char *ps_from_environment(const char *name);

/** Writes the address list without credentials, for error texts. */
void ps_shown_address(const pserver_options *options, char *target, size_t size);

#endif
