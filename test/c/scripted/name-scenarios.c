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

static void settle(const struct published *message) {
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
    {NULL, NULL}};
