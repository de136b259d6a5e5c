#ifndef CORE_CALL_REFERENCES_H
#define CORE_CALL_REFERENCES_H

#include "core/block-update.h"

/**
 * The outbox's references to calls: one for each update that is open or in flight. References that are no
 * longer needed are dropped at the end of the event, because the rest of the event may still use the
 * update.
 */
struct ps_call_references {
  /** Calls with references to be dropped. */
  struct ps_update_call *released;
};

/** Takes a reference for an update that is now open or in flight. */
void ps_call_references_take(struct ps_block_update *update);

/** Marks the reference for an update to be dropped, unless it is still open or in flight. */
void ps_call_references_note_unneeded(struct ps_call_references *references,
                                      struct ps_block_update *update);

/** Drops the marked references at the end of an event, which frees calls without other references. */
void ps_call_references_release(struct ps_call_references *references);

#endif
