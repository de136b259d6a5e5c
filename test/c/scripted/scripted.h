#ifndef SCRIPTED_H
#define SCRIPTED_H

#include <pserver.h>

#include "expect.h"
#include "fake-clock.h"
#include "fake-connection.h"
#include "wire/wire.h"

/*
 * Broker, hosts and clock of one scenario, in one thread of the process of the client. Messages that the
 * client publishes are kept and passed to the scenario, which chooses the answers and their times. The
 * clock advances while the client waits, so nothing depends on the speed of the machine.
 */

/** One message of the client. */
struct published {
  int64_t at_ms;
  char *subject;
  char *reply;
  uint8_t *bytes;
  size_t count;
  /** The message, opened. */
  struct ps_message message;
};

/** Handles a message of the client. */
typedef void (*take_message)(const struct published *message);

/** The job that serve() answers for. */
struct scripted_job {
  /** The session that the next join gets; the one after that is higher by 1. */
  uint64_t session;
  uint64_t shards;
  int64_t lease_ms;
  /** When the job was made. */
  const char *made;
  const char *mode;
  uint64_t staleness;
  uint64_t backups;
  /** Epoch of the parameters; from this name on, in order, it is higher by 1; NULL: for none. */
  uint64_t epoch;
  const char *anew_from;
  /** Number of block 0 of every parameter; NULL: first_number(). */
  const uint64_t *number;
  /** Of the parameter "w", and of any other that is asked for: blocks of some rows, of two elements; block i
   * is on shard i modulo `shards`. */
  uint64_t blocks;
  uint64_t block_rows;
  uint64_t row_elements;
  /** An entry of the parameters' configuration, whose value is true; NULL: none. */
  const char *config_entry;
  /** The fragment of all parameters, whose blocks are then on shard 0; NULL: none. */
  const char *fragment;
  /** Position of shard 0 when the job became ready; generation 0: not in replies. */
  uint64_t at_generation;
  uint64_t at_seq;
  /** Shards after it in replies: the position of each is higher by 1 than that of the one before. */
  uint64_t at_more;
};

extern struct scripted_job job;

/** Begins a scenario, after the one before, with a job of two shards and one block. */
void begin(take_message take);

/** Connects a client to the job. `in_flight_bytes` 0: the default. */
pserver_client *connected(size_t in_flight_bytes);

/** As connected(), with a broker whose largest message has no room for a batch: each block has its own record. */
pserver_client *connected_singly(size_t in_flight_bytes);

/** Makes the client know a link that carries at once whatever the windows admit. */
void speed_up(void);

/** Closes a client, for which nothing may be under way. */
void closed(pserver_client *client);

/** Answers join, renew, leave, enter, exit, begin, declare, finish and status; false for others. */
bool serve(const struct published *message);

/** Adds one to every element of "w". */
pserver_status push(pserver_client *client, int64_t timeout_ms);
/** Sends a gradient of "w", one block, until it is stored. */
pserver_status send_stored(pserver_client *client, int64_t timeout_ms);
/** Reads "w". */
pserver_status get(pserver_client *client, int64_t timeout_ms);

/** Whether the last token of the subject is this. */
bool is_to(const struct published *message, const char *verb);
bool is_record(const struct published *message);
/** Returns a whole number in a message, which must have it. */
uint64_t number_in(const struct published *message, const char *key);
/** Whether a message has this entry, and it is true. */
bool is_set_in(const struct published *message, const char *key);
/** Returns the number of block 0 of a parameter of the job. */
uint32_t first_number(const char *name, size_t bytes, uint64_t epoch);
/** Returns the number at this place of a uint32 column that begins with byte `start` of the tensor bytes. */
uint32_t uint32_in(const struct published *message, size_t start, size_t place);
/** Shard, or block, that the subject of a record names. */
unsigned shard_in(const struct published *message);
unsigned block_in(const struct published *message);

/** Return the number of messages to a verb, and the one with this index; NULL: of records. */
size_t count_to(const char *verb);
const struct published *to(const char *verb, size_t number);
/** Checks the times between the messages to a verb, which must not be shorter, and only a little longer. */
void expect_gaps(const char *verb, size_t count, const int64_t *expected_ms);

