#include "calls/calls.h"

#include <stdlib.h>
#include <string.h>

/* The parameters that a client knows: a hash table by name, and the lists of names that calls have given lately. */

#define BUCKETS_FIRST 1024

/** Fewer names are looked up one by one. */
#define LISTED_NAMES_MIN 32

static struct ps_parameter **find_known(const struct ps_parameters *known, const char *name, size_t bytes) {
  struct ps_parameter **link = &known->buckets[ps_name_hash(name, bytes) & (known->bucket_count - 1)];
  while (*link != NULL && !ps_has_name(*link, name, bytes)) link = &(*link)->next;
  return link;
}

/** Doubles the buckets. Without memory the table stays as it is, with longer chains. */
static void grow(struct ps_parameters *known) {
  size_t bucket_count = 2 * known->bucket_count;
  struct ps_parameter **buckets = calloc(bucket_count, sizeof(struct ps_parameter *));
  if (buckets == NULL) return;
  for (size_t i = 0; i < known->bucket_count; i++) {
    for (struct ps_parameter *each = known->buckets[i]; each != NULL;) {
      struct ps_parameter *next = each->next;
      size_t bucket = ps_name_hash(each->name, each->name_bytes) & (bucket_count - 1);
      each->next = buckets[bucket];
      buckets[bucket] = each;
      each = next;
    }
  }
  free(known->buckets);
  known->buckets = buckets;
  known->bucket_count = bucket_count;
}

/* Lists of names. */

static void release_list(struct ps_name_list *list) {
  if (list->parameters != NULL) ps_parameters_unref(list->parameters, list->count);
  free(list->parameters);
  free(list->names);
  *list = (struct ps_name_list){0};
}

static void forget_lists(struct ps_parameters *known) {
  for (size_t i = 0; i < PS_NAME_LISTS; i++) release_list(&known->lists[i]);
}

static bool has_names(const struct ps_name_list *list, const char *const *names, size_t count) {
  if (list->count != count) return false;
  const char *name = list->names;
  for (size_t i = 0; i < count; i++) {
    if (names[i] == NULL || strcmp(names[i], name) != 0) return false;
    name += list->parameters[i]->name_bytes + 1;
  }
  return true;
}

static const struct ps_name_list *find_list(const struct ps_parameters *known, const char *const *names,
                                            size_t count) {
  for (size_t i = 0; i < PS_NAME_LISTS; i++) {
    if (has_names(&known->lists[i], names, count)) return &known->lists[i];
  }
  return NULL;
}

/** Remembers a list in place of the oldest one; does nothing if there is no memory. */
static void remember_list(struct ps_parameters *known, struct ps_parameter *const *found, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += found[i]->name_bytes + 1;
  struct ps_name_list list = {
      .names = malloc(bytes), .parameters = calloc(count, sizeof(struct ps_parameter *)), .count = count};
  if (list.names == NULL || list.parameters == NULL) {
    free(list.names);
    free(list.parameters);
    return;
  }
  char *name = list.names;
  for (size_t i = 0; i < count; i++) {
    memcpy(name, found[i]->name, found[i]->name_bytes + 1);
    name += found[i]->name_bytes + 1;
    list.parameters[i] = found[i];
    ps_parameter_ref(found[i]);
  }
  struct ps_name_list *oldest = &known->lists[known->list_turn];
  known->list_turn = (known->list_turn + 1) % PS_NAME_LISTS;
  release_list(oldest);
  *oldest = list;
}

/* The table. */

/** Forgets a parameter, and the lists, because one of them may name it. */
static void forget(struct ps_parameters *known, const char *name, size_t bytes) {
  struct ps_parameter **link = find_known(known, name, bytes);
  struct ps_parameter *parameter = *link;
  if (parameter == NULL) return;
  *link = parameter->next;
  known->count--;
  ps_parameter_unref(parameter);
  forget_lists(known);
}

pserver_status ps_parameters_init(struct ps_parameters *parameters) {
  struct ps_parameter **buckets = calloc(BUCKETS_FIRST, sizeof(struct ps_parameter *));
  if (buckets == NULL || pthread_mutex_init(&parameters->lock, NULL) != 0) {
    free(buckets);
    return ps_no_memory("a table of parameters");
  }
  parameters->buckets = buckets;
  parameters->bucket_count = BUCKETS_FIRST;
  return PSERVER_OK;
}

/** Looks names up one by one; see ps_parameters_take(). */
static size_t take_each(struct ps_parameters *known, const char *const *names, size_t count,
                        struct ps_parameter **found, const char **missing, size_t capacity) {
  size_t lacking = 0;
  size_t taken = 0;
  for (size_t i = 0; i < count && lacking < capacity; i++) {
    if (found[i] != NULL) continue;
    if (names[i] != NULL) found[i] = *find_known(known, names[i], strlen(names[i]));
    if (found[i] == NULL) {
      missing[lacking++] = names[i];
    } else {
      ps_parameter_ref(found[i]);
      taken++;
    }
  }
  /* What was found before may have been forgotten meanwhile. */
  if (taken == count && count >= LISTED_NAMES_MIN) remember_list(known, found, count);
  return lacking;
}

size_t ps_parameters_take(struct ps_parameters *parameters, const char *const *names, size_t count,
                          struct ps_parameter **found, const char **missing, size_t capacity) {
  size_t lacking = 0;
  pthread_mutex_lock(&parameters->lock);
  const struct ps_name_list *list = count < LISTED_NAMES_MIN ? NULL : find_list(parameters, names, count);
  if (list == NULL) lacking = take_each(parameters, names, count, found, missing, capacity);
  for (size_t i = 0; list != NULL && i < count; i++) {
    if (found[i] != NULL) continue;
    found[i] = list->parameters[i];
    ps_parameter_ref(found[i]);
  }
  pthread_mutex_unlock(&parameters->lock);
  return lacking;
}

void ps_parameters_remember(struct ps_parameters *parameters, struct ps_parameter *parameter) {
  pthread_mutex_lock(&parameters->lock);
  forget(parameters, parameter->name, parameter->name_bytes);
  if (parameters->count >= parameters->bucket_count) grow(parameters);
  struct ps_parameter **link = find_known(parameters, parameter->name, parameter->name_bytes);
  parameter->next = NULL;
  *link = parameter;
  parameters->count++;
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

void ps_parameters_release(struct ps_parameters *parameters) {
  forget_lists(parameters);
  for (size_t i = 0; i < parameters->bucket_count; i++) {
    while (parameters->buckets[i] != NULL) {
      struct ps_parameter *parameter = parameters->buckets[i];
      parameters->buckets[i] = parameter->next;
      ps_parameter_unref(parameter);
    }
  }
  free(parameters->buckets);
  pthread_mutex_destroy(&parameters->lock);
}

void ps_forget_seen_versions(struct ps_parameters *parameters) {
  pthread_mutex_lock(&parameters->lock);
  for (size_t i = 0; i < parameters->bucket_count; i++) {
    for (struct ps_parameter *each = parameters->buckets[i]; each != NULL; each = each->next) {
      for (uint64_t block = 0; block < each->layout.blocks; block++) {
        __atomic_store_n(&each->seen[block], 0, __ATOMIC_RELAXED);
      }
    }
  }
  pthread_mutex_unlock(&parameters->lock);
}
