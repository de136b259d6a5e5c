/* Initialization of the job by the trainer that is selected. */
#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "calls/declaration.h"
#include "calls/first-values.h"
#include "calls/selection.h"
#include "errors/details.h"
#include "wire/clock.h"

static void note_epoch(struct ps_client *client, void *epoch) { client->init_epoch = *(uint64_t *)epoch; }

static void take_epoch(struct ps_client *client, void *epoch) { *(uint64_t *)epoch = client->init_epoch; }

pserver_status pserver_begin_init(pserver_client *handle, bool wait, int64_t timeout_ms,
                                  bool *selected) {
  struct ps_call call;
  if (selected == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE,
                   "pserver_begin_init: selected: expected a pointer; received NULL");
  }
  pserver_status status = ps_call_begin(&call, handle, "pserver_begin_init", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  struct ps_selection selection = {0};
  int64_t pause_ms = PS_PAUSE_MS;
  status = ps_await_selection(&call, wait, &pause_ms, &selection);
  if (status == PSERVER_OK) {
    uint64_t epoch = selection.is_selected ? selection.epoch : 0;
    ps_run_on_io_thread(&call, note_epoch, &epoch);
    *selected = selection.is_selected;
  }
  return ps_call_end(&call, status);
}

/** Gives the epoch of the initialization that this trainer is selected for. NOT_SELECTED if it is not. */
static pserver_status selected_epoch(struct ps_call *call, uint64_t *epoch) {
  ps_run_on_io_thread(call, take_epoch, epoch);
  if (*epoch != 0) return PSERVER_OK;
  ps_fail(
      PSERVER_ERR_NOT_SELECTED,
      "%s: this trainer is not selected to initialize; call pserver_begin_init, and initialize only if "
      "it says so",
      call->what);
  return ps_detail_text("trainer", call->client->identity.trainer);
}

static int compare_names(const void *a, const void *b) {
  const char *const *left = a;
  const char *const *right = b;
  return strcmp(*left, *right);
}

/** BAD_VALUE if a name occurs twice. */
static pserver_status check_distinct(struct ps_call *call, const struct ps_declaration *declarations,
                                     size_t count) {
  const char **names = malloc(count * sizeof *names);
  if (names == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu names", count);
  for (size_t i = 0; i < count; i++) names[i] = declarations[i].name;
  qsort(names, count, sizeof *names, compare_names);
  pserver_status status = PSERVER_OK;
  for (size_t i = 1; i < count && status == PSERVER_OK; i++) {
    if (strcmp(names[i - 1], names[i]) != 0) continue;
    ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected each parameter once; received \"%s\" twice",
            call->what, names[i]);
    status = ps_detail_text("parameter", names[i]);
  }
  free(names);
  return status;
}

/** Declares parameters and stores their values. All are checked before anything is sent. */
static pserver_status init_declared(struct ps_call *call, struct ps_declaration *declarations, size_t count) {
  uint64_t epoch = 0;
  pserver_status status = selected_epoch(call, &epoch);
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    status = ps_check_declaration(&declarations[i]);
  }
  if (status == PSERVER_OK) status = check_distinct(call, declarations, count);
  if (status == PSERVER_OK) status = ps_declare(call, epoch, declarations, count);
  if (status == PSERVER_OK) status = ps_store_first_values(call, declarations, count);
  return status;
}

pserver_status pserver_init_param(pserver_client *handle, const char *name, const pserver_tensor *value,
                                  const pserver_config *config, int64_t timeout_ms) {
  struct ps_call call;
  struct ps_declaration declaration = {.name = name, .value = value, .config = config};
  pserver_status status = ps_call_begin(&call, handle, "pserver_init_param", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = init_declared(&call, &declaration, 1);
  ps_declarations_release(&declaration, 1);
  return ps_call_end(&call, status);
}

static pserver_status init_params(struct ps_call *call, const pserver_new_parameter *parameters,
                                  size_t count) {
  struct ps_declaration *declarations = calloc(count, sizeof *declarations);
  if (declarations == NULL) {
    return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu declarations", count);
  }
  for (size_t i = 0; i < count; i++) {
    declarations[i] = (struct ps_declaration){.name = parameters[i].name,
                                              .value = &parameters[i].value,
                                              .config = parameters[i].config};
  }
  pserver_status status = init_declared(call, declarations, count);
  ps_declarations_release(declarations, count);
  free(declarations);
  return status;
}

pserver_status pserver_init_params(pserver_client *handle, const pserver_new_parameter *parameters,
                                   size_t count, int64_t timeout_ms) {
  struct ps_call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_init_params", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  if (count == 0) {
    status = ps_fail(PSERVER_ERR_EMPTY, "%s: expected at least one parameter; received none", call.what);
  } else if (parameters == NULL) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected parameters; received NULL", call.what);
  } else {
    status = init_params(&call, parameters, count);
  }
  return ps_call_end(&call, status);
}

pserver_status pserver_finish_init(pserver_client *handle, int64_t timeout_ms) {
  struct ps_call call;
  uint64_t epoch = 0;
  pserver_status status = ps_call_begin(&call, handle, "pserver_finish_init", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = selected_epoch(&call, &epoch);
  if (status == PSERVER_OK) status = ps_finish_initialization(&call, epoch, NULL);
  if (status == PSERVER_OK) {
    uint64_t none = 0;
    ps_run_on_io_thread(&call, note_epoch, &none);
  }
  return ps_call_end(&call, status);
}
