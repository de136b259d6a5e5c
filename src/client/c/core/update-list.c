/* A doubly linked list whose links are in the updates. */
#include "core/update-list.h"

#include "core/block-update.h"

void ps_update_list_append(struct ps_update_list *list, struct ps_block_update *update) {
  update->previous = list->last;
  if (list->last == NULL) list->first = update;
  else list->last->next = update;
  list->last = update;
}

void ps_update_list_prepend(struct ps_update_list *list, struct ps_block_update *update) {
  update->next = list->first;
  if (list->first == NULL) list->last = update;
  else list->first->previous = update;
  list->first = update;
}

void ps_update_list_remove(struct ps_update_list *list, struct ps_block_update *update) {
  struct ps_block_update *previous = update->previous;
  struct ps_block_update *next = update->next;
  if (previous == NULL) list->first = next;
  else previous->next = next;
  if (next == NULL) list->last = previous;
  else next->previous = previous;
  update->previous = NULL;
  update->next = NULL;
}
