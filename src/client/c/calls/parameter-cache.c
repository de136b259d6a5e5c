/* Parameters that are known, in a table by name. */
#include "calls/parameter-cache.h"

#include <string.h>

#include "errors/errors.h"

/** FNV-1a. */
static size_t bucket_of(const char *name, size_t bytes) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ (uint8_t)name[i]) * 16777619u;
  return hash % BUCKETS;
}

static struct parameter **find_known(struct parameters *known, const char *name, size_t bytes) {
  struct parameter **link = &known->buckets[bucket_of(name, bytes)];
  while (*link != NULL) {
    if ((*link)->name_bytes == bytes && memcmp((*link)->name, name, bytes) == 0) break;
    link = &(*link)->next;
  }
  return link;
}

static void forget(struct parameters *known, const char *name, size_t bytes) {
  struct parameter **link = find_known(known, name, bytes);
  struct parameter *parameter = *link;
  if (parameter == NULL) return;
  *link = parameter->next;
  ps_parameter_unref(parameter);
}

/** Takes over a reference. */
static void remember(struct parameters *known, struct parameter *parameter) {
  forget(known, parameter->name, parameter->name_bytes);
  struct parameter **link = find_known(known, parameter->name, parameter->name_bytes);
  parameter->next = NULL;
  *link = parameter;
}

pserver_status ps_parameters_init(struct parameters *parameters) {
  if (pthread_mutex_init(&parameters->lock, NULL) == 0) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_INTERNAL, "no room for a lock");
}

size_t ps_parameters_take(struct parameters *parameters, const char *const *names, size_t count,
                          struct parameter **found, const char **missing, size_t room) {
  size_t lacking = 0;
  pthread_mutex_lock(&parameters->lock);
  for (size_t i = 0; i < count; i++) {
    if (found[i] != NULL) continue;
    found[i] = *find_known(parameters, names[i], strlen(names[i]));
    if (found[i] != NULL) ps_parameter_ref(found[i]);
    else if (lacking < room) missing[lacking++] = names[i];
  }
  pthread_mutex_unlock(&parameters->lock);
  return lacking;
}

void ps_parameters_remember(struct parameters *parameters, struct parameter *parameter) {
  pthread_mutex_lock(&parameters->lock);
  remember(parameters, parameter);
  pthread_mutex_unlock(&parameters->lock);
}

void ps_forget_parameters(struct parameters *parameters, struct parameter *const *forgotten,
                          size_t count) {
  pthread_mutex_lock(&parameters->lock);
  for (size_t i = 0; i < count; i++) {
    if (forgotten[i] != NULL) forget(parameters, forgotten[i]->name, forgotten[i]->name_bytes);
  }
  pthread_mutex_unlock(&parameters->lock);
}

void ps_parameters_unref(struct parameter **parameters, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ps_parameter_unref(parameters[i]);
    parameters[i] = NULL;
  }
}

void ps_parameters_release(struct parameters *parameters) {
  for (size_t i = 0; i < BUCKETS; i++) {
    while (parameters->buckets[i] != NULL) {
      struct parameter *parameter = parameters->buckets[i];
      parameters->buckets[i] = parameter->next;
      ps_parameter_unref(parameter);
    }
  }
  pthread_mutex_destroy(&parameters->lock);
}

void ps_forget_seen_versions(struct parameters *parameters) {
  pthread_mutex_lock(&parameters->lock);
  for (size_t i = 0; i < BUCKETS; i++) {
    for (struct parameter *each = parameters->buckets[i]; each != NULL; each = each->next) {
      for (uint64_t block = 0; block < each->layout.blocks; block++) {
        __atomic_store_n(&each->seen[block], 0, __ATOMIC_RELAXED);
      }
    }
  }
  pthread_mutex_unlock(&parameters->lock);
}
