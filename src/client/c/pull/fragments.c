#include "pull/pull.h"

#include <stdlib.h>
#include <string.h>

/* Calls that read fragments: their versions, and their parameters at one version. */

/* Jobs with rounds. */

static void read_mode(struct ps_client *client, void *has_rounds) {
  *(bool *)has_rounds = client->session.terms.synchronization.mode == PS_SYNC_DILOCO;
}

bool ps_has_rounds(struct ps_call *call) {
  bool has_rounds = false;
  ps_run_on_io_thread(call, read_mode, &has_rounds);
  return has_rounds;
}

pserver_status ps_require_rounds(struct ps_call *call) {
  if (ps_has_rounds(call)) return PSERVER_OK;
  ps_fail(PSERVER_ERR_UNSUPPORTED, "%s: expected a job with synchronization diloco; this one has another",
          call->what);
  return ps_detail_text("expected", "diloco");
}

pserver_status ps_check_fragment(const struct ps_parameter *parameter, const char *fragment) {
  const char *own = parameter->fragment;
  if (own != NULL && strcmp(own, fragment) == 0) return PSERVER_OK;
  ps_fail(PSERVER_ERR_BAD_VALUE, "\"%s\": expected a parameter of fragment \"%s\"; received one of %s%s%s",
          parameter->name, fragment, own == NULL ? "" : "\"", own == NULL ? "none" : own,
          own == NULL ? "" : "\"");
  ps_detail_text("parameter", parameter->name);
  ps_detail_text("expected", fragment);
  return own == NULL ? PSERVER_ERR_BAD_VALUE : ps_detail_text("received", own);
}

/* Requests to shards for the versions of their fragments. */

/** The fragments of a job that are being listed. */
struct listing {
  pserver_fragment *list;
  size_t count;
  /** Of each: its shard, and whether that has told its version. */
  unsigned *shards;
  bool *is_told;
  pserver_account account;
};

/** A request to one shard: for all of its fragments, or for one that shall have a version. */
struct fragments_request {
  struct ps_positions *positions;
  unsigned shard;
  /** NULL: all, which are noted in `listing`. */
  const char *fragment;
  uint64_t min_version;
  /** Whether the trainer has to be a member. */
  bool needs_member;
  struct listing *listing;
  /** The answer about one fragment. */
  bool is_known;
  uint64_t version;
  bool is_sampled;
};

static pserver_status write_request(struct ps_ask *ask, struct ps_draft *draft) {
  const struct fragments_request *request = ask->context;
  struct ps_position position = ps_positions_get(request->positions, request->shard);
  ps_draft_whole(draft, "generation", position.generation);
  ps_draft_whole(draft, "seq", position.seq);
  if (request->fragment != NULL) {
    ps_draft_key(draft, "fragment");
    ps_pack_name(draft, request->fragment);
    ps_draft_whole(draft, "version", request->min_version);
  }
  if (request->needs_member) ps_draft_flag(draft, "member", true);
  ps_draft_whole(draft, "waitMs", ps_ask_group_wait_ms(ask->group));
  return ps_draft_end(draft);
}

/** Notes a fragment in an answer; one that is not listed was declared since. */
static void note_row(struct fragments_request *request, const char *name, uint64_t version, bool is_sampled) {
  struct listing *listing = request->listing;
  if (request->fragment != NULL) {
    if (strcmp(name, request->fragment) != 0) return;
    request->is_known = true;
    request->version = version;
    request->is_sampled = is_sampled;
    return;
  }
  for (size_t i = 0; i < listing->count; i++) {
    if (strcmp(listing->list[i].name, name) != 0) continue;
    listing->list[i].version = version;
    listing->is_told[i] = true;
  }
}

