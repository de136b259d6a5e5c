#ifndef CALLS_PARAMETER_CACHE_H
#define CALLS_PARAMETER_CACHE_H

#include <pthread.h>

#include "calls/parameter.h"

#define PS_PARAMETER_BUCKETS 1024

/**
 * What is known of the job's parameters that are ready, by name. Threads that call share it, and look into
 * it before they hand anything to the I/O thread, so it has a lock of its own.
 */
struct ps_parameters {
  pthread_mutex_t lock;
  struct ps_parameter *buckets[PS_PARAMETER_BUCKETS];
};

/** INTERNAL if the system has no room for a lock. */
pserver_status ps_parameters_init(struct ps_parameters *parameters);
void ps_parameters_release(struct ps_parameters *parameters);

/**
 * Fills in the parameters that are known, one reference each, where `found` has none, and lists up to
 * `room` names of others; returns how many those are.
 */
size_t ps_parameters_take(struct ps_parameters *parameters, const char *const *names, size_t count,
                          struct ps_parameter **found, const char **missing, size_t capacity);

/** Remembers a parameter instead of what was known by its name; takes over a reference. */
void ps_parameters_remember(struct ps_parameters *parameters, struct ps_parameter *parameter);

/** Forgets parameters, NULL for none: their epochs may be others than those known here. */
void ps_forget_parameters(struct ps_parameters *parameters, struct ps_parameter *const *forgotten,
                          size_t count);

/** Forgets the versions that blocks had when they were read. */
void ps_forget_seen_versions(struct ps_parameters *parameters);

/** Gives back one reference of each, NULL for none. */
void ps_parameters_unref(struct ps_parameter **parameters, size_t count);

#endif
