#ifndef CORE_UPDATE_CALL_H
#define CORE_UPDATE_CALL_H

#include "core/block-update.h"

/** Result of one record in the fold, as an owner tells it. */
struct ps_outcome {
  uint64_t n;
  /** Journal sequence of the record that settled it. */
  uint64_t seq;
  /** Version of the block, if the record was applied. */
  uint64_t version;
  /** The rejection; NULL if the record was applied. */
  struct ps_failure *failure;
};

/** Whether every update of the call has its fate. */
bool ps_update_call_is_over(const struct ps_update_call *call);

/** Whether the call has failed; its error is the rejection, or made of what is unknown and unsent. */
bool ps_update_call_has_failed(const struct ps_update_call *call);

/** The update was applied, or stored if that is enough. */
void ps_update_applied(struct ps_block_update *update);

/** The outcome of the update is known; the first rejection is the error of the call. */
void ps_update_settled(struct ps_block_update *update, const struct ps_outcome *outcome);

/** The update will never be applied. */
void ps_update_rejected(struct ps_block_update *update, struct ps_failure *failure);

/** The update was given up after it may have been stored. */
void ps_update_unknown(struct ps_block_update *update);

/** The update was given up, and is stored nowhere; the obstacle may be NULL. */
void ps_update_unsent(struct ps_block_update *update, struct ps_failure *obstacle);

/** Something ended the call or the session before every update had its fate; the first end counts. */
void ps_update_call_ended(struct ps_update_call *call, struct ps_failure *end);

#endif
