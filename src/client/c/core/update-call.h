#ifndef CORE_UPDATE_CALL_H
#define CORE_UPDATE_CALL_H

#include "core/block-update.h"

/** The outcome of one record, as an owner reports it. */
struct ps_outcome {
  uint64_t n;
  /** Sequence number in the journal of the copy of the record that settled it. */
  uint64_t seq;
  /** Version of the block, if the record was applied. */
  uint64_t version;
  /** The rejection; NULL if the record was applied. */
  struct ps_failure *failure;
};

/** Whether no update of the call is pending. */
bool ps_update_call_is_over(const struct ps_update_call *call);

/** Whether the call has failed: an update was rejected, is unknown or unsent. */
bool ps_update_call_has_failed(const struct ps_update_call *call);

/** Notes that the update is applied, or stored if that is enough. */
void ps_update_applied(struct ps_block_update *update);

/** Notes the outcome of the update; the first rejection becomes the error of the call. */
void ps_update_settled(struct ps_block_update *update, const struct ps_outcome *outcome);

/** Notes that the update will never be applied. */
void ps_update_rejected(struct ps_block_update *update, struct ps_failure *failure);

/** Notes that the update was given up although it may be stored. */
void ps_update_unknown(struct ps_block_update *update);

/** Notes that the update was given up and is not stored; the obstacle may be NULL. */
void ps_update_unsent(struct ps_block_update *update, struct ps_failure *obstacle);

/** Notes what ended the call or the session while updates were pending; only the first is kept. */
void ps_update_call_ended(struct ps_update_call *call, struct ps_failure *end);

#endif
