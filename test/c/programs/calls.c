/* Makes every call correctly and with wrong arguments, as the only trainer. Arguments: URL, job. */
#include <math.h>
#include <pserver.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

#define LARGE ((size_t)3 * 1024 * 1024)

static pserver_tensor floats(float *data, uint64_t count) {
  return (pserver_tensor){PSERVER_FLOAT32, 1, {count}, data, count * sizeof(float)};
}

static pserver_tensor bare(float *data, uint64_t count) {
  return (pserver_tensor){PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, data,
                          count * sizeof(float)};
}

static pserver_client *connect_as(const char *url, const char *job, const char *trainer) {
  pserver_options options;
  pserver_client *client = NULL;
  pserver_options_init(&options);
  options.url = url;
  options.job = job;
  options.trainer = trainer;
  EXPECT_OK(pserver_connect(&options, &client));
  return client;
}

static void expect_floats(pserver_client *client, const char *name, const float *expected, size_t n) {
  pserver_tensor got = {0};
  EXPECT_OK(pserver_get(client, &name, &got, 1, PSERVER_AS_IS, -1));
  EXPECT(got.dtype == PSERVER_FLOAT32 && got.bytes == n * sizeof(float));
  for (size_t i = 0; i < n; i++) {
    if (((float *)got.data)[i] != expected[i]) {
      fprintf(stderr, "%s[%zu]: %g\n", name, i, (double)((float *)got.data)[i]);
    }
  }
  EXPECT(memcmp(got.data, expected, got.bytes) == 0);
  pserver_tensor_release(&got);
  EXPECT(got.data == NULL);
}

