#ifndef CORE_CALL_REFERENCES_H
#define CORE_CALL_REFERENCES_H

#include "core/block-update.h"

/**
 * The references that the outbox has of calls: one for each update that is open or in flight. Those that
 * it needs no more are given up at the end of the event, as what follows in it may still use the update.
 */
struct ps_call_references {
  /** The calls with references to be given up. */
  struct ps_update_call *released;
};

/** An update is open or in flight from now on. */
void ps_call_references_hold(struct ps_block_update *update);

/** Notes that the reference of an update can be given up, if it is neither open nor in flight. */
void ps_call_references_let_go(struct ps_call_references *references,
                               struct ps_block_update *update);

/** Ends an event: gives up the references noted, which frees calls that nobody else refers to. */
void ps_call_references_drop(struct ps_call_references *references);

#endif
