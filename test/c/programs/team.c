/*
 * One of three trainers of a job, one in each language: what it does is told in
 * test/e2e/training/team.ts, which does the same. After its rounds it says "trained" and waits for a
 * line, then writes the bytes it reads to a file. Arguments: URL, job, number, rounds, file.
 */
#include <pserver.h>
#include <string.h>

#include "expect.h"

#define RETRY_MS 60000
#define COUNT(array) (sizeof array / sizeof array[0])

enum {
  W_ROWS = 300,
  W_COLUMNS = 1031,
  W = W_ROWS * W_COLUMNS,
  ADAM = 4099,
  EMB_ROWS = 500,
  EMB_WIDTH = 24,
  EMB = EMB_ROWS * EMB_WIDTH,
  NAMED = 20,
  SUM_ROWS = 40,
  SUM_COLUMNS = 30,
  SUM = SUM_ROWS * SUM_COLUMNS,
  PART_ROWS = 8,
  PART_COLUMNS = 6
};

static float values[W];
static float rough_values[ADAM];
static float row_values[NAMED * EMB_WIDTH];
static float part_values[PART_ROWS * PART_COLUMNS];
static int64_t ids[NAMED];
static int64_t part_rows[PART_ROWS];
static int64_t part_columns[PART_COLUMNS];

static int wave(size_t i, int round, int number) {
  return (int)((i * 7 + (size_t)round * 13 + (size_t)number * 101) % 97) - 48;
}

static void fill(float *to, size_t count, int round, int number, float divisor) {
  for (size_t i = 0; i < count; i++) to[i] = (float)wave(i, round, number) / divisor;
}

static pserver_tensor floats(float *data, size_t rows, size_t columns) {
  return (pserver_tensor){PSERVER_FLOAT32, 2, {rows, columns}, data, rows * columns * sizeof(float)};
}

static pserver_tensor list_of(pserver_dtype dtype, void *data, size_t count, size_t bytes) {
  return (pserver_tensor){dtype, 1, {count}, data, bytes};
}

static void create(pserver_client *client, const char *name, const pserver_tensor *zeros,
                   const char *config) {
  pserver_config text = {.text = config};
  EXPECT_OK(pserver_init_param(client, name, zeros, config == NULL ? NULL : &text, RETRY_MS));
}

static void initialize(pserver_client *client) {
  bool selected = false;
  EXPECT_OK(pserver_begin_init(client, true, RETRY_MS, &selected));
  if (!selected) return;
  int64_t counts[3] = {0};
  pserver_tensor w = floats(values, W_ROWS, W_COLUMNS);
  pserver_tensor adam = list_of(PSERVER_FLOAT32, values, ADAM, ADAM * sizeof(float));
  pserver_tensor emb = floats(values, EMB_ROWS, EMB_WIDTH);
  pserver_tensor sum = floats(values, SUM_ROWS, SUM_COLUMNS);
  pserver_tensor zeros = list_of(PSERVER_INT64, counts, 3, sizeof counts);
  create(client, "w", &w, "{\"learningRate\": 0.5}");
  create(client, "adam", &adam, "{\"optimizer\": \"adam\", \"learningRate\": 0.01}");
  create(client, "emb", &emb, "{\"learningRate\": 0.5, \"sparse\": true}");
  create(client, "sum", &sum, NULL);
  create(client, "blend", &sum, NULL);
  create(client, "counts", &zeros, NULL);
  EXPECT_OK(pserver_finish_init(client, RETRY_MS));
}

static void send_grads(pserver_client *client, int round, int number, pserver_encoding encoding) {
  fill(values, W, round, number, 64);
  fill(rough_values, ADAM, round, number, 97);
  fill(row_values, NAMED * EMB_WIDTH, round, number, 64);
  for (int j = 0; j < NAMED; j++) {
    ids[j] = (number * 17 + round * 5 + j % 15 * 3) % EMB_ROWS - (j % 2 == 1 ? EMB_ROWS : 0);
  }
  pserver_gradient grads[] = {
      {"w", floats(values, W_ROWS, W_COLUMNS), NULL, 0},
      {"adam", list_of(PSERVER_FLOAT32, rough_values, ADAM, sizeof rough_values), NULL, 0},
      {"emb", floats(row_values, NAMED, EMB_WIDTH), ids, NAMED},
  };
  pserver_grad_options options;
  size_t late = 1;
  pserver_grad_options_init(&options);
  options.encoding = encoding;
  options.late_blocks = &late;
  EXPECT_OK(pserver_send_grads(client, grads, COUNT(grads), &options, RETRY_MS));
  EXPECT(late == 0);
}

