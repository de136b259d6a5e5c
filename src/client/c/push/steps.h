#ifndef PUSH_STEPS_H
#define PUSH_STEPS_H

#include <pserver.h>

#include "core/positions.h"
#include "push/update-source.h"

struct call;
struct client;

/**
 * A trainer's part in the steps of a `sync` or `ssp` job. It becomes a member at its first gradient,
 * from the largest step that is closed in any shard on. Steps are ended in the order of the calls.
 */
struct steps {
  /** Whether a call has the turn: one call at a time enters, waits or ends a step. */
  bool is_taken;
  /** Calls whose gradients of the open step are on their way. */
  unsigned sending;
  /** The last step known to be closed, by shard. */
  uint64_t closed[PS_SHARDS_MAX];
  /** The session that is a member, 0 for none, and the members' revision that has it. */
  uint64_t member;
  uint64_t revision;
  /** Steps this trainer has ended, those before it entered included. */
  uint64_t ended;
  /** Whether a gradient of the step after that has been sent. */
  bool is_open;
  bool entered_in_step;
};

/** How the gradients of one call take part. */
struct step_place {
  /** Whether the job has steps. */
  bool is_in_steps;
  bool has_turn;
  /** The step they belong to; 0 unless the job is synchronous. */
  uint64_t step;
  /** Whether those that come after their step has closed are counted, not refused. */
  bool counts_late;
};

/**
 * Before gradients are sent to the shards of blocks: enters, and waits until the step before theirs has
 * closed. If OK, to be followed by ps_on_gradients_sent(). TIMEOUT naming members that are waited for.
 */
pserver_status ps_join_step(struct call *call, const struct update_source *blocks, size_t count,
                            bool ends_step, struct step_place *place);

/**
 * After a shard has found them too early: enters anew, waits as ps_join_step() does, and takes the place that
 * they have now.
 */
pserver_status ps_reenter_steps(struct call *call, const struct update_source *blocks, size_t count,
                                struct step_place *place);

/** After they were sent: ends the step if the call does. Returns what came of it all. */
pserver_status ps_on_gradients_sent(struct call *call, const struct step_place *place, bool ends_step,
                                    pserver_status status, size_t late);

/** Whether the session keeps step, as far as it knows. Lock held. */
bool ps_is_member(const struct client *client);

/** The step that must have closed before the client reads; 0 for none. Lock held. */
uint64_t ps_step_of_pulls(const struct client *client);

#endif