/** Reads a row: name, version, and whether the trainer may contribute. */
static bool read_version(struct fragments_request *request, const struct ps_value *row) {
  struct ps_value text;
  struct ps_value number;
  struct ps_value flag;
  const uint8_t *at = NULL;
  uint64_t version;
  if (row->type != PS_VALUE_LIST || !ps_list_next(row, &at, &text) || !ps_list_next(row, &at, &number)) return false;
  if (text.type != PS_VALUE_TEXT || !ps_value_whole(&number, &version)) return false;
  if (!ps_list_next(row, &at, &flag) || flag.type != PS_VALUE_BOOLEAN) return false;
  char *name = ps_name_of_text(text.content, text.content_bytes);
  if (name == NULL) return false;
  note_row(request, name, version, flag.boolean);
  free(name);
  return true;
}

static bool read_tally(const struct ps_value *row, pserver_tally *tally) {
  uint64_t numbers[3];
  struct ps_value number;
  const uint8_t *at = NULL;
  if (row->type != PS_VALUE_LIST) return false;
  for (size_t i = 0; i < 3; i++) {
    if (!ps_list_next(row, &at, &number) || !ps_value_whole(&number, &numbers[i])) return false;
  }
  *tally = (pserver_tally){numbers[0], numbers[1], numbers[2]};
  return true;
}

static void add_tally(pserver_tally *sum, const pserver_tally *tally) {
  sum->contributions += tally->contributions;
  sum->steps += tally->steps;
  sum->tokens += tally->tokens;
}

/** Adds the account in an answer of a shard to the sum of all. */
static bool add_account(const struct ps_value *fields, pserver_account *account) {
  pserver_tally *const sums[] = {&account->processed, &account->merged, &account->late, &account->dropped};
  pserver_tally tallies[4];
  struct ps_value rows;
  struct ps_value row;
  const uint8_t *at = NULL;
  if (!ps_map_find(fields, "account", &rows) || rows.type != PS_VALUE_LIST) return false;
  for (size_t i = 0; i < 4; i++) {
    if (!ps_list_next(&rows, &at, &row) || !read_tally(&row, &tallies[i])) return false;
  }
  for (size_t i = 0; i < 4; i++) add_tally(sums[i], &tallies[i]);
  return true;
}

static pserver_status read_answer(struct ps_ask *ask, const struct ps_message *message) {
  struct fragments_request *request = ask->context;
  const struct ps_value *fields = &message->fields;
  struct ps_position position;
  struct ps_value rows;
  struct ps_value row;
  const uint8_t *at = NULL;
  bool is_valid = ps_map_position(fields, &position) && ps_map_find(fields, "fragments", &rows) &&
                  rows.type == PS_VALUE_LIST;
  while (is_valid && ps_list_next(&rows, &at, &row)) is_valid = read_version(request, &row);
  if (is_valid && request->listing != NULL) is_valid = add_account(fields, &request->listing->account);
  if (!is_valid) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE,
                   "fragments: expected versions and an account; received another reply");
  }
  ps_positions_note(request->positions, request->shard, position);
  return PSERVER_OK;
}

static pserver_status refused(struct ps_ask *ask, pserver_status status, const struct ps_message *message) {
  const struct fragments_request *request = ask->context;
  if (ps_reaction_to(status) != PS_REACTION_REPLACED || message == NULL) return status;
  ps_positions_note_replaced(request->positions, request->shard, ps_expected_position(message).generation);
  return PSERVER_OK;
}

/** Prepares a request to a shard. They go on the connection for what must not wait behind values. */
static void ask_shard(struct ps_call *call, struct fragments_request *request, struct ps_ask *ask) {
  request->positions = &call->client->positions;
  *ask = (struct ps_ask){
      .write = write_request, .read = read_answer, .refused = refused, .context = request};
  ps_ask_shard(ask, &call->client->identity, request->shard, "fragments");
}

/* Lists the fragments of a job. */

static bool grow(struct listing *listing) {
  size_t count = listing->count + 1;
  pserver_fragment *list = realloc(listing->list, count * sizeof *list);
  if (list != NULL) listing->list = list;
  unsigned *shards = realloc(listing->shards, count * sizeof *shards);
  if (shards != NULL) listing->shards = shards;
  bool *is_told = realloc(listing->is_told, count * sizeof *is_told);
  if (is_told != NULL) listing->is_told = is_told;
  return list != NULL && shards != NULL && is_told != NULL;
}

