/* Failed initializations, one for each parameter whose last attempt failed. */
#include "calls/open-inits.h"

#include <stdlib.h>
#include <string.h>

static const struct ps_open_init *find(const struct ps_open_init *open,
                                       const struct ps_parameter *parameter) {
  while (open != NULL && !ps_has_name(parameter, open->name, open->name_bytes)) open = open->next;
  return open;
}

bool ps_is_open_init(const struct ps_open_init *open, const struct ps_parameter *parameter) {
  const struct ps_open_init *init = find(open, parameter);
  return init != NULL && init->epoch == parameter->epoch;
}

bool ps_is_repeated_init(const struct ps_open_init *open, const struct ps_parameter *parameter,
                         uint32_t crc) {
  open = find(open, parameter);
  return open != NULL && open->epoch == parameter->epoch && !open->has_several && open->crc == crc;
}

static struct ps_open_init *add(struct ps_open_init **open, const struct ps_parameter *parameter) {
  struct ps_open_init *made = calloc(1, sizeof *made);
  char *name = malloc(parameter->name_bytes + 1);
  if (made == NULL || name == NULL) {
    free(made);
    free(name);
    return NULL;
  }
  memcpy(name, parameter->name, parameter->name_bytes);
  name[parameter->name_bytes] = '\0';
  *made = (struct ps_open_init){.next = *open, .name = name, .name_bytes = parameter->name_bytes};
  *open = made;
  return made;
}

void ps_note_failed_init(struct ps_open_init **open, const struct ps_parameter *parameter, uint32_t crc) {
  struct ps_open_init *init = *open;
  while (init != NULL && !ps_has_name(parameter, init->name, init->name_bytes)) init = init->next;
  if (init != NULL && init->epoch == parameter->epoch) {
    if (init->crc != crc) init->has_several = true;
    return;
  }
  if (init == NULL) init = add(open, parameter);
  if (init == NULL) return;
  init->epoch = parameter->epoch;
  init->crc = crc;
  init->has_several = false;
}

static void release(struct ps_open_init *init) {
  free(init->name);
  free(init);
}

void ps_forget_open_init(struct ps_open_init **open, const struct ps_parameter *parameter) {
  while (*open != NULL && !ps_has_name(parameter, (*open)->name, (*open)->name_bytes)) open = &(*open)->next;
  struct ps_open_init *init = *open;
  if (init == NULL) return;
  *open = init->next;
  release(init);
}

void ps_release_open_inits(struct ps_open_init **open) {
  while (*open != NULL) {
    struct ps_open_init *init = *open;
    *open = init->next;
    release(init);
  }
}