static const pserver_indices *part_of(int round) {
  static pserver_indices part[2];
  for (int j = 0; j < PART_ROWS; j++) part_rows[j] = (round + 4 * j) % SUM_ROWS;
  for (int j = 0; j < PART_COLUMNS; j++) {
    part_columns[j] = 5 * j - (j % 2 == 1 ? SUM_COLUMNS : 0);
  }
  part[0] = (pserver_indices){part_rows, PART_ROWS};
  part[1] = (pserver_indices){part_columns, PART_COLUMNS};
  return part;
}

/** Adds to all of a parameter, and then to a part of it. */
static void mix(pserver_client *client, const char *name, int round, int number, float divisor,
                const double factors[3], pserver_encoding encoding) {
  pserver_update_options options;
  pserver_update_options_init(&options);
  options.encoding = encoding;
  fill(values, SUM, round, number, divisor);
  fill(part_values, COUNT(part_values), round, number, divisor);
  pserver_tensor whole = floats(values, SUM_ROWS, SUM_COLUMNS);
  pserver_tensor part = floats(part_values, PART_ROWS, PART_COLUMNS);
  EXPECT_OK(pserver_push_with(client, name, &whole, factors[0], factors[1], &options, RETRY_MS));
  EXPECT_OK(pserver_push_part_with(client, name, &part, part_of(round), 2, factors[2], 1, &options,
                                   RETRY_MS));
}

static void train(pserver_client *client, int number, int rounds) {
  static const pserver_encoding encodings[] = {PSERVER_AS_IS, PSERVER_ENCODING_BFLOAT16, PSERVER_ENCODING_FLOAT16};
  static const double add[] = {1, 1, 1};
  static const double blend[] = {0.75, 0.5, 0.5};
  for (int round = 0; round < rounds; round++) {
    pserver_encoding encoding = encodings[round % 3];
    int64_t one[3] = {0};
    one[number - 1] = 1;
    pserver_tensor counted = list_of(PSERVER_INT64, one, 3, sizeof one);
    send_grads(client, round, number, encoding);
    mix(client, "sum", round, number, 64, add, encoding);
    mix(client, "blend", round, number, 97, blend, encoding);
    EXPECT_OK(pserver_push(client, "counts", &counted, 1, 1, PSERVER_AS_IS, RETRY_MS));
  }
}

static void append(FILE *file, pserver_tensor *tensor) {
  EXPECT(fwrite(tensor->data, 1, tensor->bytes, file) == tensor->bytes);
  pserver_tensor_release(tensor);
}

static void write_read(pserver_client *client, const char *path) {
  static const char *const names[] = {"w", "adam", "emb", "sum", "blend", "counts"};
  static const char *const blend[] = {"blend"};
  static const pserver_encoding encodings[] = {PSERVER_ENCODING_BFLOAT16, PSERVER_ENCODING_FLOAT16};
  pserver_tensor tensors[COUNT(names)] = {0};
  pserver_tensor part = {0};
  FILE *file = fopen(path, "wb");
  EXPECT(file != NULL);
  EXPECT_OK(pserver_get(client, names, tensors, COUNT(names), PSERVER_AS_IS, RETRY_MS));
  for (size_t i = 0; i < COUNT(names); i++) append(file, &tensors[i]);
  for (size_t i = 0; i < COUNT(encodings); i++) {
    pserver_tensor rounded = {0};
    EXPECT_OK(pserver_get(client, blend, &rounded, 1, encodings[i], RETRY_MS));
    append(file, &rounded);
  }
  EXPECT_OK(pserver_pull_part(client, "blend", part_of(0), 2, &part, RETRY_MS));
  append(file, &part);
  EXPECT(fclose(file) == 0);
}

int main(int argc, char **argv) {
  EXPECT(argc == 6);
  char line[16];
  char trainer[16];
  pserver_options options;
  pserver_client *client = NULL;
  int number = atoi(argv[3]);
  EXPECT(number >= 1 && number <= 3);
  snprintf(trainer, sizeof trainer, "c-%d", number);
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = trainer;
  EXPECT_OK(pserver_connect(&options, &client));
  initialize(client);
  train(client, number, atoi(argv[4]));
  EXPECT_OK(pserver_exit_steps(client, RETRY_MS));
  printf("trained\n");
  fflush(stdout);
  EXPECT(fgets(line, sizeof line, stdin) != NULL);
  write_read(client, argv[5]);
  EXPECT_OK(pserver_close(client, -1));
  return 0;
}
