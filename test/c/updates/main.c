/*
 * Makes the calls that standard input describes, with the real library, and prints the records that it
 * publishes: "record <subject> <bytes>", and "done <status>" after each call. The broker stores every record
 * at once; no outcome ever comes, and no call waits for one. Bytes and texts are hexadecimal digits.
 *
 *   job <largest message of the broker>
 *   reply <verb> <message>                    what every request of the lifecycle with this verb gets
 *   connect
 *   parameter <MessagePack>                   as in a reply to `status`
 *   seen <name> <block> <version>             the version of a block that was read last
 *   grads <learning rate or -> <encoding or -> <kept or -> <count>   and as many lines <values> <rows or ->
 *   set <count>                               and as many lines <values>
 *   push <alpha> <beta> <encoding or ->       and a line <values>
 *   part <alpha> <beta> <encoding or -> <rank> <indices> ...    and a line <values>
 *   create <rank> <size> ...                  and a line <values>
 *   contribute <fragment> <base> <steps> <tokens> <ms of a step or -> <form> <encoding or -> <exact> <count>
 *                                             and as many lines <values>; <exact> has 1 or 0 for each
 *
 * <values> is <name> <type> <elements or ->, lists of rows and indices have commas.
 */
#include <string.h>

#include "calls/calls.h"
#include "errors/errors.h"
#include "scripted.h"
#include "wire/wire.h"

#define WORDS_MAX 64
#define REPLIES_MAX 8

/** A line of the input, as words. */
struct line {
  char *text;
  size_t room;
  char *words[WORDS_MAX];
  size_t count;
};

struct reply {
  char verb[16];
  uint8_t *bytes;
  size_t count;
};

static struct reply replies[REPLIES_MAX];
static size_t reply_count;
static uint64_t stored;
static pserver_client *client;

static bool read_line(struct line *line) {
  char *rest = NULL;
  if (getline(&line->text, &line->room, stdin) < 0) return false;
  line->count = 0;
  for (char *word = strtok_r(line->text, " \n", &rest); word != NULL;
       word = strtok_r(NULL, " \n", &rest)) {
    EXPECT(line->count < WORDS_MAX);
    line->words[line->count++] = word;
  }
  return true;
}

/** Bytes of hexadecimal digits and a zero behind them, to be freed. */
static uint8_t *from_hex(const char *hex, size_t *count) {
  static const char digits[] = "0123456789abcdef";
  *count = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;
  uint8_t *bytes = malloc(*count + 1);
  EXPECT(bytes != NULL);
  for (size_t i = 0; i < *count; i++) {
    const char *high = strchr(digits, hex[2 * i]);
    const char *low = strchr(digits, hex[2 * i + 1]);
    EXPECT(high != NULL && low != NULL);
    bytes[i] = (uint8_t)((high - digits) * 16 + (low - digits));
  }
  bytes[*count] = 0;
  return bytes;
}

static pserver_encoding encoding_of(const char *name) {
  for (int encoding = PSERVER_ENCODING_BFLOAT16; encoding <= PSERVER_ENCODING_E3M0; encoding++) {
    if (strcmp(name, ps_encoding_name((pserver_encoding)encoding)) == 0) return (pserver_encoding)encoding;
  }
  return PSERVER_AS_IS;
}

/** Numbers with commas between them, to be freed; NULL for "-". */
static int64_t *read_list(const char *text, size_t *count) {
  *count = 0;
  if (strcmp(text, "-") == 0) return NULL;
  int64_t *numbers = malloc((strlen(text) + 1) * sizeof *numbers);
  EXPECT(numbers != NULL);
  for (char *end = NULL;; text = end + 1) {
    numbers[(*count)++] = strtoll(text, &end, 10);
    if (*end != ',') return numbers;
  }
}

static void take(const struct published *message) {
  if (is_record(message)) {
    printf("record %s ", message->subject);
    for (size_t i = 0; i < message->count; i++) printf("%02x", message->bytes[i]);
    printf("\n");
    stored_after(1, message, 1, ++stored);
    return;
  }
  for (size_t i = 0; i < reply_count; i++) {
    if (!is_to(message, replies[i].verb)) continue;
    bytes_after(1, message->reply, replies[i].bytes, replies[i].count);
    return;
  }
  if (is_to(message, "step")) step_after(1, message, 0);
  else serve(message);
}

