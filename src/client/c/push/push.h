#ifndef PUSH_PUSH_H
#define PUSH_PUSH_H

/* Calls that change parameters, including their initialization. */

#include "pull/pull.h"

/** Fails with STATIC if the parameter cannot be updated. */
pserver_status ps_check_changeable(const struct ps_parameter *parameter);

/** Fails with UNSUPPORTED for bools, which can be set but not computed with. */
pserver_status ps_check_computable(const struct ps_parameter *parameter);

/** Checks the elements of an update, and computes their norm if the parameter clips by it. NON_FINITE. */
pserver_status ps_finish_update(struct ps_parameter_update *update, uint64_t elements);

/** The parameters that a call has named so far. */
struct ps_parameter_set {
  /** The numbers of their first blocks; 0 for an empty slot. */
  uint32_t *slots;
  /** There are 2^bits slots. */
  unsigned bits;
};

/** Makes an empty set for so many parameters; false if there is no memory. Release it also then. */
bool ps_parameter_set_init(struct ps_parameter_set *set, size_t count);

/** Adds a parameter; false if the set has it already. */
bool ps_parameter_set_add(struct ps_parameter_set *set, const struct ps_parameter *parameter);

void ps_parameter_set_release(struct ps_parameter_set *set);

/**
 * Sends all blocks of updates and waits; `goes_alone`: each in a record of its own, see ps_sending.
 * Errors as of ps_sending_begin(). After STALE_EPOCH the updates' parameters are forgotten.
 */
pserver_status ps_send_updates(struct ps_call *call, struct ps_parameter_update *updates, size_t count,
                               struct ps_call_mode mode, bool goes_alone);

/** Sends block updates that are cut already as ps_send_updates() does. */
pserver_status ps_send(struct ps_call *call, struct ps_sending *sending);

/** Forgets the parameters of updates if their error says that they are stale; keeps the last error. */
pserver_status ps_forget_if_stale(struct ps_call *call, const struct ps_sending *sending,
                                  pserver_status status);

/** Ends the trainer's membership in rounds, and waits. */
pserver_status ps_exit_rounds(struct ps_call *call);

/** A parameter that a caller declares, and the answer of a host. */
struct ps_declaration {
  const char *name;
  const pserver_tensor *value;
  const pserver_config *config;
  /** Whether the values were found to be finite before the declaration. */
  bool is_finite;
  /** The parameter in the reply, with one reference; NULL before. */
  struct ps_parameter *parameter;
};

/**
 * Checks name, value and configuration. BAD_NAME, BAD_VALUE, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH, BAD_CONFIG;
 * NON_FINITE if the configuration cannot allow such values.
 */
pserver_status ps_check_declaration(struct ps_declaration *declaration);

/** Packs a declaration for a lifecycle request. */
void ps_pack_declaration(struct ps_draft *draft, const struct ps_declaration *declaration);

/** Reads the parameters in a reply, which must be those of the declarations, in order. BAD_MESSAGE. */
pserver_status ps_read_declared(struct ps_declaration *const *declarations, size_t count,
                                const struct ps_message *message);

/** Declares parameters of the job under its epoch, many in a request, and waits. */
pserver_status ps_declare(struct ps_call *call, uint64_t epoch, struct ps_declaration *declarations,
                          size_t count);

/** Drops the references to the declared parameters. */
void ps_declarations_release(struct ps_declaration *declarations, size_t count);

#endif
