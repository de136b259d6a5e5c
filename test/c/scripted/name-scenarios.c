/* Names of parameters, as calls give them again and again, and the numbers of their blocks. */
#include <string.h>

#include "scripted.h"

/** More names than one request can have, and than the first table of a client has places for. */
#define NAMES 1500
#define PER_REQUEST 256
/** As many as are remembered as a list. */
#define LISTED 40
#define TIMEOUT_MS 20000

static char texts[NAMES][8];
static const char *names[NAMES];
/** The rejection of records; NULL: they are applied. */
static const char *rejection;

/** Answers a batched read: all blocks have version 5, and elements of 0. */
static void answer_read(const struct published *message) {
  static uint8_t data[NAMES * (sizeof(double) + sizeof(float[2]))];
  uint64_t entries = number_in(message, "entries");
  uint8_t *at = data;
  struct ps_draft draft;
  for (uint64_t i = 0; i < entries; i++) ps_put_float64(&at, 5);
  memset(at, 0, entries * sizeof(float[2]));
  ps_draft_begin(&draft);
  ps_draft_whole(&draft, "from", 0);
  ps_draft_flag(&draft, "more", false);
  ps_draft_whole(&draft, "generation", 1);
  ps_draft_whole(&draft, "seq", 9);
  ps_draft_whole(&draft, "entries", entries);
  EXPECT_OK(ps_draft_end_and_append(&draft, data, entries * (sizeof(double) + sizeof(float[2]))));
  bytes_after(1, message->reply, draft.buffer.data, draft.buffer.size);
  ps_draft_release(&draft);
}

static void settle(const struct published *message) {
  if (is_to(message, "read")) answer_read(message);
  if (serve(message) || !is_record(message)) return;
  stored_after(1, message, 1, count_to(NULL));
  settled_after(2, message, count_to(NULL), rejection, "entry 0, \"p0\" block 0: of another time");
}

static pserver_client *began(void) {
  begin(settle);
  rejection = NULL;
  for (size_t i = 0; i < NAMES; i++) {
    snprintf(texts[i], sizeof texts[i], "p%zu", i);
    names[i] = texts[i];
  }
  return connected(0);
}

static pserver_status set_all(pserver_client *client, size_t count) {
  static float value[2];
  pserver_tensor tensors[NAMES];
  for (size_t i = 0; i < count; i++) {
    tensors[i] = (pserver_tensor){PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, value, sizeof value};
  }
  return pserver_set(client, names, tensors, count, TIMEOUT_MS);
}

/** Whether the last batch is of the blocks of the names, in their order, as they are under an epoch. */
static bool is_of_names(size_t count, uint64_t epoch) {
  const struct published *batch = to("batch", count_to("batch") - 1);
  for (size_t i = 0; i < count; i++) {
    if (uint32_in(batch, 0, i) != first_number(names[i], strlen(names[i]), epoch)) return false;
  }
  return true;
}

static void looks_up_once(void) {
  struct ps_value asked;
  pserver_client *client = began();
  EXPECT_OK(set_all(client, NAMES));
  EXPECT(count_to("status") == (NAMES + PER_REQUEST - 1) / PER_REQUEST);
  for (size_t i = 0; i < NAMES / PER_REQUEST; i++) {
    EXPECT(ps_map_find(&to("status", i)->message.fields, "names", &asked) && asked.count == PER_REQUEST);
  }
  for (size_t i = 0; i < 2; i++) {
    EXPECT(is_of_names(NAMES, 2));
    EXPECT_OK(set_all(client, NAMES));
  }
  EXPECT(count_to("status") == (NAMES + PER_REQUEST - 1) / PER_REQUEST && count_to("batch") == 3);
  closed(client);
}

static void tells_lists_apart(void) {
  pserver_client *client = began();
  for (size_t i = 0; i < 3; i++) EXPECT_OK(set_all(client, LISTED));
  names[0] = texts[1];
  names[1] = texts[0];
  EXPECT_OK(set_all(client, LISTED));
  EXPECT(is_of_names(LISTED, 2) && count_to("status") == 1);
  names[LISTED - 1] = "other";
  EXPECT_OK(set_all(client, LISTED));
  EXPECT(is_of_names(LISTED, 2) && count_to("status") == 2);
  names[LISTED - 1] = NULL;
  EXPECT_ERROR(BAD_NAME, set_all(client, LISTED));
  names[LISTED - 1] = "";
  EXPECT_ERROR(BAD_NAME, set_all(client, LISTED));
  EXPECT(count_to("status") == 2 && count_to("batch") == 5);
  closed(client);
}

