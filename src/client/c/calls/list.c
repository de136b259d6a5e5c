/* Calls that list the job's parameters. */
#include <stdlib.h>
#include <string.h>

#include "calls/client.h"
#include "calls/parameters.h"
#include "formats/json.h"

/** Bytes of JSON that one byte of a configuration takes at most. */
#define JSON_BYTES_PER_BYTE 6

/** The list so far. */
struct listing {
  pserver_parameter_details *list;
  size_t count;
  size_t capacity;
};

static bool reserve(struct listing *listing) {
  if (listing->count < listing->capacity) return true;
  size_t capacity = listing->capacity == 0 ? 64 : 2 * listing->capacity;
  pserver_parameter_details *list = realloc(listing->list, capacity * sizeof *list);
  if (list == NULL) return false;
  listing->list = list;
  listing->capacity = capacity;
  return true;
}

static char *config_text(const struct ps_parameter *parameter) {
  struct ps_value config;
  size_t size = JSON_BYTES_PER_BYTE * parameter->config_bytes + 64;
  struct ps_json json = {.bytes = malloc(size), .size = size};
  if (json.bytes == NULL) return NULL;
  json.bytes[0] = '\0';
  if (ps_read_checked(parameter->config, parameter->config_bytes, &config))
    ps_json_value(&json, &config);
  if (!json.is_full) return json.bytes;
  free(json.bytes);
  return NULL;
}

static bool append(struct listing *listing, const struct ps_parameter *parameter) {
  if (!reserve(listing)) return false;
  pserver_parameter_details *details = &listing->list[listing->count];
  *details = (pserver_parameter_details){
      .info = {.name = strdup(parameter->name),
               .dtype = parameter->dtype,
               .rank = parameter->rank,
               .elements = parameter->layout.elements,
               .blocks = parameter->layout.blocks,
               .epoch = parameter->epoch,
               .ready = parameter->is_ready},
      .config = config_text(parameter),
      .block_elements = parameter->layout.block_elements,
      .first_shard = (uint32_t)parameter->layout.first_shard,
      .shards = (uint32_t)parameter->layout.shards,
  };
  memcpy(details->info.shape, parameter->shape, sizeof details->info.shape);
  listing->count++;
  return details->info.name != NULL && details->config != NULL;
}

/** Appends the page that follows the last name of the list. */
static pserver_status list_page(struct ps_call *call, struct listing *listing, bool *has_more) {
  struct ps_parameter *page[PS_PARAMETERS_PER_REQUEST_MAX] = {NULL};
  struct ps_job_status status = {.parameters = page, .capacity = PS_PARAMETERS_PER_REQUEST_MAX};
  const char *after = listing->count == 0 ? NULL : listing->list[listing->count - 1].info.name;
  pserver_status asked = ps_ask_status(call, NULL, 0, after, &status);
  for (size_t i = 0; i < status.count && asked == PSERVER_OK; i++) {
    if (page[i] != NULL && !append(listing, page[i])) {
      asked = ps_fail(PSERVER_ERR_INTERNAL, "no memory for the list");
    }
  }
  *has_more = asked == PSERVER_OK && status.has_more && status.count > 0;
  ps_parameters_unref(page, PS_PARAMETERS_PER_REQUEST_MAX);
  return asked;
}

static pserver_status list_all(const char *what, pserver_client *handle, struct listing *listing,
                               int64_t timeout_ms) {
  struct ps_call call;
  bool has_more = true;
  pserver_status status = ps_call_begin(&call, handle, what, timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  while (status == PSERVER_OK && has_more) status = list_page(&call, listing, &has_more);
  if (status != PSERVER_OK) pserver_list_details_release(listing->list, listing->count);
  return ps_call_end(&call, status);
}

static pserver_status no_places(const char *what) {
  return ps_fail(PSERVER_ERR_BAD_VALUE, "%s: list and count: expected pointers; received NULL", what);
}

pserver_status pserver_list_details(pserver_client *client, pserver_parameter_details **list,
                                    size_t *count, int64_t timeout_ms) {
  struct listing listing = {0};
  if (list == NULL || count == NULL) return no_places("pserver_list_details");
  pserver_status status = list_all("pserver_list_details", client, &listing, timeout_ms);
  if (status != PSERVER_OK) return status;
  *list = listing.list;
  *count = listing.count;
  return PSERVER_OK;
}

void pserver_list_details_release(pserver_parameter_details *list, size_t count) {
  for (size_t i = 0; i < count && list != NULL; i++) {
    free(list[i].info.name);
    free(list[i].config);
  }
  free(list);
}

pserver_status pserver_list(pserver_client *client, pserver_parameter_info **list, size_t *count,
                            int64_t timeout_ms) {
  struct listing listing = {0};
  if (list == NULL || count == NULL) return no_places("pserver_list");
  pserver_status status = list_all("pserver_list", client, &listing, timeout_ms);
  if (status != PSERVER_OK) return status;
  pserver_parameter_info *infos = malloc((listing.count + 1) * sizeof *infos);
  for (size_t i = 0; i < listing.count && infos != NULL; i++) {
    infos[i] = listing.list[i].info;
    listing.list[i].info.name = NULL;
  }
  if (infos == NULL) status = ps_fail(PSERVER_ERR_INTERNAL, "no memory for the list");
  if (infos != NULL) *count = listing.count;
  if (infos != NULL) *list = infos;
  pserver_list_details_release(listing.list, listing.count);
  return status;
}

void pserver_list_release(pserver_parameter_info *list, size_t count) {
  for (size_t i = 0; i < count && list != NULL; i++) free(list[i].name);
  free(list);
}
