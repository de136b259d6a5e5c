/*
 * What calls tell beside their status: details of errors, versions, the client, parameters and saved models
 * in full; what their options change; names with a NUL; and that a child after a fork leaves its parent's
 * client alone. Prints the details of some errors. Arguments: URL, job.
 */
#include <math.h>
#include <pserver.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

static float six[6] = {1, 2, 3, 4, 5, 6};

static pserver_tensor bare(float *data, uint64_t count) {
  return (pserver_tensor){PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, data,
                          count * sizeof(float)};
}

static void initialize(pserver_client *client) {
  bool selected = false;
  pserver_config config = {.text = "{\"learningRate\": 0.5}"};
  pserver_tensor w = {PSERVER_FLOAT32, 2, {2, 3}, six, sizeof six};
  int64_t one = 1;
  pserver_tensor counts = {PSERVER_INT64, 1, {1}, &one, sizeof one};
  EXPECT_OK(pserver_begin_init(client, true, -1, &selected));
  EXPECT(selected);
  EXPECT_OK(pserver_init_param(client, "w", &w, &config, -1));
  EXPECT_OK(pserver_init_param(client, "with\xc0\x80NUL", &w, &config, -1));
  EXPECT_OK(pserver_init_param(client, "counts", &counts, NULL, -1));
  EXPECT_OK(pserver_finish_init(client, -1));
}

/** Prints the details of the last error, which is this one. */
static void print_details(pserver_status expected, pserver_status status) {
  EXPECT(status == expected);
  printf("%s %s\n", pserver_status_name(status), pserver_last_error_details());
}

/** A read of 16 MiB takes longer than a millisecond on any machine. */
static pserver_status get_too_much(pserver_client *client) {
  static float elements[4 << 20];
  const char *name = "zeros";
  pserver_tensor zeros = {PSERVER_FLOAT32, 1, {4 << 20}, elements, sizeof elements};
  pserver_tensor got = {.data = NULL};
  EXPECT_OK(pserver_create(client, name, &zeros, NULL, -1, NULL));
  return pserver_get(client, &name, &got, 1, PSERVER_AS_IS, 1);
}

static void errors(pserver_client *client) {
  const char *name = "w";
  pserver_tensor value = bare(six, 5);
  pserver_tensor shaped = {PSERVER_FLOAT32, 2, {3, 2}, six, sizeof six};
  int64_t outside[1] = {-3};
  int64_t fine[1] = {0};
  pserver_indices indices[2] = {{outside, 1}, {fine, 1}};
  pserver_tensor got = {0};
  float nan[6] = {0, 0, NAN, 0, 0, 0};
  pserver_config config = {.text = "{\"momentum\": 1}"};
  print_details(PSERVER_ERR_BAD_LENGTH, pserver_set(client, &name, &value, 1, -1));
  print_details(PSERVER_ERR_BAD_SHAPE, pserver_set(client, &name, &shaped, 1, -1));
  print_details(PSERVER_ERR_BAD_INDEX, pserver_pull_part(client, name, indices, 2, &got, -1));
  value = bare(nan, 6);
  print_details(PSERVER_ERR_NON_FINITE, pserver_set(client, &name, &value, 1, -1));
  value.dtype = PSERVER_FLOAT64;
  print_details(PSERVER_ERR_BAD_DTYPE, pserver_set(client, &name, &value, 1, -1));
  name = "quote\" \xc0\x80 \xc3\xa4";
  print_details(PSERVER_ERR_UNKNOWN_PARAMETER, pserver_get(client, &name, &got, 1, PSERVER_AS_IS, -1));
  name = "\xff";
  print_details(PSERVER_ERR_BAD_NAME, pserver_get(client, &name, &got, 1, PSERVER_AS_IS, -1));
  /* As the host reports it. */
  print_details(PSERVER_ERR_BAD_CONFIG, pserver_create(client, "x", &shaped, &config, -1, NULL));
  EXPECT_ERROR(BAD_VALUE, pserver_save(client, "x.npz", 0));
  print_details(PSERVER_ERR_TIMEOUT, get_too_much(client));
}

static void expect_part(pserver_client *client, pserver_encoding encoding, float expected) {
  int64_t row[1] = {1};
  int64_t columns[2] = {2, 0};
  pserver_indices indices[2] = {{row, 1}, {columns, 2}};
  uint64_t version = 0;
  pserver_read_options options;
  pserver_read_options_init(&options);
  options.encoding = encoding;
  options.versions = &version;
  pserver_tensor got = {0};
  EXPECT_OK(pserver_pull_part_with(client, "w", indices, 2, &got, &options, -1));
  EXPECT(got.bytes == 2 * sizeof(float) && ((float *)got.data)[0] == expected);
  EXPECT(version > 1);
  pserver_tensor_release(&got);
}

