#ifndef CORE_UPDATE_LIST_H
#define CORE_UPDATE_LIST_H

struct ps_block_update;

/** A doubly linked list whose links are in the updates: all operations take constant time and no memory. */
struct ps_update_list {
  struct ps_block_update *first;
  struct ps_block_update *last;
};

/** Adds an update that is in no list at the end. */
void ps_update_list_append(struct ps_update_list *list, struct ps_block_update *update);

/** Adds an update that is in no list at the front. */
void ps_update_list_prepend(struct ps_update_list *list, struct ps_block_update *update);

/** Removes an update that is in this list. */
void ps_update_list_remove(struct ps_update_list *list, struct ps_block_update *update);

#endif
