/* Records: their numbers, repeats and windows, and when they are given up. */
#include <string.h>

#include "scripted.h"

#define ONE_RECORD_BYTES 8

static const char *last_text(void) {
  const char *text = "";
  pserver_last_error(&text);
  return text;
}

static void only_serve(const struct published *message) { serve(message); }

/** The same bytes under the same number. */
static bool are_same(const struct published *a, const struct published *b) {
  return a->count == b->count && memcmp(a->bytes, b->bytes, a->count) == 0 &&
         strcmp(a->subject, b->subject) == 0;
}

static void repeats(void) {
  static const int64_t waits_ms[] = {2200, 2200, 2200, 2200, 2200};
  begin(only_serve);
  pserver_client *client = connected(0);
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 40000));
  EXPECT(count_to(NULL) >= 17 && count_to(NULL) <= 19);
  expect_gaps(NULL, 5, waits_ms);
  for (size_t i = 1; i < 6; i++) EXPECT(are_same(to(NULL, 0), to(NULL, i)));
  closed(client);
}

static void waits_while_unread(void) {
  begin(only_serve);
  broker.holds_pings = true;
  pserver_client *client = connected(0);
  act_after(30000, answer_pings);
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 34000));
  /* Once the broker has read it, as it then says, the 2 s begin. */
  EXPECT(count_to(NULL) == 2);
  EXPECT(to(NULL, 1)->at_ms >= 32000 && to(NULL, 1)->at_ms < 32600);
  closed(client);
}

static void follows_progress(void) {
  begin(only_serve);
  broker.holds_pings = true;
  pserver_client *client = connected(0);
  for (int i = 1; i <= 5; i++) act_after(20000 * i, move_bytes);
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, PSERVER_TIMEOUT_DEFAULT));
  EXPECT(time_ms() >= 130000 && time_ms() < 131000);
  EXPECT(strstr(last_text(), "no progress within 30000 ms") != NULL);
  for (int i = 1; i <= 5; i++) act_after(20000 * i, move_bytes);
  int64_t before_ms = time_ms();
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 40000));
  EXPECT(time_ms() - before_ms < 41000);
  EXPECT(strstr(last_text(), "not finished within 40000 ms") != NULL);
  closed(client);
}

static void store(const struct published *message) {
  if (!serve(message) && is_record(message)) stored_after(100, message, 1, 7);
}

static void stops_at_the_ack(void) {
  begin(store);
  pserver_client *client = connected(0);
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 30000));
  EXPECT(count_to(NULL) == 1);
  /* Also after a reconnect, and when the call is over. */
  act_after(200, disconnect_now);
  act_after(300, reconnect_now);
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 30000));
  EXPECT(count_to(NULL) == 2);
  closed(client);
}

/** All publications are stored and applied, except the first of number 1. */
static void lose_the_first(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  bool is_first = block_in(message) == 0 && count_to(NULL) == 1;
  if (is_first) return;
  stored_after(500, message, 1, count_to(NULL));
  applied_after(510, message, count_to(NULL));
}

static int64_t first_repeat_ms(void) {
  for (size_t i = 1; i < count_to(NULL); i++) {
    if (are_same(to(NULL, 0), to(NULL, i))) return to(NULL, i)->at_ms - to(NULL, 0)->at_ms;
  }
  return -1;
}

static void overtaken(void) {
  begin(lose_the_first);
  job.shards = 1;
  job.blocks = 40;
  pserver_client *client = connected_singly(2 * ONE_RECORD_BYTES);
  EXPECT_OK(push(client, 60000));
  EXPECT(count_to(NULL) == 41);
  EXPECT(first_repeat_ms() >= 2000 && first_repeat_ms() < 2600);
  closed(client);
}

static void overtaken_in_other_shards(void) {
  begin(lose_the_first);
  job.shards = 40;
  job.blocks = 40;
  pserver_client *client = connected_singly(2 * ONE_RECORD_BYTES);
  EXPECT_OK(push(client, 60000));
  EXPECT(count_to(NULL) == 41);
  /* PubAcks of other journals say nothing about this one, however many of them come. */
  EXPECT(first_repeat_ms() >= 2000 && first_repeat_ms() < 2600);
  closed(client);
}

