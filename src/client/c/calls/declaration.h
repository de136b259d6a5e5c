#ifndef CALLS_DECLARATION_H
#define CALLS_DECLARATION_H

#include "calls/call.h"
#include "calls/parameter.h"
#include "wire/envelope.h"

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
