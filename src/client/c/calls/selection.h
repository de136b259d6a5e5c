#ifndef CALLS_SELECTION_H
#define CALLS_SELECTION_H

#include "calls/call.h"
#include "calls/parameter.h"

struct ps_declaration;

/** Who initializes, as a host answers to `begin` and `create`. */
struct ps_selection {
  bool is_selected;
  pserver_state state;
  uint64_t epoch;
  /** The trainer that initializes, or has done so. */
  char by[PS_ID_SIZE];
  /** The parameter to create, which receives what the host says of it; NULL: the job. */
  struct ps_declaration *declaration;
};

/**
 * Asks to initialize the job, or `selection->declaration`. If it `waits`, asks again with growing pauses
 * until this trainer is selected or nothing is left to initialize. TIMEOUT names the selected trainer.
 */
pserver_status ps_await_selection(struct ps_call *call, bool waits, int64_t *pause_ms,
                                  struct ps_selection *selection);

/** Ends the initialization of a parameter, or of the job if it is NULL, under its epoch. INCOMPLETE. */
pserver_status ps_finish_initialization(struct ps_call *call, uint64_t epoch,
                                        const struct ps_parameter *parameter);

#endif
