/* Converts between the last error of a thread and failures of the core. */
#include "wire/core-failure.h"

#include "errors/details.h"
#include "errors/errors.h"

/** Replaces a failure that there is no memory for. */
static struct ps_failure no_memory = {
    .code = PSERVER_ERR_INTERNAL, .text = "no memory for an error", .details = ""};

struct ps_failure *ps_failure_of_last(void) {
  const struct ps_error *last = ps_last_error();
  struct ps_failure *failure = ps_failure_new(last->code, last->text, last->details);
  return failure == NULL ? &no_memory : failure;
}

pserver_status ps_fail_as_core(const struct ps_failure *failure) {
  ps_fail(failure->code, "%s", failure->text);
  return ps_detail_all(failure->details);
}
