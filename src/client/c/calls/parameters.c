#include "calls/calls.h"

#include <stdlib.h>
#include <string.h>

/* Parameters as hosts describe them. */

static bool read_shape(const struct ps_value *fields, struct ps_parameter *parameter) {
  struct ps_value list;
  struct ps_value size;
  const uint8_t *at = NULL;
  if (!ps_map_find(fields, "shape", &list) || list.type != PS_VALUE_LIST) return false;
  if (list.count > PSERVER_RANK_MAX) return false;
  parameter->rank = (int32_t)list.count;
  for (int32_t axis = 0; ps_list_next(&list, &at, &size); axis++) {
    if (!ps_value_whole(&size, &parameter->shape[axis])) return false;
  }
  return ps_element_count(parameter->shape, parameter->rank) > 0;
}

static bool read_flag(const struct ps_value *map, const char *key) {
  struct ps_value flag;
  return ps_map_find(map, key, &flag) && flag.type == PS_VALUE_BOOLEAN && flag.boolean;
}

static bool read_layout(const struct ps_value *fields, struct ps_parameter *parameter) {
  struct ps_value map;
  struct ps_layout *layout = &parameter->layout;
  if (!ps_map_find(fields, "layout", &map) || !ps_map_whole(&map, "elements", &layout->elements) ||
      !ps_map_whole(&map, "blockElements", &layout->block_elements) ||
      !ps_map_whole(&map, "blocks", &layout->blocks) ||
      !ps_map_whole(&map, "firstShard", &layout->first_shard) ||
      !ps_map_whole(&map, "shards", &layout->shards)) {
    return false;
  }
  layout->is_pinned = read_flag(&map, "pinned");
  uint64_t elements = ps_element_count(parameter->shape, parameter->rank);
  return layout->elements == elements && layout->block_elements > 0 &&
         layout->block_elements <= elements && layout->shards > 0 && layout->shards <= 256 &&
         layout->first_shard < layout->shards && layout->blocks <= UINT32_MAX &&
         layout->blocks == (elements + layout->block_elements - 1) / layout->block_elements;
}

/** Reads the number of block 0; those of the other blocks follow it. */
static bool read_first_number(const struct ps_value *fields, struct ps_parameter *parameter) {
  uint64_t number;
  if (!ps_map_whole(fields, "firstNumber", &number) || number == 0) return false;
  if (number > UINT32_MAX || parameter->layout.blocks - 1 > UINT32_MAX - number) return false;
  parameter->first_number = (uint32_t)number;
  return true;
}

static bool read_config(const struct ps_value *fields, struct ps_parameter *parameter) {
  struct ps_value config;
  struct ps_value entry;
  struct ps_value name;
  if (!ps_map_find(fields, "config", &config) || config.type != PS_VALUE_MAP) return false;
  parameter->config = malloc(config.raw_bytes);
  if (parameter->config == NULL) return false;
  memcpy(parameter->config, config.raw, config.raw_bytes);
  parameter->config_bytes = config.raw_bytes;
  parameter->has_rate = ps_map_find(&config, "learningRate", &entry);
  parameter->has_optimizer = !ps_map_find(&config, "optimizer", &entry) ||
                             !ps_map_find(&entry, "name", &name) || !ps_value_is_text(&name, "none");
  parameter->is_sparse = read_flag(&config, "sparse");
  parameter->is_static = read_flag(&config, "static");
  parameter->clips_norm = ps_map_find(&config, "clipNorm", &entry);
  parameter->allows_non_finite = read_flag(&config, "allowNonFinite");
  if (!ps_map_find(&config, "fragment", &entry)) return true;
  if (entry.type != PS_VALUE_TEXT) return false;
  parameter->fragment = ps_name_of_text(entry.content, entry.content_bytes);
  return parameter->fragment != NULL;
}

static bool read_name(const struct ps_value *fields, struct ps_parameter *parameter) {
  struct ps_value name;
  if (!ps_map_find(fields, "name", &name) || name.type != PS_VALUE_TEXT) return false;
  parameter->name = ps_name_of_text(name.content, name.content_bytes);
  if (parameter->name == NULL) return false;
  parameter->name_bytes = strlen(parameter->name);
  return ps_escape_name(parameter->name, parameter->name_bytes, parameter->token) == PSERVER_OK;
}