/** Returns the place of a parameter's fragment, which is added if it is new; false if there is no memory. */
static bool place_of(struct listing *listing, const struct ps_parameter *parameter, size_t *place) {
  for (size_t i = 0; i < listing->count; i++) {
    *place = i;
    if (strcmp(listing->list[i].name, parameter->fragment) == 0) return true;
  }
  if (!grow(listing)) return false;
  *place = listing->count;
  listing->list[*place] = (pserver_fragment){.name = strdup(parameter->fragment)};
  listing->shards[*place] = (unsigned)parameter->layout.first_shard;
  listing->is_told[*place] = false;
  if (listing->list[*place].name == NULL) return false;
  listing->count++;
  return true;
}

static bool add_parameter(struct listing *listing, const struct ps_parameter *parameter) {
  size_t place = 0;
  if (!place_of(listing, parameter, &place)) return false;
  pserver_fragment *fragment = &listing->list[place];
  size_t bytes = (fragment->parameter_count + 1) * sizeof *fragment->parameters;
  char **parameters = realloc(fragment->parameters, bytes);
  if (parameters == NULL) return false;
  fragment->parameters = parameters;
  char *name = strdup(parameter->name);
  if (name == NULL) return false;
  parameters[fragment->parameter_count++] = name;
  return true;
}

/** Adds the parameters of a page, which follows the name `after`, and copies its last name there. */
static pserver_status list_page(struct ps_call *call, struct listing *listing, char **after, bool *has_more) {
  struct ps_parameter *page[PS_PARAMETERS_PER_REQUEST_MAX] = {NULL};
  struct ps_job_status status = {.parameters = page, .capacity = PS_PARAMETERS_PER_REQUEST_MAX};
  const struct ps_parameter *last = NULL;
  pserver_status asked = ps_ask_status(call, NULL, 0, *after, &status);
  for (size_t i = 0; i < status.count && asked == PSERVER_OK; i++) {
    if (page[i] == NULL) continue;
    last = page[i];
    bool is_added = page[i]->fragment == NULL || add_parameter(listing, page[i]);
    if (!is_added) asked = ps_no_memory("the fragments");
  }
  *has_more = asked == PSERVER_OK && status.has_more && last != NULL;
  if (*has_more) {
    free(*after);
    *after = strdup(last->name);
    if (*after == NULL) asked = ps_no_memory("the fragments");
  }
  ps_parameters_unref(page, PS_PARAMETERS_PER_REQUEST_MAX);
  return asked;
}

/** Asks each shard that has fragments of the list. */
static pserver_status ask_shards(struct ps_call *call, struct listing *listing) {
  struct fragments_request *requests = calloc(PS_SHARDS_MAX, sizeof *requests);
  struct ps_ask *asks = calloc(PS_SHARDS_MAX, sizeof *asks);
  bool is_asked[PS_SHARDS_MAX] = {false};
  size_t count = 0;
  pserver_status status = requests == NULL || asks == NULL ? ps_no_memory("requests") : PSERVER_OK;
  for (size_t i = 0; i < listing->count && status == PSERVER_OK; i++) {
    unsigned shard = listing->shards[i];
    if (is_asked[shard]) continue;
    is_asked[shard] = true;
    requests[count] = (struct fragments_request){.shard = shard, .listing = listing};
    ask_shard(call, &requests[count], &asks[count]);
    count++;
  }
  if (status == PSERVER_OK && count > 0) {
    status = ps_run_requests(call, &call->client->control_requests, asks, count);
  }
  free(requests);
  free(asks);
  return status;
}

static void release_fragment(pserver_fragment *fragment) {
  for (size_t i = 0; i < fragment->parameter_count; i++) free(fragment->parameters[i]);
  free(fragment->parameters);
  free(fragment->name);
}