static void options_of_calls(pserver_client *client) {
  const char *names[2] = {"w", "counts"};
  uint64_t versions[2] = {0};
  pserver_tensor got[2] = {0};
  pserver_read_options reading;
  pserver_update_options writing;
  pserver_read_options_init(NULL);
  pserver_update_options_init(NULL);
  pserver_read_options_init(&reading);
  pserver_update_options_init(&writing);
  reading.versions = versions;
  EXPECT_OK(pserver_get_with(client, names, got, 2, &reading, -1));
  EXPECT(versions[0] == 1 && versions[1] == 1);
  for (int i = 0; i < 2; i++) pserver_tensor_release(&got[i]);
  pserver_tensor value = bare(six, 6);
  writing.stored_is_enough = true;
  EXPECT_OK(pserver_set_with(client, names, &value, 1, &writing, -1));
  writing.encoding = PSERVER_ENCODING_BFLOAT16;
  EXPECT_ERROR(UNSUPPORTED, pserver_set_with(client, names, &value, 1, &writing, -1));
  EXPECT_OK(pserver_push_with(client, "w", &value, 1, 1, &writing, -1));
  EXPECT_OK(pserver_push_with(client, "w", &value, 1, 1, NULL, -1));
  EXPECT_OK(pserver_get_with(client, names, got, 1, &reading, -1));
  EXPECT(versions[0] == 4 && ((float *)got[0].data)[5] == 18);
  pserver_tensor_release(&got[0]);

  /* 1.00390625 is 1 as bfloat16. */
  float given[2] = {1.00390625f, 2};
  int64_t row[1] = {1};
  int64_t columns[2] = {2, 0};
  pserver_indices indices[2] = {{row, 1}, {columns, 2}};
  pserver_tensor part = bare(given, 2);
  EXPECT_OK(pserver_push_part_with(client, "w", &part, indices, 2, 0, 1, NULL, -1));
  expect_part(client, PSERVER_AS_IS, 1.00390625f);
  expect_part(client, PSERVER_ENCODING_BFLOAT16, 1);
  writing.stored_is_enough = false;
  EXPECT_OK(pserver_push_part_with(client, "w", &part, indices, 2, 0, 1, &writing, -1));
  expect_part(client, PSERVER_AS_IS, 1);
  EXPECT_ERROR(UNSUPPORTED, pserver_push_part_with(client, "counts", &part, indices, 1, 0, 1, &writing, -1));
  reading.encoding = (pserver_encoding)7;
  EXPECT_ERROR(BAD_VALUE, pserver_get_with(client, names, got, 1, &reading, -1));
  reading.struct_size = 1;
  EXPECT_ERROR(BAD_VALUE, pserver_get_with(client, names, got, 1, &reading, -1));
  writing.struct_size = 1;
  EXPECT_ERROR(BAD_VALUE, pserver_set_with(client, names, &value, 1, &writing, -1));
}

static void counting(pserver_client *client) {
  pserver_client_stats before = {.struct_size = sizeof before};
  pserver_client_stats after = {.struct_size = sizeof after};
  const char *names[] = {"counts"};
  const char *nothing[] = {"nothing"};
  pserver_tensor got = {0};
  EXPECT_OK(pserver_stats(client, &before));
  EXPECT_OK(pserver_get(client, names, &got, 1, PSERVER_AS_IS, -1));
  EXPECT_OK(pserver_set(client, names, &got, 1, -1));
  pserver_tensor none = {0};
  EXPECT_ERROR(UNKNOWN_PARAMETER, pserver_get(client, nothing, &none, 1, PSERVER_AS_IS, -1));
  EXPECT_OK(pserver_stats(client, &after));
  EXPECT(after.calls == before.calls + 3 && after.reads == before.reads + 1);
  EXPECT(after.failed[PSERVER_ERR_UNKNOWN_PARAMETER] == before.failed[PSERVER_ERR_UNKNOWN_PARAMETER] + 1);
  EXPECT(after.records == before.records + 1 && after.resent == 0 && after.reconnects == 0);
  EXPECT(after.sent_bytes > before.sent_bytes + got.bytes && after.received_bytes > before.received_bytes + got.bytes);
  pserver_tensor_release(&got);
  after.struct_size = 1;
  EXPECT_ERROR(BAD_VALUE, pserver_stats(client, &after));
  EXPECT_ERROR(BAD_VALUE, pserver_stats(client, NULL));
}