/** Schedules an event. */
void act_after(int64_t delay_ms, void (*act)(void));
void nobody_after(int64_t delay_ms, const struct published *message);
void stored_after(int64_t delay_ms, const struct published *record, uint64_t generation, uint64_t seq);
void refused_after(int64_t delay_ms, const struct published *record, int error_code,
                   const char *description);
/** An error as a reply; its details expect a position, without `generation` if that is 0, or none if `seq`
 * is 0, too. */
void error_at(int64_t delay_ms, const struct published *message, const char *code,
              struct ps_position expected);
/** The same; the details expect the beginning of a generation. */
void error_after(int64_t delay_ms, const struct published *message, const char *code,
                 uint64_t generation);
/** The same with one number in its details. */
void error_with(int64_t delay_ms, const struct published *message, const char *code, const char *key,
                uint64_t number);
/** Sends an outcome to the inbox, or as the reply to a request; `code` NULL: applied. */
struct outcome {
  uint64_t session;
  unsigned shard;
  uint64_t generation;
  uint64_t n;
  uint64_t seq;
  const char *code;
};
void outcome_after(int64_t delay_ms, const struct published *question, struct outcome outcome);
/** The applied outcome of a record. */
void applied_after(int64_t delay_ms, const struct published *record, uint64_t seq);
/** The outcome of a record: `code` NULL for applied, else with a text. */
void settled_after(int64_t delay_ms, const struct published *record, uint64_t seq, const char *code,
                   const char *text);
/** The outcome of a record that a guard has clipped or set aside. */
void guarded_after(int64_t delay_ms, const struct published *record, uint64_t seq, const char *action);
/** The applied outcome of a part of a contribution, which counts in this round; 0: it does not complete it. */
void counted_after(int64_t delay_ms, const struct published *record, uint64_t seq, uint64_t round);
/** Replies with the version of a fragment, in a shard at a position, and with accounts whose numbers ascend. */
void versions_after(int64_t delay_ms, const struct published *question, const char *fragment, uint64_t version,
                    struct ps_position position, bool is_sampled);
/** Replies with the last closed step of a shard, in generation 1. */
void step_after(int64_t delay_ms, const struct published *question, uint64_t step);
/** The same at a position. */
void step_at(int64_t delay_ms, const struct published *question, uint64_t step,
             struct ps_position position);
/** The parameters of a declaration. */
void declared_after(int64_t delay_ms, const struct published *message);
/** Selects the client to create the parameter "w". */
void created_after(int64_t delay_ms, const struct published *message);
void pulled_after(int64_t delay_ms, const struct published *pull, uint64_t generation, uint64_t seq);
/** Sends raw bytes to a subject below the inbox, or to any subject. */
void bytes_after(int64_t delay_ms, const char *subject, const void *bytes, size_t count);

void disconnect_now(void);
void reconnect_now(void);

/** The requests of reads are those of the shared vectors. */
void asks_as_typescript(void);

/** Every scenario, by name. */
struct scenario {
  const char *title;
  void (*run)(void);
};
extern const struct scenario outbox_scenarios[];
extern const struct scenario publish_scenarios[];
extern const struct scenario batch_scenarios[];
extern const struct scenario outcome_scenarios[];
extern const struct scenario answer_scenarios[];
extern const struct scenario position_scenarios[];
extern const struct scenario session_scenarios[];
extern const struct scenario renewal_scenarios[];
extern const struct scenario rejoin_scenarios[];
extern const struct scenario synchronization_scenarios[];
extern const struct scenario round_scenarios[];
extern const struct scenario cancel_scenarios[];
extern const struct scenario fallback_scenarios[];
extern const struct scenario feedback_scenarios[];
extern const struct scenario loss_scenarios[];
extern const struct scenario read_scenarios[];
extern const struct scenario name_scenarios[];
extern const struct scenario init_scenarios[];
extern const struct scenario reaction_scenarios[];

#endif