static void looks_up_what_is_stale(void) {
  pserver_client *client = began();
  for (size_t i = 0; i < 3; i++) EXPECT_OK(set_all(client, LISTED));
  EXPECT(is_of_names(LISTED, 2) && count_to("status") == 1);
  job.epoch = 3;
  rejection = "STALE_EPOCH";
  EXPECT_ERROR(STALE_EPOCH, set_all(client, LISTED));
  EXPECT(is_of_names(LISTED, 2));
  rejection = NULL;
  EXPECT_OK(set_all(client, LISTED));
  EXPECT(is_of_names(LISTED, 3) && count_to("status") == 2);
  closed(client);
}

static pserver_status send_all(pserver_client *client, size_t count) {
  static float value[2];
  pserver_gradient grads[NAMES];
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = true;
  options.learning_rate = 1;
  for (size_t i = 0; i < count; i++) {
    pserver_tensor tensor = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, value, sizeof value};
    grads[i] = (pserver_gradient){.name = names[i], .values = tensor};
  }
  return pserver_send_grads(client, grads, count, &options, TIMEOUT_MS);
}

static pserver_status get_all(pserver_client *client, size_t count) {
  static float got[NAMES][2];
  pserver_tensor tensors[NAMES];
  pserver_known known[NAMES] = {0};
  pserver_origins *origins;
  for (size_t i = 0; i < count; i++) {
    tensors[i] = (pserver_tensor){.dtype = PSERVER_FLOAT32, .data = got[i], .bytes = sizeof got[i]};
  }
  pserver_status status =
      pserver_get_known(client, names, tensors, count, known, &origins, NULL, TIMEOUT_MS);
  if (status == PSERVER_OK) pserver_origins_free(origins);
  return status;
}

/** Of the sanitizer's library, whose header compilers do not always have. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *));

static size_t allocations;

static void count_allocation(const volatile void *place, size_t bytes) {
  (void)place;
  (void)bytes;
  allocations++;
}

static void ignore(const volatile void *place) { (void)place; }

/** Returns how often calls of all kinds, of so many tensors, allocate memory once they have been made before. */
static size_t allocations_of(pserver_client *client, size_t count) {
  for (size_t round = 0; round < 4; round++) {
    allocations = 0;
    EXPECT_OK(set_all(client, count));
    EXPECT_OK(send_all(client, count));
    EXPECT_OK(get_all(client, count));
  }
  return allocations;
}

static void allocates_for_calls_only(void) {
  static bool is_counting;
  if (!is_counting) is_counting = __sanitizer_install_malloc_and_free_hooks(count_allocation, ignore) > 0;
  EXPECT(is_counting);
  pserver_client *client = began();
  size_t few = allocations_of(client, 150);
  size_t many = allocations_of(client, NAMES);
  EXPECT(few > 0 && many < few + 150);
  closed(client);
}

static void refuses_numbers(void) {
  static const uint64_t numbers[] = {0, UINT32_MAX, 1ull << 32, 1ull << 53};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    pserver_client *client = began();
    job.blocks = 2;
    job.number = &numbers[i];
    EXPECT_ERROR(BAD_MESSAGE, push(client, TIMEOUT_MS));
    EXPECT(count_to(NULL) == 0);
    closed(client);
  }
  static const uint64_t last = UINT32_MAX - 1;
  pserver_client *client = began();
  job.blocks = 3;
  job.number = &last;
  EXPECT_ERROR(BAD_MESSAGE, push(client, TIMEOUT_MS));
  job.blocks = 2;
  job.shards = 1;
  EXPECT_OK(push(client, TIMEOUT_MS));
  EXPECT(uint32_in(to("batch", 0), 0, 0) == last && uint32_in(to("batch", 0), 0, 1) == UINT32_MAX);
  closed(client);
}

const struct scenario name_scenarios[] = {
    {"many names are looked up with few requests, and once", looks_up_once},
    {"a list of names is not taken for another one", tells_lists_apart},
    {"after STALE_EPOCH names given again are looked up, and their numbers are others", looks_up_what_is_stale},
    {"a parameter whose blocks have no numbers is an error", refuses_numbers},
    {"calls allocate no memory for each of their tensors", allocates_for_calls_only},
    {NULL, NULL}};