static void refuse_eight_times(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  size_t sendings = count_to(NULL);
  if (sendings == 4) {
    nobody_after(0, message);
  } else if (sendings <= 8) {
    refused_after(0, message, 10077, "maximum bytes exceeded");
  } else {
    stored_after(1, message, 1, 7);
    applied_after(2, message, 7);
  }
}

static void refused_for_a_time(void) {
  static const int64_t waits_ms[] = {50, 100, 200, 400, 800, 1000, 1000, 1000};
  begin(refuse_eight_times);
  pserver_client *client = connected(0);
  EXPECT_OK(push(client, 30000));
  EXPECT(count_to(NULL) == 9);
  expect_gaps(NULL, 8, waits_ms);
  for (size_t i = 1; i < 9; i++) EXPECT(are_same(to(NULL, 0), to(NULL, i)));
  closed(client);
}

static void refuse_for_ever(const struct published *message) {
  if (!serve(message) && is_record(message)) refused_after(1, message, 10054, "too large");
}

static void refused_for_good(void) {
  begin(refuse_for_ever);
  job.blocks = 10;
  pserver_client *client = connected_singly(ONE_RECORD_BYTES);
  EXPECT_ERROR(TOO_LARGE, push(client, 30000));
  EXPECT(time_ms() < 200);
  /* Updates that were waiting are not sent. */
  EXPECT(count_to(NULL) == 1);
  closed(client);
}

/** Block 0 is stored, block 1 is lost with the connection. */
static void store_the_first(const struct published *message) {
  if (serve(message)) return;
  if (is_to(message, "outcome")) {
    outcome_after(1, message, (struct outcome){41, 0, 1, 1, 7, NULL});
  } else if (shard_in(message) == 0) {
    stored_after(100, message, 1, 7);
  } else if (count_to(NULL) > 2) {
    stored_after(1, message, 1, 9);
    applied_after(2, message, 9);
  }
}

static void reconnected(void) {
  begin(store_the_first);
  job.blocks = 2;
  pserver_client *client = connected_singly(0);
  act_after(500, disconnect_now);
  act_after(700, reconnect_now);
  EXPECT_OK(push(client, 30000));
  EXPECT(count_to(NULL) == 3);
  EXPECT(are_same(to(NULL, 1), to(NULL, 2)));
  EXPECT(to(NULL, 2)->at_ms >= 700 && to(NULL, 2)->at_ms < 750);
  EXPECT(count_to("outcome") == 1);
  EXPECT(to("outcome", 0)->at_ms >= 700 && to("outcome", 0)->at_ms < 850);
  closed(client);
}

/** As the broker above; after the connection is back, there is no host at first, and then one that is busy. */
static void renew_late(const struct published *message) {
  if (!is_to(message, "renew") || time_ms() >= 1000) store_the_first(message);
  else if (time_ms() < 850) nobody_after(1, message);
  else error_after(1, message, "BUSY", 0);
}

static void reconnected_before_a_host_answers(void) {
  begin(renew_late);
  job.blocks = 2;
  pserver_client *client = connected_singly(0);
  act_after(500, disconnect_now);
  act_after(700, reconnect_now);
  EXPECT_OK(push(client, 30000));
  EXPECT(count_to(NULL) == 3 && count_to("renew") > 1);
  EXPECT(are_same(to(NULL, 1), to(NULL, 2)));
  EXPECT(to(NULL, 2)->at_ms > to("renew", count_to("renew") - 1)->at_ms);
  EXPECT(to(NULL, 2)->at_ms >= 1000 && time_ms() < 3000);
  closed(client);
}

/**
 * In session 41 a first call succeeds. In the second one a host answers REJOIN to block 0, the broker
 * refuses block 1 for now and stores block 2, and block 3 gets no answer. In session 42 everything
 * succeeds.
 */