pserver_status ps_read_parameter(const struct ps_value *value, struct ps_parameter **parameter) {
  struct ps_value dtype;
  struct ps_value ready;
  struct ps_parameter *read = calloc(1, sizeof *read);
  if (read == NULL) return ps_no_memory("a parameter");
  read->references = 1;
  bool is_valid = read_name(value, read) && ps_map_find(value, "dtype", &dtype) &&
                  dtype.type == PS_VALUE_TEXT &&
                  ps_dtype_from_name((const char *)dtype.content, dtype.content_bytes, &read->dtype) &&
                  read_shape(value, read) && read_layout(value, read) &&
                  read_first_number(value, read) && read_config(value, read) &&
                  ps_map_whole(value, "epoch", &read->epoch) && ps_map_find(value, "ready", &ready) &&
                  ready.type == PS_VALUE_BOOLEAN;
  if (is_valid) {
    read->seen = calloc(read->layout.blocks, sizeof(uint64_t));
    is_valid = read->seen != NULL;
  }
  if (is_valid) {
    read->is_ready = ready.boolean;
    *parameter = read;
    return PSERVER_OK;
  }
  ps_fail(PSERVER_ERR_BAD_MESSAGE, "a reply describes the parameter %s in an unknown way",
          read->name == NULL ? "without a name" : read->name);
  ps_parameter_unref(read);
  return PSERVER_ERR_BAD_MESSAGE;
}

void ps_parameter_ref(struct ps_parameter *parameter) {
  __atomic_add_fetch(&parameter->references, 1, __ATOMIC_RELAXED);
}

void ps_parameter_unref(struct ps_parameter *parameter) {
  if (parameter == NULL) return;
  if (__atomic_sub_fetch(&parameter->references, 1, __ATOMIC_ACQ_REL) > 0) return;
  free(parameter->name);
  free(parameter->config);
  free(parameter->fragment);
  free(parameter->seen);
  free(parameter);
}

void ps_parameters_unref(struct ps_parameter **parameters, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ps_parameter_unref(parameters[i]);
    parameters[i] = NULL;
  }
}

bool ps_has_name(const struct ps_parameter *parameter, const char *name, size_t bytes) {
  return parameter->name_bytes == bytes && memcmp(parameter->name, name, bytes) == 0;
}

uint32_t ps_number_of_block(const struct ps_parameter *parameter, uint64_t index) {
  return parameter->first_number + (uint32_t)index;
}

unsigned ps_shard_of_block(const struct ps_parameter *parameter, uint64_t index) {
  const struct ps_layout *layout = &parameter->layout;
  if (layout->is_pinned) return (unsigned)layout->first_shard;
  return (unsigned)((layout->first_shard + index) % layout->shards);
}

uint64_t ps_block_elements(const struct ps_parameter *parameter, uint64_t index) {
  const struct ps_layout *layout = &parameter->layout;
  uint64_t left = layout->elements - index * layout->block_elements;
  return left < layout->block_elements ? left : layout->block_elements;
}

uint64_t ps_row_elements(const struct ps_parameter *parameter) {
  return parameter->rank == 0 ? 1 : parameter->layout.elements / parameter->shape[0];
}

bool ps_is_cut_between_rows(const struct ps_parameter *parameter) {
  return parameter->layout.block_elements % ps_row_elements(parameter) == 0;
}

/** By value of pserver_state. */
static const char *const state_names[] = {"uninitialized", "initializing", "ready"};

const char *ps_state_name(pserver_state state) { return state_names[state]; }

pserver_status ps_read_state(const struct ps_value *fields, pserver_state *state) {
  struct ps_value text;
  if (ps_map_find(fields, "state", &text)) {
    for (int i = 0; i < 3; i++) {
      if (!ps_value_is_text(&text, state_names[i])) continue;
      *state = (pserver_state)i;
      return PSERVER_OK;
    }
  }
  return ps_fail(PSERVER_ERR_BAD_MESSAGE, "state: expected a state of the lifecycle; received none");
}

pserver_status ps_read_parameter_list(const struct ps_message *message, struct ps_parameter **parameters,
                                      size_t capacity, size_t *count) {
  struct ps_value list;
  struct ps_value entry;
  const uint8_t *at = NULL;
  *count = 0;
  if (!ps_map_find(&message->fields, "parameters", &list) || list.type != PS_VALUE_LIST ||
      list.count > capacity) {
    return ps_fail(PSERVER_ERR_BAD_MESSAGE, "parameters: expected at most %zu of them", capacity);
  }
  while (ps_list_next(&list, &at, &entry)) {
    parameters[*count] = NULL;
    if (entry.type != PS_VALUE_NIL) {
      pserver_status status = ps_read_parameter(&entry, &parameters[*count]);
      if (status != PSERVER_OK) return status;
    }
    (*count)++;
  }
  return PSERVER_OK;
}
