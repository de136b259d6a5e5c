/* Makes training steps with the C library: pushes gradients of whole tensors, or of some rows, and pulls
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "step-data.h"
#include "training.h"

#define NAME_BYTES 64

/** A step of whole tensors of one shape, which are read into `targets`. */
struct dense_step {
  size_t parameters;
  char (*names)[NAME_BYTES];
  const char **name_list;
  pserver_gradient *gradients;
  pserver_tensor *targets;
};

/** A step of rows of one table; successive steps use different sets of rows. */
struct row_step {
  char name[NAME_BYTES];
  size_t rows;
  size_t row_elements;
  int64_t *sets[ROW_SETS];
  int64_t *columns;
  pserver_tensor values;
  pserver_tensor target;
  size_t turn;
};

static struct dense_step dense;
static struct row_step table;
/** Whether steps of rows were prepared last. */
static bool is_of_rows;

static pserver_tensor tensor_of(float *values, size_t count) {
  return (pserver_tensor){
      PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, values, count * sizeof(float)};
}

/** Prepares dense steps. Arguments: prefix of the names, parameters, elements of each. */
static bool prepare_dense(char **arguments, struct answer *answer) {
  (void)answer;
  size_t count = strtoull(arguments[1], NULL, 10);
  size_t elements = strtoull(arguments[2], NULL, 10);
  float *gradient = make_floats(elements);
  dense = (struct dense_step){.parameters = count,
                              .names = allocate(count, sizeof *dense.names),
                              .name_list = allocate(count, sizeof *dense.name_list),
                              .gradients = allocate(count, sizeof *dense.gradients),
                              .targets = allocate(count, sizeof *dense.targets)};
  for (size_t i = 0; i < count; i++) {
    snprintf(dense.names[i], NAME_BYTES, "%s.%zu", arguments[0], i);
    dense.name_list[i] = dense.names[i];
    dense.gradients[i] = (pserver_gradient){dense.names[i], tensor_of(gradient, elements), NULL, 0};
    dense.targets[i] = tensor_of(make_floats(elements), elements);
  }
  is_of_rows = false;
  return true;
}

/** Prepares steps of rows. Arguments: name, rows of the table, elements of a row, rows of a step. */
static bool prepare_rows(char **arguments, struct answer *answer) {
  (void)answer;
  size_t table_rows = strtoull(arguments[1], NULL, 10);
  size_t width = strtoull(arguments[2], NULL, 10);
  size_t rows = strtoull(arguments[3], NULL, 10);
  table = (struct row_step){.rows = rows,
                            .row_elements = width,
                            .columns = allocate(width, sizeof *table.columns),
                            .values = tensor_of(make_floats(rows * width), rows * width),
                            .target = tensor_of(make_floats(rows * width), rows * width)};
  snprintf(table.name, sizeof table.name, "%s", arguments[0]);
  for (size_t i = 0; i < width; i++) table.columns[i] = (int64_t)i;
  for (uint32_t seed = 0; seed < ROW_SETS; seed++) {
    table.sets[seed] = choose_rows(seed, rows, table_rows);
  }
  is_of_rows = true;
  return true;
}

static pserver_status push(void) {
  if (!is_of_rows) {
    return pserver_send_grads(client, dense.gradients, dense.parameters, NULL, TIMEOUT_MS);
  }
  pserver_gradient gradient = {table.name, table.values, table.sets[table.turn], table.rows};
  return pserver_send_grads(client, &gradient, 1, NULL, TIMEOUT_MS);
}

static pserver_status pull(void) {
  if (!is_of_rows) {
    return pserver_get(client, dense.name_list, dense.targets, dense.parameters, PSERVER_AS_IS,
                       TIMEOUT_MS);
  }
  const pserver_indices indices[] = {{table.sets[table.turn], table.rows},
                                     {table.columns, table.row_elements}};
  return pserver_pull_part(client, table.name, indices, 2, &table.target, TIMEOUT_MS);
}

/** Makes steps for a time, at least one. Arguments: "step", or only "push" or "pull"; ms. Answer: steps,
 * begin and end in ms. */
static bool run(char **arguments, struct answer *answer) {
  bool pulls = strcmp(arguments[0], "push") != 0;
  bool pushes = strcmp(arguments[0], "pull") != 0;
  double duration_ms = strtod(arguments[1], NULL);
  double start_ms = machine_ms();
  size_t steps = 0;
  do {
    table.turn = steps % ROW_SETS;
    if (pushes && !is_done(push(), "push", answer)) return false;
    if (pulls && !is_done(pull(), "pull", answer)) return false;
    steps++;
  } while (machine_ms() - start_ms < duration_ms);
  snprintf(answer->text, sizeof answer->text, "%zu %.6f %.6f", steps, start_ms, machine_ms());
  return true;
}

int main(void) {
  static const struct command commands[] = {{"open", 3, open_trainer},
                                            {"dense", 3, prepare_dense},
                                            {"rows", 4, prepare_rows},
                                            {"run", 2, run}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  close_trainer();
  return 0;
}