static void end_the_session(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  bool is_over = number_in(message, "session") == 41 && number_in(message, "n") == 2;
  switch (is_over ? block_in(message) : 9) {
    case 0:
      /* Block 1 is due again, but nothing is sent between two sessions. */
      outcome_after(70, NULL, (struct outcome){41, 0, 1, 2, 5, "REJOIN"});
      break;
    case 1:
      refused_after(10, message, 10077, "maximum bytes exceeded");
      break;
    case 2:
      stored_after(20, message, 1, 6);
      break;
    case 9:
      stored_after(1, message, 1, 8);
      applied_after(2, message, 8);
      break;
    default:
      break;
  }
}

static void new_session(void) {
  begin(end_the_session);
  job.shards = 4;
  job.blocks = 4;
  pserver_client *client = connected_singly(0);
  EXPECT_OK(push(client, 30000));
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 30000));
  size_t again = 0;
  for (size_t i = 0; i < count_to(NULL); i++) {
    const struct published *record = to(NULL, i);
    if (number_in(record, "session") == 41) continue;
    again++;
    /* Only records known not to be applied are sent again, with numbers from 1. */
    EXPECT(number_in(record, "session") == 42 && block_in(record) < 2);
    EXPECT(number_in(record, "n") == 1 && number_in(record, "done") == 0);
    EXPECT(memcmp(record->message.data, to(NULL, block_in(record))->message.data, 8) == 0);
  }
  EXPECT(again == 2 && count_to(NULL) == 4 + 4 + 2);
  EXPECT(count_to("join") == 2);
  EXPECT(!are_same(to("join", 0), to("join", 1)));
  closed(client);
}

/** Numbers 2, 3 and then 1 get an outcome, at 1, 2 and 3 s. */
static void settle_late(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  uint64_t n = number_in(message, "n");
  stored_after(1, message, 1, n);
  if (n == 1) applied_after(3000, message, n);
  else if (n <= 3) applied_after(1000 * (int64_t)(n - 1), message, n);
  else if (n > 1024) applied_after(1, message, n);
}

static size_t records_before(int64_t at_ms) {
  size_t count = 0;
  while (count < count_to(NULL) && to(NULL, count)->at_ms < at_ms) count++;
  return count;
}

static void window(void) {
  begin(settle_late);
  job.shards = 1;
  job.blocks = 1100;
  pserver_client *client = connected_singly(0);
  int64_t start_ms = time_ms();
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 8000));
  EXPECT(records_before(start_ms + 900) == 1024);
  /* While 1 is open, closing 2 and 3 does not move the window. */
  EXPECT(records_before(start_ms + 2900) == 1024);
  EXPECT(count_to(NULL) == 1027);
  closed(client);
}

static size_t unacknowledged;
static size_t most_unacknowledged;

static void one_is_acknowledged(void) { unacknowledged--; }

static void count_in_flight(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  unacknowledged++;
  if (unacknowledged > most_unacknowledged) most_unacknowledged = unacknowledged;
  act_after(100, one_is_acknowledged);
  stored_after(100, message, 1, count_to(NULL));
  applied_after(100, message, count_to(NULL));
}

static void bytes_in_flight(void) {
  /* With a window of four records, and with one that is smaller than a record, which is then sent alone. */
  static const size_t windows[] = {4 * ONE_RECORD_BYTES, ONE_RECORD_BYTES / 2};
  for (size_t i = 0; i < 2; i++) {
    begin(count_in_flight);
    job.blocks = 20;
    unacknowledged = 0;
    most_unacknowledged = 0;
    pserver_client *client = connected_singly(windows[i]);
    EXPECT_OK(push(client, 30000));
    EXPECT(most_unacknowledged == (i == 0 ? 4 : 1));
    EXPECT(count_to(NULL) == 20);
    closed(client);
  }
  pserver_options options;
  pserver_options_init(&options);
  EXPECT(options.in_flight_bytes == 16 * 1024 * 1024);
}

/** One at a time; number 1 gets its outcome after 3 is sent, 3 its own after 4 is sent. */
static void settle_out_of_order(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  uint64_t n = number_in(message, "n");
  stored_after(n == 3 ? 500 : 1, message, 1, n);
  if (n == 2) applied_after(0, message, n);
  if (n == 3) applied_after(100, to(NULL, 0), 1);
  if (n == 4) applied_after(100, to(NULL, 2), 3);
  if (n >= 4) applied_after(200, message, n);
}

