#ifndef CORE_UPDATE_LIST_H
#define CORE_UPDATE_LIST_H

struct ps_block_update;

/** A list through the updates themselves: every operation takes constant time and no memory. */
struct ps_update_list {
  struct ps_block_update *first;
  struct ps_block_update *last;
};

/** Adds an update, which is in no list, at the end. */
void ps_update_list_append(struct ps_update_list *list, struct ps_block_update *update);

/** Adds an update, which is in no list, before all others. */
void ps_update_list_prepend(struct ps_update_list *list, struct ps_block_update *update);

/** Removes an update, which is in this list. */
void ps_update_list_remove(struct ps_update_list *list, struct ps_block_update *update);

#endif
