#ifndef CALLS_FALLBACKS_H
#define CALLS_FALLBACKS_H

#include "core/position.h"

struct client;

/**
 * A journal that this client has seen a position of was replaced. Steps that had closed in the shard may
 * be open again, and close only once this trainer has entered anew; versions that it has read may have
 * been undone. What was lost is asked for by pserver_fallbacks(). Lock held.
 */
void ps_on_journal_replaced(void *client, unsigned shard, struct position seen);

#endif