static void looking(pserver_client *client) {
  pserver_client_info self = {.struct_size = sizeof self};
  pserver_job_info info;
  pserver_position positions[PSERVER_SHARDS_MAX];
  size_t count = 0;
  EXPECT_OK(pserver_describe(client, &self));
  EXPECT(strcmp(self.trainer, "c") == 0 && self.session > 0 && self.synchronization == PSERVER_ASYNC);
  self.struct_size = 1;
  EXPECT_ERROR(BAD_VALUE, pserver_describe(client, &self));
  EXPECT_OK(pserver_job_positions(client, &info, positions, &count, -1));
  EXPECT(info.state == PSERVER_READY && count == info.shards && positions[0].generation > 0);
  EXPECT_ERROR(BAD_VALUE, pserver_job_positions(client, &info, NULL, &count, -1));

  pserver_parameter_details *list = NULL;
  EXPECT_OK(pserver_list_details(client, &list, &count, -1));
  EXPECT(count == 4 && strcmp(list[2].info.name, "with\xc0\x80NUL") == 0);
  EXPECT(list[1].block_elements == 6 && list[1].shards == info.shards);
  printf("config %s\n", list[1].config);
  pserver_list_details_release(list, count);
  EXPECT_ERROR(BAD_VALUE, pserver_list_details(client, NULL, &count, -1));
}

static void note_progress(void *context, uint64_t done, uint64_t total) {
  if (done <= total) ++*(size_t *)context;
}

static void saving(pserver_client *client) {
  size_t told = 0;
  pserver_saved_model saved = {.struct_size = sizeof saved};
  EXPECT_OK(pserver_save_model(client, "model.npz", note_progress, &told, &saved, -1));
  EXPECT(saved.file[0] == '/' && strcmp(strrchr(saved.file, '/'), "/model.npz") == 0);
  EXPECT(saved.bytes > 0 && saved.host[0] != '\0');
  EXPECT(strcmp(saved.format, "npz") == 0);
  print_details(PSERVER_ERR_BAD_PATH, pserver_save_model(client, "../x", NULL, NULL, NULL, -1));
  saved.struct_size = 1;
  EXPECT_ERROR(BAD_VALUE, pserver_save_model(client, "model.npz", NULL, NULL, &saved, -1));
}

/** A child that exits normally, after it has tried to close and to connect. */
static void forked(pserver_client *client, const pserver_options *options) {
  pserver_client_info before = {.struct_size = sizeof before};
  pserver_client_info after = {.struct_size = sizeof after};
  EXPECT_OK(pserver_describe(client, &before));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    pserver_client *made = NULL;
    bool is_refused = pserver_close(client, -1) == PSERVER_ERR_CLOSED &&
                      pserver_describe(client, &after) == PSERVER_ERR_CLOSED &&
                      pserver_connect(options, &made) == PSERVER_ERR_CLOSED;
    exit(is_refused ? 0 : 1);
  }
  int status = 1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  pserver_tensor value = bare(six, 6);
  EXPECT_OK(pserver_push(client, "w", &value, 1, 0, PSERVER_AS_IS, -1));
  EXPECT_OK(pserver_describe(client, &after));
  EXPECT(after.session == before.session);
}

int main(int argc, char **argv) {
  EXPECT(argc == 3);
  EXPECT(strcmp(pserver_last_error_details(), "{}") == 0);
  pserver_options options;
  pserver_client *client = NULL;
  /* Before anything connects, a wrong call does not keep a child from connecting. */
  EXPECT_ERROR(CLOSED, pserver_close(NULL, -1));
  pserver_options_init(&options);
  options.job = "no job";
  EXPECT_ERROR(BAD_NAME, pserver_connect(&options, &client));
  pid_t parent = fork();
  if (parent != 0) {
    int status = 1;
    EXPECT(waitpid(parent, &status, 0) == parent && status == 0);
    return 0;
  }
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = "c";
  options.connect_timeout_ms = 400000;
  EXPECT_OK(pserver_connect(&options, &client));
  initialize(client);
  errors(client);
  options_of_calls(client);
  looking(client);
  counting(client);
  saving(client);
  forked(client, &options);
  EXPECT_OK(pserver_close(client, -1));
  return 0;
}
