#ifndef CALLS_PARAMETER_CACHE_H
#define CALLS_PARAMETER_CACHE_H

#include <pthread.h>

#include "calls/parameter.h"

/** Buckets of the hash table. */
#define PS_PARAMETER_BUCKETS 1024

/**
 * The job's initialized parameters as far as they are known, by name. Calling threads look them up before
 * they use the I/O thread, so the table has its own lock.
 */
struct ps_parameters {
  pthread_mutex_t lock;
  struct ps_parameter *buckets[PS_PARAMETER_BUCKETS];
};

/** Initializes an empty table. INTERNAL. */
pserver_status ps_parameters_init(struct ps_parameters *parameters);
void ps_parameters_release(struct ps_parameters *parameters);

/**
 * Fills the NULL entries of `found` with the parameters that are known, one reference each, and lists up to
 * `capacity` names of those that are not; returns the number of names listed.
 */
size_t ps_parameters_take(struct ps_parameters *parameters, const char *const *names, size_t count,
                          struct ps_parameter **found, const char **missing, size_t capacity);

/** Stores a parameter, in place of one of the same name; takes over a reference. */
void ps_parameters_remember(struct ps_parameters *parameters, struct ps_parameter *parameter);

/** Forgets parameters whose epochs may have changed; NULL entries are ignored. */
void ps_forget_parameters(struct ps_parameters *parameters, struct ps_parameter *const *forgotten,
                          size_t count);

/** Forgets the versions that blocks had when they were read. */
void ps_forget_seen_versions(struct ps_parameters *parameters);

/** Drops one reference to each parameter and sets it to NULL; NULL entries are ignored. */
void ps_parameters_unref(struct ps_parameter **parameters, size_t count);

#endif