static void initialize(pserver_client *client) {
  bool selected = false;
  float w[6] = {1, 2, 3, 4, 5, 6};
  float rows[10] = {0};
  int64_t counts[3] = {1, -2, 3};
  pserver_config rate = {.text = "{\"learningRate\": 0.5}"};
  pserver_config clip = {.text = "{\"learningRate\": 1, \"clipNorm\": 1}"};
  pserver_config sparse = {.text = "learningRate: 1\nsparse: true\n"};
  pserver_tensor tensor = {PSERVER_FLOAT32, 2, {2, 3}, w, sizeof w};
  pserver_tensor bad = tensor;
  EXPECT_ERROR(NOT_SELECTED, pserver_init_param(client, "w", &tensor, &rate, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_begin_init(client, true, -1, NULL));
  EXPECT_ERROR(NOT_SELECTED, pserver_abort_init(client, -1));
  EXPECT_OK(pserver_begin_init(client, true, -1, &selected));
  EXPECT(selected);
  EXPECT_OK(pserver_init_param(client, "given up", &tensor, &rate, -1));
  EXPECT_OK(pserver_abort_init(client, -1));
  EXPECT_ERROR(NOT_SELECTED, pserver_init_param(client, "w", &tensor, &rate, -1));
  EXPECT_OK(pserver_begin_init(client, true, -1, &selected));
  EXPECT(selected);
  EXPECT_OK(pserver_init_param(client, "w", &tensor, &rate, -1));
  EXPECT_ERROR(BAD_NAME, pserver_init_param(client, NULL, &tensor, NULL, -1));
  EXPECT_ERROR(BAD_NAME, pserver_init_param(client, "", &tensor, NULL, -1));
  EXPECT_ERROR(BAD_NAME, pserver_init_param(client, "\xff", &tensor, NULL, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_init_param(client, "x", NULL, NULL, -1));
  bad.shape[1] = 4;
  EXPECT_ERROR(BAD_LENGTH, pserver_init_param(client, "x", &bad, NULL, -1));
  bad.shape[1] = 0;
  EXPECT_ERROR(BAD_SHAPE, pserver_init_param(client, "x", &bad, NULL, -1));
  bad.rank = 33;
  EXPECT_ERROR(BAD_SHAPE, pserver_init_param(client, "x", &bad, NULL, -1));
  bad = tensor;
  bad.dtype = (pserver_dtype)11;
  EXPECT_ERROR(BAD_DTYPE, pserver_init_param(client, "x", &bad, NULL, -1));
  bad = tensor;
  bad.data = NULL;
  EXPECT_ERROR(BAD_VALUE, pserver_init_param(client, "x", &bad, NULL, -1));
  pserver_config wrong = {.text = "{\"momentum\": 1}"};
  EXPECT_ERROR(BAD_CONFIG, pserver_init_param(client, "x", &tensor, &wrong, -1));
  tensor = (pserver_tensor){PSERVER_FLOAT32, 2, {5, 2}, rows, sizeof rows};
  EXPECT_OK(pserver_init_param(client, "emb:sparse/0", &tensor, &sparse, -1));
  tensor = (pserver_tensor){PSERVER_INT64, 1, {3}, counts, sizeof counts};
  EXPECT_OK(pserver_init_param(client, "counts", &tensor, NULL, -1));
  float *large = calloc(LARGE, sizeof(float));
  tensor = (pserver_tensor){PSERVER_FLOAT32, 1, {LARGE}, large, LARGE * sizeof(float)};
  EXPECT_OK(pserver_init_param(client, "large", &tensor, &rate, -1));
  EXPECT_OK(pserver_init_param(client, "to clip", &tensor, &clip, -1));
  tensor = (pserver_tensor){PSERVER_FLOAT32, 2, {3, LARGE / 3}, large, LARGE * sizeof(float)};
  EXPECT_OK(pserver_init_param(client, "long rows", &tensor, &rate, -1));
  tensor = (pserver_tensor){PSERVER_FLOAT32, 2, {LARGE / 256, 256}, large, LARGE * sizeof(float)};
  EXPECT_OK(pserver_init_param(client, "many rows", &tensor, &rate, -1));
  free(large);
  EXPECT_OK(pserver_finish_init(client, -1));
  EXPECT_ERROR(NOT_SELECTED, pserver_finish_init(client, -1));
  EXPECT_OK(pserver_begin_init(client, true, -1, &selected));
  EXPECT(!selected);
}

static void update(pserver_client *client) {
  float ones[6] = {1, 1, 1, 1, 1, 1};
  float nan[6] = {1, NAN, 1, 1, 1, 1};
  pserver_gradient grads[2] = {{"w", bare(ones, 6), NULL, 0}, {"missing", bare(ones, 6), NULL, 0}};
  pserver_grad_options options;
  EXPECT_OK(pserver_send_grads(client, grads, 1, NULL, -1));
  expect_floats(client, "w", (float[]){0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f}, 6);
  pserver_grad_options_init(&options);
  options.has_learning_rate = true;
  options.learning_rate = 1;
  options.encoding = PSERVER_ENCODING_BFLOAT16;
  options.stored_is_enough = true;
  EXPECT_OK(pserver_send_grads(client, grads, 1, &options, -1));
  expect_floats(client, "w", (float[]){-0.5f, 0.5f, 1.5f, 2.5f, 3.5f, 4.5f}, 6);
  EXPECT_ERROR(UNKNOWN_PARAMETER, pserver_send_grads(client, grads, 2, NULL, -1));
  EXPECT_ERROR(EMPTY, pserver_send_grads(client, grads, 0, NULL, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_send_grads(client, NULL, 1, NULL, -1));
  options.learning_rate = INFINITY;
  EXPECT_ERROR(BAD_VALUE, pserver_send_grads(client, grads, 1, &options, -1));
  options.struct_size = 3;
  EXPECT_ERROR(BAD_VALUE, pserver_send_grads(client, grads, 1, &options, -1));
  grads[0].values = bare(nan, 6);
  EXPECT_ERROR(NON_FINITE, pserver_send_grads(client, grads, 1, NULL, -1));
  grads[0].values = bare(ones, 5);
  EXPECT_ERROR(BAD_LENGTH, pserver_send_grads(client, grads, 1, NULL, -1));
  grads[0].values = floats(ones, 6);
  EXPECT_ERROR(BAD_SHAPE, pserver_send_grads(client, grads, 1, NULL, -1));
  grads[0].values.dtype = PSERVER_INT32;
  EXPECT_ERROR(BAD_DTYPE, pserver_send_grads(client, grads, 1, NULL, -1));
  grads[0] = (pserver_gradient){"counts", bare(ones, 6), NULL, 0};
  EXPECT_ERROR(UNSUPPORTED, pserver_send_grads(client, grads, 1, NULL, -1));
  grads[0].name = NULL;
  EXPECT_ERROR(BAD_NAME, pserver_send_grads(client, grads, 1, NULL, -1));

  float two[6] = {2, 2, 2, 2, 2, 2};
  pserver_tensor tensor = bare(two, 6);
  const char *name = "w";
  EXPECT_OK(pserver_set(client, &name, &tensor, 1, -1));
  EXPECT_OK(pserver_push(client, "w", &tensor, 0.5, -1, PSERVER_ENCODING_FLOAT16, -1));
  expect_floats(client, "w", (float[]){-1, -1, -1, -1, -1, -1}, 6);
  EXPECT_ERROR(BAD_VALUE, pserver_push(client, "w", &tensor, NAN, 1, PSERVER_AS_IS, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_push(client, "w", &tensor, 1, 1, (pserver_encoding)9, -1));
  EXPECT_ERROR(EMPTY, pserver_set(client, &name, &tensor, 0, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_set(client, NULL, &tensor, 1, -1));
  int64_t more[3] = {10, 10, 10};
  pserver_tensor counts = {PSERVER_INT64, PSERVER_RANK_OF_PARAMETER, {0}, more, sizeof more};
  EXPECT_OK(pserver_push(client, "counts", &counts, 2, 1, PSERVER_AS_IS, -1));
  pserver_tensor got = {0};
  name = "counts";
  EXPECT_OK(pserver_get(client, &name, &got, 1, PSERVER_AS_IS, -1));
  EXPECT(memcmp(got.data, (int64_t[]){12, 6, 16}, sizeof more) == 0);
  pserver_tensor_release(&got);
  EXPECT_ERROR(UNSUPPORTED, pserver_push(client, "counts", &counts, 2, 1, PSERVER_ENCODING_FLOAT16, -1));
}

/** Elements of one and two bytes keep their bits, and are computed with as the protocol says. */
static void short_types(pserver_client *client) {
  uint8_t flags[2] = {1, 0};
  uint16_t halves[2] = {0x3c00, 0x7c01}; /* 1 and a NaN that is not the canonical one */
  uint16_t brains[2] = {0x4380, 0x3f80}; /* 256 and 1 */
  pserver_tensor bools = {PSERVER_BOOL, 1, {2}, flags, sizeof flags};
  pserver_tensor half = {PSERVER_FLOAT16, 1, {2}, halves, sizeof halves};
  pserver_tensor brain = {PSERVER_BFLOAT16, 1, {2}, brains, sizeof brains};
  pserver_config any = {.text = "{\"allowNonFinite\":true}"};
  pserver_tensor got = {0};
  EXPECT_OK(pserver_create(client, "short flags", &bools, NULL, -1, &got));
  EXPECT(got.dtype == PSERVER_BOOL && memcmp(got.data, flags, sizeof flags) == 0);
  pserver_tensor_release(&got);
  EXPECT_ERROR(UNSUPPORTED, pserver_push(client, "short flags", &bools, 1, 1, PSERVER_AS_IS, -1));
  flags[1] = 2;
  const char *name = "short flags";
  EXPECT_ERROR(BAD_VALUE, pserver_set(client, &name, &bools, 1, -1));
  EXPECT_ERROR(NON_FINITE, pserver_create(client, "short half", &half, NULL, -1, &got));
  got = (pserver_tensor){0};
  EXPECT_OK(pserver_create(client, "short half", &half, &any, -1, &got));
  EXPECT(got.dtype == PSERVER_FLOAT16 && memcmp(got.data, halves, sizeof halves) == 0);
  pserver_tensor_release(&got);
  got = (pserver_tensor){0};
  EXPECT_OK(pserver_create(client, "short brain", &brain, NULL, -1, &got));
  pserver_tensor_release(&got);
  /* 257 is rounded to 256, and 2 is exact. */
  uint16_t ones[2] = {0x3f80, 0x3f80};
  brain.data = ones;
  EXPECT_OK(pserver_push(client, "short brain", &brain, 1, 1, PSERVER_AS_IS, -1));
  name = "short brain";
  got = (pserver_tensor){0};
  EXPECT_OK(pserver_get(client, &name, &got, 1, PSERVER_AS_IS, -1));
  EXPECT(memcmp(got.data, (uint16_t[]){0x4380, 0x4000}, sizeof brains) == 0);
  pserver_tensor_release(&got);
}

/** A gradient is clipped by the norm of all its blocks, as encoded. */
static void clipping(pserver_client *client) {
  pserver_grad_options options;
  float *gradient = calloc(LARGE, sizeof(float));
  float *expected = calloc(LARGE, sizeof(float));
  pserver_gradient grad = {"to clip", bare(gradient, LARGE), NULL, 0};
  pserver_grad_options_init(&options);
  options.encoding = PSERVER_ENCODING_BFLOAT16;
  /* These become 3 and 4 in bfloat16, so the norm is 5. */
  gradient[0] = 3.0009765625f;
  gradient[LARGE - 1] = -4.0009765625f;
  EXPECT_OK(pserver_send_grads(client, &grad, 1, &options, -1));
  expected[0] = -3 * 0.2f;
  expected[LARGE - 1] = 4 * 0.2f;
  expect_floats(client, "to clip", expected, LARGE);
  gradient[0] = 3.4e38f;
  EXPECT_ERROR(NON_FINITE, pserver_send_grads(client, &grad, 1, &options, -1));
  const char *message = NULL;
  pserver_last_error(&message);
  EXPECT(strstr(message, "an infinity as bfloat16, as element 0") != NULL);
  free(gradient);
  free(expected);
}

static void sparse_rows(pserver_client *client) {
  float values[8] = {1, 2, 10, 20, 100, 200, 1000, 2000};
  int64_t rows[4] = {3, 1, -2, 0};
  pserver_gradient grad = {"emb:sparse/0",
                           {PSERVER_FLOAT32, 2, {4, 2}, values, sizeof values}, rows, 4};
  EXPECT_OK(pserver_send_grads(client, &grad, 1, NULL, -1));
  float expected[10] = {-1000, -2000, -10, -20, 0, 0, -101, -202, 0, 0};
  expect_floats(client, "emb:sparse/0", expected, 10);
  rows[0] = 5;
  EXPECT_ERROR(BAD_INDEX, pserver_send_grads(client, &grad, 1, NULL, -1));
  grad.row_count = 0;
  grad.values.shape[0] = 0;
  grad.values.bytes = 0;
  EXPECT_OK(pserver_send_grads(client, &grad, 1, NULL, -1));
  grad = (pserver_gradient){"w", {PSERVER_FLOAT32, 2, {1, 3}, values, 12}, rows + 1, 1};
  EXPECT_ERROR(UNSUPPORTED, pserver_send_grads(client, &grad, 1, NULL, -1));
}

/** Parts of a parameter are those of the same array here; `columns` elements a row. */
static void parts_of(pserver_client *client, const char *name, size_t rows, size_t columns) {
  float *mine = calloc(rows * columns, sizeof(float));
  for (size_t i = 0; i < rows * columns; i++) mine[i] = (float)(i % 1000);
  pserver_tensor whole = bare(mine, rows * columns);
  EXPECT_OK(pserver_set(client, &name, &whole, 1, -1));
  int64_t row_list[4] = {(int64_t)rows - 1, 0, -1, 1};
  int64_t column_list[5] = {(int64_t)columns / 2, 7, 7, -1, 0};
  pserver_indices indices[2] = {{row_list, 4}, {column_list, 5}};
  float part_values[20];
  for (int i = 0; i < 20; i++) part_values[i] = (float)(-i - 1);
  pserver_tensor part = {PSERVER_FLOAT32, 2, {4, 5}, part_values, sizeof part_values};
  EXPECT_OK(pserver_push_part(client, name, &part, indices, 2, 0, 1, -1));
  float expected[20];
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < 4; i++) {
      for (int j = 0; j < 5; j++) {
        size_t row = row_list[i] < 0 ? rows - 1 : (size_t)row_list[i];
        size_t column = column_list[j] < 0 ? columns - 1 : (size_t)column_list[j];
        if (pass == 0) mine[row * columns + column] = part_values[i * 5 + j];
        else expected[i * 5 + j] = mine[row * columns + column];
      }
    }
  }
  pserver_tensor got = {0};
  EXPECT_OK(pserver_pull_part(client, name, indices, 2, &got, -1));
  EXPECT(got.rank == 2 && got.shape[0] == 4 && got.shape[1] == 5);
  EXPECT(memcmp(got.data, expected, sizeof expected) == 0);
  pserver_tensor_release(&got);
  expect_floats(client, name, mine, rows * columns);

  indices[1].count = 0;
  EXPECT_OK(pserver_pull_part(client, name, indices, 2, &got, -1));
  EXPECT(got.bytes == 0 && got.shape[1] == 0);
  pserver_tensor_release(&got);
  indices[1].count = 5;
  column_list[0] = (int64_t)columns;
  EXPECT_ERROR(BAD_INDEX, pserver_pull_part(client, name, indices, 2, &got, -1));
  EXPECT_ERROR(BAD_INDEX, pserver_pull_part(client, name, indices, 1, &got, -1));
  EXPECT_ERROR(BAD_INDEX, pserver_pull_part(client, name, NULL, 2, &got, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_pull_part(client, name, indices, 2, NULL, -1));
  free(mine);
}

/** All columns, in another order, one of them twice: the last of these counts. */
static void columns_in_another_order(pserver_client *client) {
  const char *name = "permuted";
  float mine[6] = {0};
  pserver_tensor whole = {PSERVER_FLOAT32, 2, {2, 3}, mine, sizeof mine};
  EXPECT_OK(pserver_create(client, name, &whole, NULL, -1, NULL));
  int64_t rows[2] = {1, 0};
  int64_t columns[4] = {2, 0, 0, 1};
  pserver_indices indices[2] = {{rows, 2}, {columns, 4}};
  float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float expected[6] = {7, 8, 5, 3, 4, 1};
  pserver_tensor part = {PSERVER_FLOAT32, 2, {2, 4}, values, sizeof values};
  EXPECT_OK(pserver_push_part(client, name, &part, indices, 2, 0, 1, -1));
  expect_floats(client, name, expected, 6);
  /* The same of one row: not all of the block. */
  indices[0].count = 1;
  part.shape[0] = 1;
  part.bytes = 16;
  EXPECT_OK(pserver_push_part(client, name, &part, indices, 2, 1, 1, -1));
  float doubled[6] = {7, 8, 5, 6, 8, 2};
  expect_floats(client, name, doubled, 6);
}

static void reading(pserver_client *client) {
  const char *names[3] = {"w", "counts", "w"};
  pserver_tensor got[3] = {0};
  float mine[6];
  EXPECT_OK(pserver_get(client, names, got, 3, PSERVER_AS_IS, -1));
  EXPECT(got[0].rank == 2 && got[0].shape[1] == 3 && got[1].dtype == PSERVER_INT64);
  EXPECT(memcmp(got[0].data, got[2].data, got[0].bytes) == 0);
  for (int i = 0; i < 3; i++) pserver_tensor_release(&got[i]);
  got[0] = bare(mine, 6);
  EXPECT_OK(pserver_get(client, names, got, 1, PSERVER_ENCODING_BFLOAT16, -1));
  EXPECT(got[0].data == mine && mine[0] == -1);
  got[0].bytes = 8;
  EXPECT_ERROR(BAD_LENGTH, pserver_get(client, names, got, 1, PSERVER_AS_IS, -1));
  got[0] = bare(mine, 6);
  got[0].dtype = PSERVER_FLOAT64;
  EXPECT_ERROR(BAD_DTYPE, pserver_get(client, names, got, 1, PSERVER_AS_IS, -1));
  EXPECT_ERROR(EMPTY, pserver_get(client, names, got, 0, PSERVER_AS_IS, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_get(client, NULL, got, 1, PSERVER_AS_IS, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_get(client, names, NULL, 1, PSERVER_AS_IS, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_get(client, names, got, 1, PSERVER_AS_IS, 0));
  names[0] = "nothing";
  got[0].data = NULL;
  EXPECT_ERROR(UNKNOWN_PARAMETER, pserver_get(client, names, got, 1, PSERVER_AS_IS, -1));
  names[0] = NULL;
  EXPECT_ERROR(BAD_NAME, pserver_get(client, names, got, 1, PSERVER_AS_IS, -1));
}

static void creation(pserver_client *client) {
  float first[2] = {1, 2};
  float second[2] = {3, 4};
  pserver_tensor value = floats(first, 2);
  pserver_tensor settled = {0};
  EXPECT_OK(pserver_create(client, "created", &value, NULL, -1, &settled));
  EXPECT(memcmp(settled.data, first, sizeof first) == 0);
  pserver_tensor_release(&settled);
  value = floats(second, 2);
  EXPECT_OK(pserver_create(client, "created", &value, NULL, -1, &settled));
  EXPECT(memcmp(settled.data, first, sizeof first) == 0);
  pserver_tensor_release(&settled);
  EXPECT_OK(pserver_create(client, "created", &value, NULL, -1, NULL));
  value = floats(second, 1);
  value.bytes = 4;
  EXPECT_ERROR(BAD_SHAPE, pserver_create(client, "created", &value, NULL, -1, NULL));
  EXPECT_ERROR(BAD_VALUE, pserver_create(client, "created", NULL, NULL, -1, NULL));
  second[0] = NAN;
  value = floats(second, 2);
  EXPECT_ERROR(NON_FINITE, pserver_create(client, "not finite", &value, NULL, -1, NULL));
}

static void looking(pserver_client *client) {
  pserver_job_info info;
  pserver_parameter_info *list = NULL;
  size_t count = 0;
  EXPECT_OK(pserver_job_status(client, &info, -1));
  EXPECT(info.state == PSERVER_READY && strcmp(info.by, "calls") == 0 && info.session > 0);
  EXPECT_OK(pserver_list(client, &list, &count, -1));
  EXPECT(count >= 7 && strcmp(list[0].name, "counts") == 0 && list[0].ready);
  pserver_list_release(list, count);
  EXPECT_ERROR(BAD_VALUE, pserver_job_status(client, NULL, -1));
  EXPECT_ERROR(BAD_VALUE, pserver_list(client, NULL, &count, -1));
  EXPECT_OK(pserver_save(client, "model.safetensors", -1));
  EXPECT_ERROR(BAD_PATH, pserver_save(client, "../model.safetensors", -1));
  EXPECT_ERROR(BAD_PATH, pserver_save(client, NULL, -1));
}

static void no_client(pserver_client *client) {
  float one = 1;
  const char *name = "w";
  bool selected;
  pserver_tensor tensor = floats(&one, 1);
  pserver_gradient grad = {name, tensor, NULL, 0};
  pserver_indices indices = {0};
  pserver_job_info info;
  pserver_parameter_info *list;
  size_t count;
  EXPECT_ERROR(CLOSED, pserver_begin_init(client, true, -1, &selected));
  EXPECT_ERROR(CLOSED, pserver_init_param(client, name, &tensor, NULL, -1));
  EXPECT_ERROR(CLOSED, pserver_finish_init(client, -1));
  EXPECT_ERROR(CLOSED, pserver_create(client, name, &tensor, NULL, -1, NULL));
  EXPECT_ERROR(CLOSED, pserver_send_grads(client, &grad, 1, NULL, -1));
  EXPECT_ERROR(CLOSED, pserver_set(client, &name, &tensor, 1, -1));
  EXPECT_ERROR(CLOSED, pserver_push(client, name, &tensor, 1, 1, PSERVER_AS_IS, -1));
  EXPECT_ERROR(CLOSED, pserver_get(client, &name, &tensor, 1, PSERVER_AS_IS, -1));
  EXPECT_ERROR(CLOSED, pserver_pull_part(client, name, &indices, 1, &tensor, -1));
  EXPECT_ERROR(CLOSED, pserver_push_part(client, name, &tensor, &indices, 1, 1, 1, -1));
  EXPECT_ERROR(CLOSED, pserver_job_status(client, &info, -1));
  EXPECT_ERROR(CLOSED, pserver_list(client, &list, &count, -1));
  EXPECT_ERROR(CLOSED, pserver_save(client, "x", -1));
  EXPECT_ERROR(CLOSED, pserver_close(client, -1));
}

static void wrong_options(const char *url) {
  pserver_options options;
  pserver_client *client = NULL;
  pserver_options_init(NULL);
  pserver_grad_options_init(NULL);
  pserver_tensor_release(NULL);
  pserver_list_release(NULL, 3);
  pserver_options_init(&options);
  options.url = url;
  EXPECT_ERROR(BAD_VALUE, pserver_connect(NULL, &client));
  setenv("PSERVER_JOB", "with space", 1);
  EXPECT_ERROR(BAD_NAME, pserver_connect(&options, &client));
  setenv("PSERVER_JOB", "absent", 1);
  setenv("PSERVER_TRAINER", "an id of more than sixty-four bytes, which is more than a subject may have", 1);
  EXPECT_ERROR(BAD_NAME, pserver_connect(&options, &client));
  unsetenv("PSERVER_JOB");
  unsetenv("PSERVER_TRAINER");
  options.job = "with space";
  EXPECT_ERROR(BAD_NAME, pserver_connect(&options, &client));
  options.job = "absent";
  EXPECT_ERROR(BAD_VALUE, pserver_connect(&options, NULL));
  /* On a slow machine a longer deadline is needed to find that nobody answers. */
  pserver_status answer = PSERVER_OK;
  for (options.connect_timeout_ms = 300; options.connect_timeout_ms < 300000; options.connect_timeout_ms *= 4) {
    answer = pserver_connect(&options, &client);
    if (answer == PSERVER_ERR_NO_HOST) break;
  }
  EXPECT_ERROR(NO_HOST, answer);
  options.connect_timeout_ms = 300;
  options.url = "nats://127.0.0.1:1";
  EXPECT_ERROR(NO_BROKER, pserver_connect(&options, &client));
  options.creds_file = "no such file";
  EXPECT_ERROR(IO, pserver_connect(&options, &client));
  options.creds_file = NULL;
  options.trainer = "";
  EXPECT_ERROR(BAD_NAME, pserver_connect(&options, &client));
  options.struct_size = 1;
  EXPECT_ERROR(BAD_VALUE, pserver_connect(&options, &client));
}

/** In a child after a fork calls fail, and its end does not affect the parent's client. */
static void forked(pserver_client *client) {
  pid_t child = fork();
  if (child == 0) {
    pserver_job_info info;
    bool is_refused = pserver_job_status(client, &info, -1) == PSERVER_ERR_CLOSED &&
                      pserver_close(client, -1) == PSERVER_ERR_CLOSED;
    _exit(is_refused ? 0 : 1);
  }
  int status = 1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv) {
  EXPECT(argc == 3);
  EXPECT(pserver_last_error(NULL) == PSERVER_OK);
  EXPECT(strcmp(pserver_version(), PSERVER_VERSION) == 0);
  EXPECT(strcmp(pserver_status_name(PSERVER_ERR_BAD_NAME), "BAD_NAME") == 0);
  EXPECT(strcmp(pserver_status_name((pserver_status)1000), "UNKNOWN") == 0);
  EXPECT(pserver_is_retryable(PSERVER_ERR_BUSY) && !pserver_is_retryable(PSERVER_ERR_BAD_NAME));
  wrong_options(argv[1]);
  no_client(NULL);
  no_client((pserver_client *)(uintptr_t)12345);
  pserver_client *client = connect_as(argv[1], argv[2], "calls");
  initialize(client);
  update(client);
  reading(client);
  clipping(client);
  short_types(client);
  sparse_rows(client);
  parts_of(client, "long rows", 3, LARGE / 3);
  parts_of(client, "many rows", LARGE / 256, 256);
  columns_in_another_order(client);
  creation(client);
  looking(client);
  forked(client);
  EXPECT_OK(pserver_close(client, -1));
  no_client(client);
  return 0;
}
