/* The known parameters, in a hash table by name. */
#include "calls/parameter-cache.h"

#include <string.h>

#include "errors/errors.h"

static struct ps_parameter **find_known(struct ps_parameters *known, const char *name, size_t bytes) {
  struct ps_parameter **link = &known->buckets[ps_name_hash(name, bytes) % PS_PARAMETER_BUCKETS];
  while (*link != NULL && !ps_has_name(*link, name, bytes)) link = &(*link)->next;
  return link;
}

static void forget(struct ps_parameters *known, const char *name, size_t bytes) {
  struct ps_parameter **link = find_known(known, name, bytes);
  struct ps_parameter *parameter = *link;
  if (parameter == NULL) return;
  *link = parameter->next;
  ps_parameter_unref(parameter);
}

/** Stores a parameter and takes over a reference. */
static void remember(struct ps_parameters *known, struct ps_parameter *parameter) {
  forget(known, parameter->name, parameter->name_bytes);
  struct ps_parameter **link = find_known(known, parameter->name, parameter->name_bytes);
  parameter->next = NULL;
  *link = parameter;
}

pserver_status ps_parameters_init(struct ps_parameters *parameters) {
  if (pthread_mutex_init(&parameters->lock, NULL) == 0) return PSERVER_OK;
  return ps_fail(PSERVER_ERR_INTERNAL, "no memory for a lock");
}

size_t ps_parameters_take(struct ps_parameters *parameters, const char *const *names, size_t count,
                          struct ps_parameter **found, const char **missing, size_t capacity) {
  size_t lacking = 0;
  pthread_mutex_lock(&parameters->lock);
  for (size_t i = 0; i < count; i++) {
    if (found[i] != NULL) continue;
    found[i] = *find_known(parameters, names[i], strlen(names[i]));
    if (found[i] != NULL) ps_parameter_ref(found[i]);
    else if (lacking < capacity) missing[lacking++] = names[i];
  }
  pthread_mutex_unlock(&parameters->lock);
  return lacking;
}

void ps_parameters_remember(struct ps_parameters *parameters, struct ps_parameter *parameter) {
  pthread_mutex_lock(&parameters->lock);
  remember(parameters, parameter);
  pthread_mutex_unlock(&parameters->lock);
}

void ps_forget_parameters(struct ps_parameters *parameters, struct ps_parameter *const *forgotten,
                          size_t count) {
  pthread_mutex_lock(&parameters->lock);
  for (size_t i = 0; i < count; i++) {
    if (forgotten[i] != NULL) forget(parameters, forgotten[i]->name, forgotten[i]->name_bytes);
  }
  pthread_mutex_unlock(&parameters->lock);
}

void ps_parameters_unref(struct ps_parameter **parameters, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ps_parameter_unref(parameters[i]);
    parameters[i] = NULL;
  }
}

void ps_parameters_release(struct ps_parameters *parameters) {
  for (size_t i = 0; i < PS_PARAMETER_BUCKETS; i++) {
    while (parameters->buckets[i] != NULL) {
      struct ps_parameter *parameter = parameters->buckets[i];
      parameters->buckets[i] = parameter->next;
      ps_parameter_unref(parameter);
    }
  }
  pthread_mutex_destroy(&parameters->lock);
}

void ps_forget_seen_versions(struct ps_parameters *parameters) {
  pthread_mutex_lock(&parameters->lock);
  for (size_t i = 0; i < PS_PARAMETER_BUCKETS; i++) {
    for (struct ps_parameter *each = parameters->buckets[i]; each != NULL; each = each->next) {
      for (uint64_t block = 0; block < each->layout.blocks; block++) {
        __atomic_store_n(&each->seen[block], 0, __ATOMIC_RELAXED);
      }
    }
  }
  pthread_mutex_unlock(&parameters->lock);
}
