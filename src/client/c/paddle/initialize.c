/* Initialization: selection of the trainer, first values, and the end. */
#include "initialize.h"

#include "failures.h"

int ps_begin(const char *function, struct ps_trainer *trainer, bool waits) {
  bool is_selected;
  int64_t timeout_ms = waits ? ps_waiting_ms(trainer) : ps_calling_ms(trainer);
  if (pserver_begin_init(trainer->core, waits, timeout_ms, &is_selected) != PSERVER_OK) {
    return ps_refuse_as_core(function);
  }
  if (waits && !is_selected) trainer->is_ready = true;
  if (!waits) trainer->is_second = !is_selected;
  return is_selected ? 1 : 0;
}

static bool is_ready(struct ps_trainer *trainer) {
  pserver_job_info info;
  return pserver_job_status(trainer->core, &info, ps_calling_ms(trainer)) == PSERVER_OK &&
         info.state == PSERVER_READY;
}

/** Returns what the published functions return for this status. */
static int settle(const char *function, struct ps_trainer *trainer, pserver_status status,
                  enum ps_repetition repetition) {
  if (status == PSERVER_OK) return 0;
  bool is_too_late = status == PSERVER_ERR_ALREADY_INITIALIZED ||
                     ((status == PSERVER_ERR_NOT_SELECTED || status == PSERVER_ERR_STALE_EPOCH) &&
                      repetition == PS_REPETITION_SUCCEEDS && is_ready(trainer));
  if (!is_too_late || repetition == PS_REPETITION_FAILS) return ps_refuse_as_core(function);
  trainer->is_ready = true;
  return 0;
}

int ps_initialize(const char *function, struct ps_trainer *trainer, const struct ps_values *values,
                  const pserver_config *config, enum ps_repetition repetition) {
  pserver_tensor tensor;
  if (!ps_tensor_of(function, values, &tensor)) return -1;
  pserver_status status =
      pserver_init_param(trainer->core, values->name, &tensor, config, ps_calling_ms(trainer));
  return settle(function, trainer, status, repetition);
}

int ps_finish(const char *function, struct ps_trainer *trainer, enum ps_repetition repetition) {
  pserver_status status = pserver_finish_init(trainer->core, ps_calling_ms(trainer));
  if (status == PSERVER_OK) trainer->is_ready = true;
  return settle(function, trainer, status, repetition);
}

int ps_await_ready(const char *function, struct ps_trainer *trainer) {
  if (!trainer->is_second || trainer->is_ready) return 0;
  int is_selected = ps_begin(function, trainer, true);
  if (is_selected <= 0) return is_selected;
  return ps_refuse(function, PSERVER_ERR_NOT_INITIALIZED,
                   "the trainer that was initializing has died, and this one is selected instead: call "
                   "paddle_begin_init_params() again, which returns 1, and initialize");
}
