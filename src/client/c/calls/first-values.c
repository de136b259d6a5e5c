/* Sends the first values of parameters: many together, or block by block after an attempt has failed. */
#include "calls/first-values.h"

#include <stdlib.h>

#include "calls/client.h"
#include "push/parameter-update.h"
#include "push/sent-updates.h"
#include "wire/crc32.h"

/** An attempt to store the first values of a parameter. */
struct attempt {
  struct ps_parameter_update update;
  size_t bytes;
  /** Whether an earlier attempt has failed, and whether it had the same values. */
  bool is_open;
  bool is_repeated;
};

/** The attempts of one call, and their result. */
struct attempts {
  struct attempt *list;
  size_t count;
  pserver_status status;
};

static uint32_t crc_of(const struct attempt *attempt) {
  return ps_crc32_update(0, attempt->update.data, attempt->bytes);
}

static void look_for_earlier(struct ps_client *client, void *context) {
  const struct attempts *attempts = context;
  for (size_t i = 0; i < attempts->count; i++) {
    struct attempt *attempt = &attempts->list[i];
    const struct ps_parameter *parameter = attempt->update.parameter;
    attempt->is_open = ps_is_open_init(client->open_inits, parameter);
    attempt->is_repeated =
        attempt->is_open && ps_is_repeated_init(client->open_inits, parameter, crc_of(attempt));
  }
}

static void note_attempts(struct ps_client *client, void *context) {
  const struct attempts *attempts = context;
  for (size_t i = 0; i < attempts->count; i++) {
    const struct attempt *attempt = &attempts->list[i];
    const struct ps_parameter *parameter = attempt->update.parameter;
    if (attempts->status == PSERVER_OK) ps_forget_open_init(&client->open_inits, parameter);
    else ps_note_failed_init(&client->open_inits, parameter, crc_of(attempt));
  }
}

/** Makes attempts whose earlier ones ended alike, and notes their result. */
static pserver_status send_alike(struct ps_call *call, struct attempt *list, size_t count) {
  struct attempts attempts = {.list = list, .count = count};
  struct ps_parameter_update *updates = calloc(count, sizeof *updates);
  if (updates == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu parameters", count);
  for (size_t i = 0; i < count; i++) updates[i] = list[i].update;
  struct ps_call_mode mode = {.counts_present = list[0].is_repeated};
  attempts.status = ps_send_updates(call, updates, count, mode, list[0].is_open);
  ps_run_on_io_thread(call, note_attempts, &attempts);
  free(updates);
  return attempts.status;
}

/** Copies the attempts whose earlier ones ended in this way, in order; returns their number. */
static size_t list_alike(const struct attempt *list, size_t count, bool is_open, bool is_repeated,
                         struct attempt *alike) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    if (list[i].is_open == is_open && list[i].is_repeated == is_repeated) alike[found++] = list[i];
  }
  return found;
}

/**
 * Makes all attempts: first ones together, in batches. In repeated ones each block is sent in a record of
 * its own, because in a batch one block that is initialized already would get all others rejected.
 */
static pserver_status send_all(struct ps_call *call, struct attempt *list, size_t count) {
  static const struct {
    bool is_open;
    bool is_repeated;
  } kinds[] = {{true, true}, {true, false}, {false, false}};
  struct attempts attempts = {.list = list, .count = count};
  struct attempt *alike = calloc(count, sizeof *alike);
  if (alike == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu parameters", count);
  ps_run_on_io_thread(call, look_for_earlier, &attempts);
  pserver_status status = PSERVER_OK;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && status == PSERVER_OK; i++) {
    size_t found = list_alike(list, count, kinds[i].is_open, kinds[i].is_repeated, alike);
    if (found > 0) status = send_alike(call, alike, found);
  }
  free(alike);
  return status;
}

static pserver_status make_attempt(const struct ps_declaration *declaration, struct attempt *attempt) {
  struct ps_parameter *parameter = declaration->parameter;
  const pserver_tensor *value = declaration->value;
  uint64_t elements = parameter->layout.elements;
  attempt->update = (struct ps_parameter_update){
      .operation = PS_UPDATE_INIT, .parameter = parameter, .data = value->data};
  attempt->bytes = value->bytes;
  pserver_status status = ps_fit_tensor(parameter, value, parameter->shape, parameter->rank, elements);
  if (status != PSERVER_OK || declaration->is_finite) return status;
  return ps_check_finite(parameter, PSERVER_AS_IS, value->data, elements);
}

pserver_status ps_store_first_values(struct ps_call *call, struct ps_declaration *declarations,
                                     size_t count) {
  struct attempt *list = calloc(count, sizeof *list);
  if (list == NULL) return ps_fail(PSERVER_ERR_INTERNAL, "no memory for %zu parameters", count);
  pserver_status status = PSERVER_OK;
  for (size_t i = 0; i < count && status == PSERVER_OK; i++) {
    status = make_attempt(&declarations[i], &list[i]);
  }
  if (status == PSERVER_OK) status = send_all(call, list, count);
  free(list);
  return status;
}