/** Removes the fragments whose shards do not have them. */
static void keep_told(struct listing *listing) {
  size_t kept = 0;
  for (size_t i = 0; i < listing->count; i++) {
    if (listing->is_told[i]) listing->list[kept++] = listing->list[i];
    else release_fragment(&listing->list[i]);
  }
  listing->count = kept;
}

static pserver_status list_fragments(struct ps_call *call, struct listing *listing) {
  char *after = NULL;
  bool has_more = true;
  pserver_status status = ps_require_rounds(call);
  while (status == PSERVER_OK && has_more) status = list_page(call, listing, &after, &has_more);
  free(after);
  if (status == PSERVER_OK) status = ask_shards(call, listing);
  if (status == PSERVER_OK) keep_told(listing);
  free(listing->shards);
  free(listing->is_told);
  return status;
}

pserver_status pserver_fragments(pserver_client *handle, pserver_fragment **list, size_t *count,
                                 pserver_account *account, int64_t timeout_ms) {
  struct ps_call call;
  struct listing listing = {0};
  pserver_status status = ps_call_begin(&call, handle, "pserver_fragments", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  if (list == NULL || count == NULL) {
    status = ps_fail(PSERVER_ERR_BAD_VALUE, "pserver_fragments: expected pointers; received NULL");
    return ps_call_end(&call, status);
  }
  status = list_fragments(&call, &listing);
  bool is_listed = status == PSERVER_OK && listing.count > 0;
  if (!is_listed) pserver_fragments_release(listing.list, listing.count);
  if (status != PSERVER_OK) return ps_call_end(&call, status);
  *list = is_listed ? listing.list : NULL;
  *count = listing.count;
  if (account != NULL) *account = listing.account;
  return ps_call_end(&call, PSERVER_OK);
}

void pserver_fragments_release(pserver_fragment *list, size_t count) {
  for (size_t i = 0; i < count && list != NULL; i++) release_fragment(&list[i]);
  free(list);
}

/* Reads the parameters of a fragment at one version. */

/** Asks for a version of a fragment, which is on the shard of the request. UNKNOWN_PARAMETER. */
static pserver_status ask_about(struct ps_call *call, struct fragments_request *request) {
  struct ps_ask ask;
  ask_shard(call, request, &ask);
  pserver_status status = ps_run_requests(call, &call->client->control_requests, &ask, 1);
  if (status != PSERVER_OK || request->is_known) return status;
  ps_fail(PSERVER_ERR_UNKNOWN_PARAMETER, "no parameter belongs to fragment \"%s\"", request->fragment);
  return ps_detail_text("fragment", request->fragment);
}

/** The arguments of a call that pulls a fragment. */
struct fragment_pull {
  const char *fragment;
  const char *const *names;
  pserver_tensor *tensors;
  size_t count;
  uint64_t min_version;
  pserver_encoding encoding;
  uint64_t *version;
};

/** Asks for the version of a fragment, which is to be `min_version` or later. UNKNOWN_PARAMETER. */
static pserver_status ask_version(struct ps_call *call, const struct fragment_pull *pull, unsigned shard,
                                  uint64_t *version) {
  struct fragments_request request = {
      .shard = shard, .fragment = pull->fragment, .min_version = pull->min_version};
  pserver_status status = ask_about(call, &request);
  *version = request.version;
  return status;
}

/** Checks that the parameters are of the fragment, which is on `*shard`. */
static pserver_status find_shard(struct ps_call *call, const struct fragment_pull *pull, unsigned *shard) {
  struct ps_parameter **found = calloc(pull->count, sizeof *found);
  if (found == NULL) return ps_no_memory("%zu names", pull->count);
  pserver_status status = ps_find_parameters(call, pull->names, pull->count, true, found);
  for (size_t i = 0; i < pull->count && status == PSERVER_OK; i++) {
    status = ps_check_fragment(found[i], pull->fragment);
    *shard = (unsigned)found[i]->layout.first_shard;
  }
  ps_parameters_unref(found, pull->count);
  free(found);
  return status;
}

/** Releases the memory of tensors that the caller has given none for. */
static void release_own(const struct fragment_pull *pull, const bool *was_given) {
  for (size_t i = 0; i < pull->count; i++) {
    if (!was_given[i]) pserver_tensor_release(&pull->tensors[i]);
  }
}

static pserver_status read_at_one_version(struct ps_call *call, const struct fragment_pull *pull,
                                          const bool *was_given) {
  pserver_read_options options = {.struct_size = sizeof options, .encoding = pull->encoding};
  unsigned shard = 0;
  uint64_t version = 0;
  uint64_t before;
  pserver_status status = find_shard(call, pull, &shard);
  if (status == PSERVER_OK) status = ask_version(call, pull, shard, &version);
  do {
    /* If they differ, a round has closed while the blocks were read. */
    before = version;
    release_own(pull, was_given);
    if (status == PSERVER_OK) status = ps_pull_parameters(call, pull->names, pull->tensors, pull->count, &options);
    if (status == PSERVER_OK) status = ask_version(call, pull, shard, &version);
  } while (status == PSERVER_OK && version != before);
  if (status == PSERVER_OK) *pull->version = version;
  return status;
}

/** Reads a fragment; after an error, tensors that had no memory have none. */
static pserver_status pull_fragment(struct ps_call *call, const struct fragment_pull *pull) {
  bool *was_given = calloc(pull->count, sizeof *was_given);
  if (was_given == NULL) return ps_no_memory("%zu names", pull->count);
  for (size_t i = 0; i < pull->count; i++) was_given[i] = pull->tensors[i].data != NULL;
  pserver_status status = read_at_one_version(call, pull, was_given);
  if (status != PSERVER_OK) release_own(pull, was_given);
  free(was_given);
  return status;
}

static pserver_status check_pull(const struct ps_call *call, const struct fragment_pull *pull) {
  if (pull->count == 0) {
    return ps_fail(PSERVER_ERR_EMPTY, "%s: expected at least one name; received none", call->what);
  }
  if (pull->fragment == NULL || pull->names == NULL || pull->tensors == NULL || pull->version == NULL) {
    return ps_fail(PSERVER_ERR_BAD_VALUE, "%s: expected a fragment, names, tensors and a version; received NULL",
                   call->what);
  }
  return ps_check_options(call->what, sizeof(pserver_read_options), sizeof(pserver_read_options), NULL,
                          pull->encoding);
}

pserver_status pserver_pull_fragment(pserver_client *handle, const char *fragment, const char *const *names,
                                     pserver_tensor *tensors, size_t count, uint64_t min_version,
                                     pserver_encoding encoding, int64_t timeout_ms, uint64_t *version) {
  struct ps_call call;
  struct fragment_pull pull = {fragment, names, tensors, count, min_version, encoding, version};
  pserver_status status = ps_call_begin(&call, handle, "pserver_pull_fragment", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = check_pull(&call, &pull);
  if (status == PSERVER_OK) status = ps_require_rounds(&call);
  if (status == PSERVER_OK) status = pull_fragment(&call, &pull);
  return ps_call_end(&call, status);
}

/* Whether the trainer may contribute. */

pserver_status ps_ask_sampling(struct ps_call *call, const char *fragment, const char *parameter,
                               uint64_t min_version, uint64_t *version, bool *is_sampled) {
  struct fragment_pull pull = {.fragment = fragment, .names = &parameter, .count = 1};
  struct fragments_request request = {.fragment = fragment, .min_version = min_version, .needs_member = true};
  pserver_status status = find_shard(call, &pull, &request.shard);
  if (status == PSERVER_OK) status = ask_about(call, &request);
  if (status != PSERVER_OK) return status;
  *version = request.version;
  *is_sampled = request.is_sampled;
  return PSERVER_OK;
}
