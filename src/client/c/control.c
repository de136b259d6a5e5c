/* The calls that look at the job and save its model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "requests.h"

#define SAVE_MS 600000

pserver_status pserver_job_status(pserver_client *handle, pserver_job_info *info, int64_t timeout_ms) {
  struct call call;
  struct job_status status = {0};
  pserver_status asked = call_begin(&call, handle, "pserver_job_status", timeout_ms, 0);
  if (asked != PSERVER_OK) return asked;
  asked = info == NULL ? fail(PSERVER_ERR_BAD_VALUE, "info: expected a place; received NULL")
                       : ask_status(&call, NULL, 0, NULL, &status);
  if (asked != PSERVER_OK) return call_end(&call, asked);
  *info = (pserver_job_info){.state = status.state,
                             .epoch = status.epoch,
                             .shards = (uint32_t)status.shards};
  memcpy(info->by, status.by, sizeof info->by);
  pthread_mutex_lock(&call.client->lock);
  info->session = call.client->session.number;
  pthread_mutex_unlock(&call.client->lock);
  return call_end(&call, asked);
}

/** The list so far. */
struct listing {
  pserver_parameter_info *list;
  size_t count;
};

static bool append(struct listing *listing, const struct parameter *parameter) {
  size_t bytes = (listing->count + 1) * sizeof *listing->list;
  pserver_parameter_info *list = realloc(listing->list, bytes);
  if (list == NULL) return false;
  listing->list = list;
  pserver_parameter_info *info = &list[listing->count];
  *info = (pserver_parameter_info){.name = strdup(parameter->name),
                                   .dtype = parameter->dtype,
                                   .rank = parameter->rank,
                                   .elements = parameter->layout.elements,
                                   .blocks = parameter->layout.blocks,
                                   .epoch = parameter->epoch,
                                   .ready = parameter->is_ready};
  if (info->name == NULL) return false;
  memcpy(info->shape, parameter->shape, sizeof info->shape);
  listing->count++;
  return true;
}

/** One page after the last name of the list. */
static pserver_status list_page(struct call *call, struct listing *listing, bool *has_more) {
  struct parameter *page[PARAMETERS_PER_REQUEST_MAX] = {NULL};
  struct job_status status = {.parameters = page, .capacity = PARAMETERS_PER_REQUEST_MAX};
  const char *after = listing->count == 0 ? NULL : listing->list[listing->count - 1].name;
  pserver_status asked = ask_status(call, NULL, 0, after, &status);
  for (size_t i = 0; i < status.count && asked == PSERVER_OK; i++) {
    if (page[i] != NULL && !append(listing, page[i])) {
      asked = fail(PSERVER_ERR_INTERNAL, "no memory for the list");
    }
  }
  *has_more = asked == PSERVER_OK && status.has_more && status.count > 0;
  give_back_parameters(call->client, page, PARAMETERS_PER_REQUEST_MAX);
  return asked;
}

pserver_status pserver_list(pserver_client *handle, pserver_parameter_info **list, size_t *count,
                            int64_t timeout_ms) {
  struct call call;
  struct listing listing = {0};
  bool has_more = true;
  pserver_status status = call_begin(&call, handle, "pserver_list", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  if (list == NULL || count == NULL) {
    status = fail(PSERVER_ERR_BAD_VALUE, "list and count: expected places; received NULL");
  }
  while (status == PSERVER_OK && has_more) status = list_page(&call, &listing, &has_more);
  if (status == PSERVER_OK) {
    *list = listing.list;
    *count = listing.count;
  } else {
    pserver_list_release(listing.list, listing.count);
  }
  return call_end(&call, status);
}

void pserver_list_release(pserver_parameter_info *list, size_t count) {
  for (size_t i = 0; i < count && list != NULL; i++) free(list[i].name);
  free(list);
}

static pserver_status write_save(struct call *call, struct ask *ask, struct draft *draft) {
  (void)call;
  draft_text(draft, "path", ask->context);
  return draft_end(draft);
}

static pserver_status read_save(struct call *call, struct ask *ask, const struct message *message) {
  (void)call;
  (void)ask;
  struct value file;
  if (map_find(&message->fields, "file", &file)) return PSERVER_OK;
  return fail(PSERVER_ERR_BAD_MESSAGE, "save: expected a file; received another reply");
}

static pserver_status nobody_saves(struct call *call, struct ask *ask) {
  (void)ask;
  return fail(PSERVER_ERR_NO_HOST, "no host of job \"%s\" can save", call->client->job);
}

pserver_status pserver_save(pserver_client *handle, const char *path, int64_t timeout_ms) {
  struct call call;
  pserver_status status = call_begin(&call, handle, "pserver_save", timeout_ms, SAVE_MS);
  if (status != PSERVER_OK) return status;
  if (path == NULL) {
    return call_end(&call, fail(PSERVER_ERR_BAD_PATH, "path: expected a path; received NULL"));
  }
  /* Saving takes its time: asking again would only begin it again. */
  struct ask ask = {.write = write_save,
                    .read = read_save,
                    .nobody = nobody_saves,
                    .context = (void *)(uintptr_t)path,
                    .is_sent_once = true};
  snprintf(ask.subject, sizeof ask.subject, "ps.%s.control.%s.save", call.client->job,
           call.client->id);
  return call_end(&call, run_asks(&call, &ask, 1));
}
