#ifndef CALLS_DECLARATION_H
#define CALLS_DECLARATION_H

#include "calls/call.h"
#include "calls/parameter.h"
#include "wire/envelope.h"

/** A parameter as a caller declares it, and what a host says to that. */
struct ps_declaration {
  const char *name;
  const pserver_tensor *value;
  const pserver_config *config;
  /** Whether the values are known to be finite, or need not be, before the host has read the configuration. */
  bool is_finite;
  /** With one reference, after the reply. */
  struct ps_parameter *parameter;
};

/**
 * Checks name, value and configuration, before anything is sent. BAD_NAME, BAD_VALUE, BAD_DTYPE, BAD_SHAPE,
 * BAD_LENGTH, BAD_CONFIG; NON_FINITE where the configuration cannot allow such values.
 */
pserver_status ps_check_declaration(struct ps_declaration *declaration);

/** Packs it as the lifecycle's requests carry it. */
void ps_pack_declaration(struct ps_draft *draft, const struct ps_declaration *declaration);

/** Takes the parameters from the reply, those of the declarations in their order. BAD_MESSAGE. */
pserver_status ps_read_declared(struct ps_declaration *const *declarations, size_t count,
                                const struct ps_message *message);

/** Declares parameters for the job under its epoch, many in a request, and waits. */
pserver_status ps_declare(struct ps_call *call, uint64_t epoch, struct ps_declaration *declarations,
                          size_t count);

/** Gives back what ps_read_declared() has taken. */
void ps_declarations_release(struct ps_declaration *declarations, size_t count);

#endif