static void done(void) {
  static const uint64_t expected[] = {0, 0, 0, 2, 4};
  begin(settle_out_of_order);
  job.shards = 1;
  job.blocks = 4;
  pserver_client *client = connected_singly(ONE_RECORD_BYTES);
  EXPECT_OK(push(client, 30000));
  job.blocks = 1;
  EXPECT_ERROR(BAD_LENGTH, push(client, 30000));
  job.blocks = 4;
  push(client, 100);
  for (size_t i = 0; i < 5; i++) EXPECT(number_in(to(NULL, i), "done") == expected[i]);
  closed(client);
}

static void given_up(void) {
  begin(only_serve);
  job.shards = 1;
  pserver_client *client = connected(0);
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 1000));
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 5000));
  /* The first was given up: it is never sent again, and done says so. */
  EXPECT(count_to(NULL) == 4);
  EXPECT(number_in(to(NULL, 0), "n") == 1 && number_in(to(NULL, 0), "done") == 0);
  for (size_t i = 1; i < 4; i++) {
    EXPECT(number_in(to(NULL, i), "n") == 2 && number_in(to(NULL, i), "done") == 1);
  }
  closed(client);
}

static void say_nonsense(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  static const char stored[] = "{\"stream\":\"PS_mnist_0\",\"seq\":7}";
  static const char *const places[] = {
      "_INBOX_mnist.t.life.ack.1.1",   "_INBOX_mnist.t.life.ack.0.2",
      "_INBOX_mnist.t.life.ack.0.0",   "_INBOX_mnist.t.life.ack.18446744073709551615.1",
      "_INBOX_mnist.t.life.ack.0",     "_INBOX_mnist.t.life.ack.0.x",
      "_INBOX_mnist.t.lif",            "_INBOX_mnist.t.life_ack.0.1",
      "x",                             "_INBOX_mnist.t.life"};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    bytes_after(10, places[i], stored, sizeof stored - 1);
  }
}

static void foreign_acks(void) {
  begin(say_nonsense);
  pserver_client *client = connected(0);
  EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 3000));
  /* Still without a PubAck: it is repeated, and nobody is asked for its outcome. */
  EXPECT(count_to(NULL) == 2 && count_to("outcome") == 0);
  closed(client);
}

static void store_elsewhere(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  static const char stored[] = "{\"stream\":\"PS_mnist_1\",\"seq\":7}";
  bytes_after(10, message->reply, stored, sizeof stored - 1);
}

static void ack_of_another_shard(void) {
  begin(store_elsewhere);
  pserver_client *client = connected(0);
  EXPECT_ERROR(BAD_MESSAGE, push(client, 3000));
  closed(client);
}

static void always_full(const struct published *message) {
  if (!serve(message) && is_record(message)) refused_after(1, message, 10077, "bytes exceeded");
}

static void deadlines(void) {
  begin(always_full);
  pserver_client *client = connected(0);
  int64_t start_ms = time_ms();
  EXPECT_ERROR(JOURNAL_FULL, push(client, 3000));
  EXPECT(time_ms() - start_ms >= 3000 && time_ms() - start_ms < 3100);
  disconnect_now();
  start_ms = time_ms();
  EXPECT_ERROR(NO_BROKER, push(client, 3000));
  EXPECT(time_ms() - start_ms >= 3000 && time_ms() - start_ms < 3100);
  closed(client);
}

static void stored_is_enough(void) {
  begin(store);
  pserver_client *client = connected(0);
  EXPECT_OK(send_stored(client, 5000));
  EXPECT(time_ms() < 300);
  /* Its number stays open until its outcome, which the shard is to remember. */
  EXPECT_OK(send_stored(client, 5000));
  EXPECT(number_in(to(NULL, 1), "done") == 0);
  EXPECT(count_to("outcome") == 0);
  closed(client);
}

static void deny(void) {
  broker.error = strdup("Permissions Violation for Publish to \"ps.mnist.log.1.trainer.t.push.w.1\"");
  broker.on_error(CONNECTION, SUBSCRIPTION, NATS_NOT_PERMITTED, broker.connection);
}