static void add_reply(const struct line *line) {
  struct reply *reply = replies;
  while (reply < replies + reply_count && strcmp(reply->verb, line->words[1]) != 0) reply++;
  EXPECT(reply < replies + REPLIES_MAX);
  if (reply == replies + reply_count) reply_count++;
  else free(reply->bytes);
  snprintf(reply->verb, sizeof reply->verb, "%s", line->words[1]);
  reply->bytes = from_hex(line->words[2], &reply->count);
}

static void add_parameter(const struct line *line) {
  struct ps_value value;
  struct ps_parameter *parameter;
  size_t count;
  uint8_t *bytes = from_hex(line->words[1], &count);
  EXPECT(ps_read_checked(bytes, count, &value));
  EXPECT_OK(ps_read_parameter(&value, &parameter));
  ps_parameters_remember(&broker.client->parameters, parameter);
  free(bytes);
}

static void note_seen(const struct line *line) {
  size_t count;
  const char *missing;
  struct ps_parameter *found = NULL;
  char *name = (char *)from_hex(line->words[1], &count);
  const char *names[] = {name};
  EXPECT(ps_parameters_take(&broker.client->parameters, names, 1, &found, &missing, 1) == 0);
  found->seen[strtoul(line->words[2], NULL, 10)] = strtoull(line->words[3], NULL, 10);
  ps_parameter_unref(found);
  free(name);
}

/** Values of a line: a name and a tensor, whose memory is to be freed. */
static char *read_values(const struct line *line, pserver_tensor *tensor) {
  size_t count;
  char *name = (char *)from_hex(line->words[0], &count);
  *tensor = (pserver_tensor){.rank = PSERVER_RANK_OF_PARAMETER};
  EXPECT(ps_dtype_from_name(line->words[1], strlen(line->words[1]), &tensor->dtype));
  tensor->data = from_hex(line->words[2], &count);
  tensor->bytes = count;
  return name;
}

static pserver_status send_grads(const struct line *head, struct line *line) {
  size_t count = strtoull(head->words[4], NULL, 10);
  pserver_gradient *grads = calloc(count, sizeof *grads);
  EXPECT(grads != NULL);
  for (size_t i = 0; i < count; i++) {
    EXPECT(read_line(line));
    grads[i].name = read_values(line, &grads[i].values);
    grads[i].rows = read_list(line->words[3], &grads[i].row_count);
  }
  pserver_grad_options options;
  pserver_grad_options_init(&options);
  options.has_learning_rate = strcmp(head->words[1], "-") != 0;
  if (options.has_learning_rate) options.learning_rate = strtod(head->words[1], NULL);
  options.encoding = encoding_of(head->words[2]);
  options.no_error_feedback = strcmp(head->words[3], "-") == 0;
  options.stored_is_enough = true;
  options.end_step = false;
  pserver_status status = pserver_send_grads(client, grads, count, &options, 60000);
  for (size_t i = 0; i < count; i++) {
    free((void *)grads[i].name);
    free((void *)grads[i].rows);
    free(grads[i].values.data);
  }
  free(grads);
  return status;
}

static pserver_update_options stored_in(const char *encoding) {
  pserver_update_options options;
  pserver_update_options_init(&options);
  options.encoding = encoding_of(encoding);
  options.stored_is_enough = true;
  return options;
}

static pserver_status set(const struct line *head, struct line *line) {
  size_t count = strtoull(head->words[1], NULL, 10);
  const char **names = calloc(count, sizeof *names);
  pserver_tensor *tensors = calloc(count, sizeof *tensors);
  EXPECT(names != NULL && tensors != NULL);
  for (size_t i = 0; i < count; i++) {
    EXPECT(read_line(line));
    names[i] = read_values(line, &tensors[i]);
  }
  pserver_update_options options = stored_in("-");
  pserver_status status = pserver_set_with(client, names, tensors, count, &options, 60000);
  for (size_t i = 0; i < count; i++) {
    free((void *)names[i]);
    free(tensors[i].data);
  }
  free(names);
  free(tensors);
  return status;
}

