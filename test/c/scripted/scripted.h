#ifndef SCRIPTED_H
#define SCRIPTED_H

#include <pserver.h>

#include "expect.h"
#include "fake-clock.h"
#include "fake-connection.h"
#include "wire/envelope.h"

/*
 * Broker, hosts and time of one scenario, in the process of the client, in one thread. What the client
 * publishes is kept and shown to the scenario, which says what comes back, and when. Time goes on while
 * the client waits: nothing in a scenario depends on the machine.
 */

/** One message of the client. */
struct published {
  int64_t at_ms;
  char *subject;
  char *reply;
  uint8_t *bytes;
  size_t count;
  /** The same, opened. */
  struct ps_message message;
};

/** What the scenario does with a message. */
typedef void (*take_message)(const struct published *message);

/** The job that serve() plays. */
struct scripted_job {
  /** The session that the next join gets; the one after that is higher by 1. */
  uint64_t session;
  uint64_t shards;
  int64_t lease_ms;
  /** Rules that the reply to a join tells; 0: it tells none. */
  uint64_t rules;
  const char *mode;
  /** Epoch of every parameter, and the least of the names whose epoch is higher by 1; NULL for none. */
  uint64_t epoch;
  const char *anew_from;
  /** Of the parameter "w", and of any other that is asked for: blocks of some rows, of two elements; block i
   * is on shard i modulo `shards`. */
  uint64_t blocks;
  uint64_t block_rows;
  uint64_t row_elements;
  /** Where shard 0 stood when the job became ready; generation 0: nothing is said. */
  uint64_t at_generation;
  uint64_t at_seq;
};

extern struct scripted_job job;

/** Ends the scenario before and begins one: a job of two shards and one block. */
void begin(take_message take);

/** A client of the job. `in_flight_bytes` 0: the default. */
pserver_client *connected(size_t in_flight_bytes);

/** Closes it; nothing may be under way. */
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
/** A whole number in a message; it must be there. */
uint64_t number_in(const struct published *message, const char *key);
/** Shard, or block, that the subject of a record names. */
unsigned shard_in(const struct published *message);
unsigned block_in(const struct published *message);

/** How many messages there were, and the one with this number, of those that are to a verb; NULL: of
 * records. */
size_t count_to(const char *verb);
const struct published *to(const char *verb, size_t number);
/** The times between the messages of a kind must not be shorter than these, and hardly longer. */
void expect_gaps(const char *verb, size_t count, const int64_t *expected_ms);

/** What comes later. */
void act_after(int64_t delay_ms, void (*act)(void));
void nobody_after(int64_t delay_ms, const struct published *message);
void stored_after(int64_t delay_ms, const struct published *record, uint64_t generation, uint64_t seq);
void refused_after(int64_t delay_ms, const struct published *record, int error_code,
                   const char *description);
/** An error as a reply; its details expect a position, without `generation` if that is 0, or none if `seq`
 * is 0, too. */
void error_at(int64_t delay_ms, const struct published *message, const char *code,
              struct ps_position expected);
/** The same with the beginning of a generation. */
void error_after(int64_t delay_ms, const struct published *message, const char *code,
                 uint64_t generation);
/** An outcome: `code` NULL for applied. To the inbox, or as the reply to a question. */
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
/** How far a shard is, in generation 1. */
void step_after(int64_t delay_ms, const struct published *question, uint64_t step);
/** The parameters of a declaration. */
void declared_after(int64_t delay_ms, const struct published *message);
void pulled_after(int64_t delay_ms, const struct published *pull, uint64_t generation, uint64_t seq);
/** Raw bytes to a place below the inbox, or anywhere. */
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
extern const struct scenario batch_scenarios[];
extern const struct scenario outcome_scenarios[];
extern const struct scenario position_scenarios[];
extern const struct scenario session_scenarios[];
extern const struct scenario cancel_scenarios[];
extern const struct scenario fallback_scenarios[];
extern const struct scenario read_scenarios[];
extern const struct scenario init_scenarios[];
extern const struct scenario reaction_scenarios[];

#endif
