#ifndef PADDLE_PADDLE_H
#define PADDLE_PADDLE_H

#include <pserver.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** Returns the variable's value; NULL if it is not set, or empty. */
const char *ps_environment_value(const char *name);

/** Names the published function that this thread runs, for the texts of its errors. */
void ps_name_function(const char *name);

/** Makes this the last error of the thread, prints it to standard error if it is the first with its code, and
 * returns -1. */
int ps_report(pserver_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Reports libpserver's last error in this thread as ps_report() does. */
int ps_report_core(void);

/** Returns code and message of this thread's last error; "" before the first. */
const char *ps_last_report(void);

/** Values of a parameter, as an argument. */
struct ps_values {
  const char *name;
  int element_type;
  const void *content;
  /** In bytes. */
  int64_t length;
};

/** Makes a tensor of one dimension from the values. False with an error if they are invalid. */
bool ps_tensor_of(const struct ps_values *values, pserver_tensor *tensor);

/** Whether a list has entries; false with an error. */
bool ps_check_list(const void *list, int total);

/** Whether the name is not NULL; false with an error. */
bool ps_check_name(const char *name);

/** Type and length of a parameter. */
struct ps_length {
  pserver_dtype dtype;
  uint64_t elements;
};

/** The lengths of declared parameters and of the job's, by name. Those of the job never change. */
struct ps_lengths {
  pthread_mutex_t lock;
  /** A tree of search.h. */
  void *root;
};

/** Makes an empty table; false if there is no memory. */
bool ps_lengths_init(struct ps_lengths *lengths);
void ps_lengths_release(struct ps_lengths *lengths);

/** Stores the length of a parameter, in place of one before. False if there is no memory. */
bool ps_lengths_note(struct ps_lengths *lengths, const char *name, struct ps_length length);

/** Returns the bytes of an element; 0 if it is not one of PaddlePaddle's six element types. */
uint64_t ps_element_bytes(int element_type);

/** Stands for no trainer. */
#define PS_NO_TRAINER UINT32_MAX

/** A client of the published functions. */
struct ps_trainer {
  /** Unique in the process; begins with 0. */
  uint32_t number;
  struct ps_trainer *next;
  /** Number of calls under way; guarded by the lock of all trainers. */
  unsigned users;
  pserver_client *core;
  /** PSERVER_TIMEOUT_MS; 0 if it is not set. */
  int64_t timeout_ms;
  /** Whether the job is known to be initialized. */
  atomic_bool is_ready;
  /** Whether it may be selected to initialize (revision 3). */
  bool is_selectable;
  /** Whether another trainer was initializing when it asked (revision 3). */
  atomic_bool is_second;
  struct ps_lengths lengths;
  /** The configuration of all parameters (revision 2): text, bytes, or NULL. Guarded by `config_lock`. */
  pthread_mutex_t config_lock;
  void *config;
  size_t config_bytes;
  bool is_config_text;
};

/** Broker and job that a trainer connects to; NULL: from the environment. */
struct ps_place {
  const char *url;
  const char *job;
};

/** Connects; returns the trainer's number, or PS_NO_TRAINER with an error. */
uint32_t ps_trainer_open(struct ps_place place, bool is_selectable);

/** Closes a trainer: refuses new calls, waits for those under way, and ends the ones that are left. */
void ps_trainer_close(uint32_t number);

/** Begins a call, to be ended with ps_trainer_leave(). NULL with an error for a trainer that is closed, was
 * never opened, or belongs to another process. */
struct ps_trainer *ps_trainer_enter(uint32_t number);
void ps_trainer_leave(struct ps_trainer *trainer);

/**
 * The body of a published function: evaluates an expression in which `trainer` is the trainer of a number,
 * and returns the result; -1 with an error if there is no such trainer.
 */
#define PS_CALL_OF(number, expression)                   \
  ps_name_function(__func__);                            \
  struct ps_trainer *trainer = ps_trainer_enter(number); \
  if (trainer == NULL) return -1;                        \
  int result = expression;                               \
  ps_trainer_leave(trainer);                             \
  return result

/** Returns the timeout of a call that waits for other trainers; ps_calling_ms() that of any other call. */
int64_t ps_waiting_ms(const struct ps_trainer *trainer);
int64_t ps_calling_ms(const struct ps_trainer *trainer);

/* All return 0, or -1 with an error. */

/** Asks to initialize; returns 1 if selected. If it `waits`, returns 0 only after another trainer has done
 * so. */
int ps_begin(struct ps_trainer *trainer, bool waits);

/** The result of initializing a job that is initialized already. */
enum ps_repetition { PS_REPETITION_FAILS, PS_REPETITION_SUCCEEDS };

/** Stores the first values of a parameter. */
int ps_initialize(struct ps_trainer *trainer, const struct ps_values *values, const pserver_config *config,
                  enum ps_repetition repetition);

/** Ends the initialization. */
int ps_finish(struct ps_trainer *trainer, enum ps_repetition repetition);

/**
 * Waits until the job is initialized if another trainer was initializing it when this one asked. -1 also if
 * this trainer is selected because the other one has died.
 */
int ps_await_ready(struct ps_trainer *trainer);

struct paddle_pserver_client;

/** Returns the number of the trainer that a client stands for. */
uint32_t ps_number_of(const struct paddle_pserver_client *client);

/** A parameter to be read, and its memory. */
struct ps_target {
  const char *name;
  /** NULL: receives allocated memory, to be freed with ps_free_content(). */
  void *content;
  /** Bytes at `content`: exactly the parameter's or, with `may_exceed`, at least as many. */
  int64_t capacity;
  bool may_exceed;
  /** Type and length in bytes of the values that were read. */
  int element_type;
  int length;
};

/** Reads parameters; waits until they are initialized. 0, or -1 with an error, which leaves `content`
 * unchanged. */
int ps_read_values(struct ps_trainer *trainer, struct ps_target *targets, int total);

/** Finds the length of a parameter: as declared, or as in the job. False with an error. */
bool ps_look_up_length(struct ps_trainer *trainer, const char *name, struct ps_length *length);

/** Frees what ps_read_values() allocated. */
void ps_free_content(void *content);

/* All return 0, or -1 with an error. Arguments are checked before anything is sent. */

/** Makes one step of each parameter's optimizer; `learning_rate` NULL: with its own rate. */
int ps_send_gradients(struct ps_trainer *trainer, const struct ps_values *values, int total,
                      const double *learning_rate);

/** Overwrites values. */
int ps_set_values(struct ps_trainer *trainer, const struct ps_values *values, int total);

/** Makes a host write the model. */
int ps_save_model(struct ps_trainer *trainer, const char *path);

#endif