/** A push of a whole parameter, or of a part. */
static pserver_status push_one(const struct line *head, struct line *line) {
  EXPECT(read_line(line));
  pserver_tensor tensor;
  char *name = read_values(line, &tensor);
  double alpha = strtod(head->words[1], NULL);
  double beta = strtod(head->words[2], NULL);
  pserver_update_options options = stored_in(head->words[3]);
  pserver_status status;
  if (strcmp(head->words[0], "push") == 0) {
    status = pserver_push_with(client, name, &tensor, alpha, beta, &options, 60000);
  } else {
    pserver_indices indices[PSERVER_RANK_MAX] = {{0}};
    size_t rank = strtoull(head->words[4], NULL, 10);
    for (size_t i = 0; i < rank; i++) {
      indices[i].values = read_list(head->words[5 + i], &indices[i].count);
    }
    status = pserver_push_part_with(client, name, &tensor, indices, rank, alpha, beta, &options, 60000);
    for (size_t i = 0; i < rank; i++) free((void *)indices[i].values);
  }
  free(name);
  free(tensor.data);
  return status;
}

static pserver_status create(const struct line *head, struct line *line) {
  EXPECT(read_line(line));
  pserver_tensor tensor;
  char *name = read_values(line, &tensor);
  tensor.rank = (int32_t)strtol(head->words[1], NULL, 10);
  for (int32_t i = 0; i < tensor.rank; i++) tensor.shape[i] = strtoull(head->words[2 + i], NULL, 10);
  /* Its outcome is waited for, unlike that of other calls. */
  pserver_status status = pserver_create(client, name, &tensor, NULL, 500, NULL);
  free(name);
  free(tensor.data);
  return status;
}

static pserver_status contribute(const struct line *head, struct line *line) {
  size_t bytes;
  size_t count = strtoull(head->words[9], NULL, 10);
  const char **names = calloc(count, sizeof *names);
  pserver_tensor *tensors = calloc(count, sizeof *tensors);
  bool *exact = calloc(count, sizeof *exact);
  EXPECT(names != NULL && tensors != NULL && exact != NULL);
  for (size_t i = 0; i < count; i++) {
    exact[i] = head->words[8][i] == '1';
    EXPECT(read_line(line));
    names[i] = read_values(line, &tensors[i]);
  }
  pserver_contribution work;
  uint64_t round;
  char *fragment = (char *)from_hex(head->words[1], &bytes);
  pserver_contribution_init(&work);
  work.fragment = fragment;
  work.base = strtoull(head->words[2], NULL, 10);
  work.steps = strtoull(head->words[3], NULL, 10);
  work.tokens = strtoull(head->words[4], NULL, 10);
  if (strcmp(head->words[5], "-") != 0) work.step_ms = strtod(head->words[5], NULL);
  if (strcmp(head->words[6], "parameters") == 0) work.form = PSERVER_PARAMETERS;
  work.encoding = encoding_of(head->words[7]);
  work.exact = exact;
  /* Its outcome is waited for. */
  pserver_status status = pserver_contribute(client, names, tensors, count, &work, 500, &round);
  for (size_t i = 0; i < count; i++) {
    free((void *)names[i]);
    free(tensors[i].data);
  }
  free(fragment);
  free(names);
  free(tensors);
  free(exact);
  return status;
}

static void make_call(const struct line *head) {
  static struct line line;
  const char *kind = head->words[0];
  pserver_status status;
  if (strcmp(kind, "grads") == 0) status = send_grads(head, &line);
  else if (strcmp(kind, "set") == 0) status = set(head, &line);
  else if (strcmp(kind, "create") == 0) status = create(head, &line);
  else if (strcmp(kind, "contribute") == 0) status = contribute(head, &line);
  else status = push_one(head, &line);
  printf("done %s%s%s\n", pserver_status_name(status), status == PSERVER_OK ? "" : " ",
         status == PSERVER_OK ? "" : ps_last_error()->text);
  free(line.text);
  line = (struct line){0};
}

int main(void) {
  struct line line = {0};
  begin(take);
  while (read_line(&line)) {
    const char *what = line.words[0];
    if (strcmp(what, "job") == 0) broker.max_payload = strtoll(line.words[1], NULL, 10);
    else if (strcmp(what, "reply") == 0) add_reply(&line);
    else if (strcmp(what, "connect") == 0) client = connected(0);
    else if (strcmp(what, "parameter") == 0) add_parameter(&line);
    else if (strcmp(what, "seen") == 0) note_seen(&line);
    else make_call(&line);
  }
  closed(client);
  for (size_t i = 0; i < reply_count; i++) free(replies[i].bytes);
  free(line.text);
  return 0;
}
