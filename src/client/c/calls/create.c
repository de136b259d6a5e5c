/* Creates single parameters: the trainer that comes first initializes, others wait. */
#include "calls/client.h"
#include "calls/declaration.h"
#include "calls/first-values.h"
#include "calls/parameters.h"
#include "calls/selection.h"
#include "pull/pull.h"
#include "push/parameter-update.h"
#include "wire/clock.h"

/** Creates a parameter unless it exists; waits while another trainer is creating it. */
static pserver_status create_or_wait(struct ps_call *call, const char *name, const pserver_tensor *value,
                                     const pserver_config *config) {
  struct ps_declaration declaration = {.name = name, .value = value, .config = config};
  int64_t pause_ms = PS_PAUSE_MS;
  pserver_status status = ps_check_declaration(&declaration);
  if (status != PSERVER_OK) return ps_fail_prefixed("%s: ", call->what);
  while (true) {
    struct ps_selection selection = {.declaration = &declaration};
    status = ps_await_selection(call, true, &pause_ms, &selection);
    if (status != PSERVER_OK || !selection.is_selected) return status;
    status = ps_store_first_values(call, &declaration, 1);
    if (status == PSERVER_OK) status = ps_finish_initialization(call, selection.epoch, declaration.parameter);
    ps_declarations_release(&declaration, 1);
    /* Another trainer has taken over, because this one has lost its lease: wait for the other. */
    if (!ps_yields_init(status)) return status;
    status = ps_call_sleep(call, ps_varied_ms(pause_ms));
    if (status != PSERVER_OK) return status;
  }
}

pserver_status pserver_create(pserver_client *handle, const char *name, const pserver_tensor *value,
                              const pserver_config *config, int64_t timeout_ms,
                              pserver_tensor *settled) {
  struct ps_call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_create", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = create_or_wait(&call, name, value, config);
  if (status == PSERVER_OK) {
    struct ps_parameter *found = NULL;
    status = ps_find_parameters(&call, &name, 1, true, &found);
    if (status == PSERVER_OK) {
      status = ps_fit_tensor(found, value, found->shape, found->rank, found->layout.elements);
    }
    ps_parameters_unref(&found, 1);
  }
  if (status == PSERVER_OK && settled != NULL) {
    settled->data = NULL;
    pserver_read_options options;
    pserver_read_options_init(&options);
    status = ps_pull_parameters(&call, &name, settled, 1, &options);
  }
  return ps_call_end(&call, status);
}