static void denied(void) {
  begin(only_serve);
  job.blocks = 2;
  pserver_client *client = connected_singly(0);
  act_after(50, deny);
  EXPECT_ERROR(DENIED, push(client, 3000));
  closed(client);
}

static void take_at_once(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  stored_after(0, message, 1, count_to(NULL));
  applied_after(0, message, count_to(NULL));
}

static pserver_canceller *canceller;

static void cancel_at_first(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  pserver_cancel(canceller);
}

/** The connection is lost and restored while all but the first record wait to be handed to it. */
static void reconnect_and_cancel_at_first(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  disconnect_now();
  reconnect_now();
  pserver_cancel(canceller);
}

static void cancelled_at_first(take_message take) {
  begin(take);
  job.blocks = 40;
  EXPECT_OK(pserver_canceller_new(&canceller));
  pserver_client *client = connected_singly(0);
  pserver_use_canceller(canceller);
  EXPECT_ERROR(ABORTED, push(client, 3000));
  EXPECT(count_to(NULL) == 1);
  const char *text;
  pserver_last_error(&text);
  EXPECT(strstr(text, ": 1 block updates, the first w block 0, were sent") != NULL);
  EXPECT(strstr(pserver_last_error_details(), "\"unsent\":39") != NULL);
  pserver_use_canceller(NULL);
  pserver_canceller_free(canceller);
  closed(client);
}

static void not_handed_over(void) { cancelled_at_first(cancel_at_first); }

static void repeated_too_early(void) { cancelled_at_first(reconnect_and_cancel_at_first); }

/** The connection is lost with the first record, and restored later or never. */
static bool is_made_anew;

static void disconnect_at_first(const struct published *message) {
  if (serve(message) || !is_record(message)) return;
  if (count_to(NULL) == 1) {
    disconnect_now();
    if (is_made_anew) act_after(500, reconnect_now);
    return;
  }
  stored_after(1, message, 1, count_to(NULL));
  applied_after(2, message, count_to(NULL));
}

static void no_connection(void) {
  for (int i = 0; i < 2; i++) {
    is_made_anew = i == 1;
    begin(disconnect_at_first);
    job.blocks = 40;
    pserver_client *client = connected_singly(0);
    if (is_made_anew) {
      EXPECT_OK(push(client, 3000));
      EXPECT(count_to(NULL) == 41);
    } else {
      const char *text;
      EXPECT_ERROR(OUTCOME_UNKNOWN, push(client, 3000));
      pserver_last_error(&text);
      EXPECT(strstr(text, ": 1 block updates, the first w block 0, were sent") != NULL);
      EXPECT(strstr(pserver_last_error_details(), "\"unsent\":39") != NULL);
    }
    closed(client);
  }
}

#define PART_ROWS ((size_t)60000)

/** Bytes of index and elements of `rows` rows, of one element each. */
static size_t part_bytes(size_t rows) { return (rows * 4 + 4 + 7) / 8 * 8 + rows * 4; }

static void parts_by_payload(void) {
  static const size_t whole[] = {PART_ROWS};
  /* 24,575 rows fit into 262,144 bytes minus 65,536. */
  static const size_t cut[] = {24575, 24575, PART_ROWS - 2 * 24575};
  int64_t *rows = malloc(PART_ROWS * sizeof *rows);
  float *values = calloc(PART_ROWS, sizeof *values);
  int64_t column = 1;
  for (size_t i = 0; i < PART_ROWS; i++) rows[i] = (int64_t)i;
  pserver_indices indices[2] = {{rows, PART_ROWS}, {&column, 1}};
  pserver_tensor part = {PSERVER_FLOAT32, 2, {PART_ROWS, 1}, values, PART_ROWS * sizeof *values};
  for (int is_small = 0; is_small < 2; is_small++) {
    begin(take_at_once);
    job.block_rows = 100000;
    if (is_small) broker.max_payload = 262144;
    pserver_client *client = connected(0);
    EXPECT_OK(pserver_push_part(client, "w", &part, indices, 2, 0, 1, 3000));
    EXPECT(count_to(NULL) == (is_small ? 3 : 1));
    for (size_t i = 0; i < count_to(NULL); i++) {
      EXPECT(to(NULL, i)->message.data_bytes == part_bytes(is_small ? cut[i] : whole[i]));
    }
    closed(client);
  }
  free(rows);
  free(values);
}

#define LONG_ROW ((size_t)60000)

/** One of two rows of 60,000 elements, which is too large since the broker accepts less than before. */
static void rows_by_payload(void) {
  int64_t row = 1;
  int64_t *columns = malloc(LONG_ROW * sizeof *columns);
  float *values = malloc(LONG_ROW * sizeof *values);
  for (size_t i = 0; i < LONG_ROW; i++) columns[i] = (int64_t)i;
  for (size_t i = 0; i < LONG_ROW; i++) values[i] = (float)i;
  pserver_indices indices[2] = {{&row, 1}, {columns, LONG_ROW}};
  pserver_tensor part = {PSERVER_FLOAT32, 2, {1, LONG_ROW}, values, LONG_ROW * sizeof *values};
  begin(take_at_once);
  job.block_rows = 2;
  job.row_elements = LONG_ROW;
  broker.max_payload = 262144;
  pserver_client *client = connected(0);
  EXPECT_OK(pserver_push_part(client, "w", &part, indices, 2, 0, 1, 3000));
  /* Half of 196,608 bytes for elements and their numbers: 12,288 of 8 bytes each. */
  EXPECT(count_to(NULL) == 5);
  size_t next = 0;
  for (size_t i = 0; i < 5; i++) {
    const struct ps_message *message = &to(NULL, i)->message;
    size_t elements = i < 4 ? 12288 : LONG_ROW - 4 * 12288;
    size_t index_bytes = (4 + elements * 4 + 7) / 8 * 8;
    EXPECT(message->data_bytes == index_bytes + elements * 4);
    for (size_t j = 0; j < elements; j++, next++) {
      uint32_t column;
      float value;
      memcpy(&column, message->data + 4 + 4 * j, 4);
      memcpy(&value, message->data + index_bytes + 4 * j, 4);
      EXPECT(column == next && value == (float)next);
    }
  }
  closed(client);
  free(columns);
  free(values);
}

const struct scenario outbox_scenarios[] = {
    {"a small record is sent again 2 s after the broker has read it, the very same bytes", repeats},
    {"a record that the broker has not read yet is not sent again", waits_while_unread},
    {"a default timeout is the time without progress, and a given one that of the whole call",
     follows_progress},
    {"a record is never sent again after its PubAck", stops_at_the_ack},
    {"a record that later ones of its shard have overtaken is sent again", overtaken},
    {"so is one that later ones of other shards have overtaken", overtaken_in_other_shards},
    {"a refused record is sent again after 50 ms, doubled up to 1 s", refused_for_a_time},
    {"a record that is refused for good ends the call, and what waits is not sent", refused_for_good},
    {"after a reconnect what has no PubAck is sent at once, what has one is asked for", reconnected},
    {"after a reconnect no record is sent before a host has renewed the lease", reconnected_before_a_host_answers},
    {"in a new session only what was stored nowhere is sent again, numbered anew", new_session},
    {"a shard gets no number above done + 1,024", window},
    {"at most the bytes of the window are in flight, something larger alone", bytes_in_flight},
    {"done is the number up to which all are settled", done},
    {"a record that was given up is never sent again, and done passes it", given_up},
    {"PubAcks for other records, sessions and places are ignored", foreign_acks},
    {"a PubAck of another shard's journal is an error", ack_of_another_shard},
    {"a call ends at its deadline, with what kept it from being done", deadlines},
    {"where stored is enough the PubAck ends the call", stored_is_enough},
    {"a subject that the broker refuses ends the call", denied},
    {"a part of a block is one message, unless the broker takes none as large", parts_by_payload},
    {"a row that the broker takes no longer is cut", rows_by_payload},
    {"what is not handed to the connection before its call ends is not sent", not_handed_over},
    {"what is repeated before it is handed to the connection was not sent twice", repeated_too_early},
    {"what there was no connection for was not sent, and is sent by the next one", no_connection},
    {NULL, NULL}};
