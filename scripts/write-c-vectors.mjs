// Makes a C header of the shared vectors in test/vectors, for test/c/programs/vectors.c: the test
// writes it where it compiles, so that it is never out of date. Plain JavaScript, like the other
// scripts; write-c-vectors.d.mts types it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { constantOf } from "./write-c-errors.mjs";

/** Writes text as a C literal, each byte of its UTF-8 form in octal. */
function literal(text) {
  const bytes = [...Buffer.from(text, "utf8")];
  return `"${bytes.map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("")}"`;
}

function table(name, fields, rows) {
  return `static const struct { ${fields} } ${name}[] = {\n${rows.map((row) => `  {${row.join(", ")}},`).join("\n")}\n};\n`;
}

const bytesOf = (text) => Buffer.byteLength(text, "utf8");

/** Lists every list of messages in a file: those whose entries have `fields` and `hex`. */
function messagesIn(file) {
  return Object.values(file)
    .flatMap((list) => (Array.isArray(list) ? list : []))
    .filter(({ fields, hex }) => fields !== undefined && hex !== undefined);
}

export function renderVectors(directory) {
  const read = (name) => JSON.parse(readFileSync(join(directory, `${name}.json`), "utf8"));
  const names = read("names");
  const encodings = read("encodings");
  const messages = ["answers", "lifecycle", "records"].flatMap((name) => messagesIn(read(name)));
  const wellFormed = names.names.filter(({ name }) => name.isWellFormed());
  return [
    "/* Written by scripts/write-c-vectors.mjs. */",
    table(
      "names",
      "const char *name; size_t bytes; const char *token;",
      wellFormed.map(({ name, token }) => [literal(name), bytesOf(name), literal(token)]),
    ),
    table(
      "jobs",
      "const char *job; bool is_valid;",
      names.jobs
        .filter(({ job }) => !job.includes("\0"))
        .map(({ job, code }) => [literal(job), code === undefined || code === ""]),
    ),
    table(
      "encoded",
      "const char *float32, *bfloat16, *float16;",
      encodings.encoded.map((row) => [row.float32, row.bfloat16, row.float16].map(literal)),
    ),
    table(
      "decoded",
      "const char *hex, *bfloat16, *float16;",
      encodings.decoded.map((row) => [row.hex, row.bfloat16, row.float16].map(literal)),
    ),
    table(
      "groups",
      "const char *float32, *int8, *e3m0;",
      encodings.groups.map((row) => [row.float32, row.int8, row.e3m0].map(literal)),
    ),
    table(
      "groups_read",
      "pserver_encoding encoding; size_t elements; const char *hex, *float32;",
      encodings.groupsRead.map(({ encoding, elements, hex, float32 }) => [
        encodingName(encoding),
        elements,
        literal(hex),
        float32 === undefined ? "NULL" : literal(float32),
      ]),
    ),
    table(
      "streams",
      "const char *stream; bool is_valid; unsigned shard; uint64_t generation;",
      read("subjects").streams.map(({ stream, code, shard = 0, generation = 0 }) => [
        literal(stream),
        code === undefined,
        shard,
        generation,
      ]),
    ),
    table(
      "acks",
      "const char *json; int kind; unsigned shard; uint64_t generation, seq; pserver_status code; const char *text;",
      read("acks").acks.map(({ json, kind, shard = 0, generation = 0, seq = 0, code, text }) => [
        literal(json),
        `PS_ACK_${kind.toUpperCase()}`,
        shard,
        generation,
        seq,
        code === undefined ? "PSERVER_OK" : `PSERVER_ERR_${code}`,
        text === undefined ? "NULL" : literal(text),
      ]),
    ),
    table(
      "codes",
      "pserver_status status; enum ps_reaction reaction; enum ps_rejection rejection;",
      read("reactions").codes.map(({ code, reaction, rejection }) => [
        `PSERVER_ERR_${code}`,
        constantOf("PS_REACTION", reaction),
        constantOf("PS_REJECTION", rejection),
      ]),
    ),
    table(
      "reactions",
      "const char *kind, *code; pserver_status status; const char *reaction;",
      read("reactions").reactions.map(({ kind, code, reaction }) => [
        literal(kind),
        literal(code),
        `PSERVER_ERR_${code}`,
        literal(reaction),
      ]),
    ),
    table(
      "balanced",
      "size_t place, fragments; const char *name; uint64_t bytes; bool is_embedding; const char *fragment;",
      read("fragments").balanced.flatMap(({ count, tensors, fragments }, place) =>
        tensors.map(({ name, bytes, isEmbedding = false }) => [
          place,
          count,
          literal(name),
          bytes,
          isEmbedding,
          literal(fragments[name]),
        ]),
      ),
    ),
    table(
      "messages",
      "const char *what, *hex;",
      messages.map(({ what, hex }) => [literal(what), literal(hex)]),
    ),
    table(
      "refused",
      "const char *what, *hex; pserver_status code;",
      read("refused").messages.map(({ what, hex, code }) => [
        literal(what),
        literal(hex),
        `PSERVER_ERR_${code}`,
      ]),
    ),
    table(
      "written",
      "const char *hex;",
      read("encoding").written.map(({ hex }) => [literal(hex)]),
    ),
  ].join("\n");
}

const cName = (dtype) => `PSERVER_${dtype.toUpperCase()}`;
const encodingName = (encoding) => `PSERVER_ENCODING_${encoding.toUpperCase()}`;
const cNumber = (number) =>
  ({ NaN: "NAN", Infinity: "INFINITY", "-Infinity": "-INFINITY" })[number] ?? number;
const cList = (type, numbers) => `(${type}[]){${[...numbers, 0].map(cNumber).join(", ")}}`;

/** The entries of a struct refusal_call that a case has, by their names. */
const ENTRIES = {
  what: (text) => `.what = ${literal(text)}`,
  call: (text) => `.call = ${literal(text)}`,
  name: (text) => `.name = ${literal(text)}`,
  path: (text) => `.path = ${literal(text)}`,
  config: (config) => `.config = ${literal(JSON.stringify(config))}`,
  alpha: (number) => `.alpha = ${cNumber(number)}`,
  beta: (number) => `.beta = ${cNumber(number)}`,
  learningRate: (number) => `.has_rate = true, .rate = ${cNumber(number)}`,
  encoding: (encoding) => `.encoding = ${encodingName(encoding)}`,
  rows: (rows) => `.rows = ${cList("int64_t", rows)}, .row_count = ${rows.length}`,
  indices: (lists) =>
    `.lists = ${lists.length}, .indices = {${lists.map((list) => `{${cList("int64_t", list)}, ${list.length}}`).join(", ")}}`,
  tensor: ({ dtype, shape, values }) =>
    `.dtype = ${cName(dtype)}, .rank = ${shape.length}, .shape = {${[...shape, 0].join(", ")}}, ` +
    `.values = ${cList("double", values)}, .count = ${values.length}`,
};

function refusalCalls(name, cases) {
  const rows = cases.map((given) => {
    const entries = Object.entries(given).filter(([key]) => key in ENTRIES);
    return `  {${entries.map(([key, value]) => ENTRIES[key](value)).join(", ")}},`;
  });
  return `static const struct refusal_call ${name}[] = {\n${rows.join("\n")}\n};\n`;
}

/**
 * Writes the calls of refusals.json, for test/c/programs/refusals.c, which declares their struct.
 */
export function renderRefusals(directory) {
  const { calls } = JSON.parse(readFileSync(join(directory, "refusals.json"), "utf8"));
  return `/* Written by scripts/write-c-vectors.mjs. */\n${refusalCalls("calls", calls)}`;
}

const cArray = (type, items) => `(const ${type}[]){${[...items, "0"].join(", ")}}`;

/**
 * Writes the cases of reads.json, for test/c/scripted/read-vectors.c, which declares their structs.
 */
export function renderReads(directory) {
  const { reads } = JSON.parse(readFileSync(join(directory, "reads.json"), "utf8"));
  const rows = reads.map(({ what, names, indices, encoding, known, status, requests }) => {
    const lists = (indices ?? []).map((list) => `{${cList("int64_t", list)}, ${list.length}}`);
    const states = (known ?? []).map((list) => cArray("uint64_t", list));
    const sent = requests.map(
      ({ subject, bytes, crc }) => `{${literal(subject)}, ${bytes}, ${crc}u}`,
    );
    return [
      `.what = ${literal(what)}, .status = ${literal(status)}`,
      `.names = (const char *const[]){${names.map(literal).join(", ")}}, .name_count = ${names.length}`,
      `.is_part = ${indices !== undefined}`,
      lists.length > 0 ? `.indices = (const pserver_indices[]){${lists.join(", ")}}` : "",
      `.rank = ${lists.length}`,
      encoding === undefined ? "" : `.encoding = ${encodingName(encoding)}`,
      states.length > 0 ? `.known = (const uint64_t *const[]){${states.join(", ")}}` : "",
      `.requests = (const struct expected_request[]){${sent.join(", ")}}`,
      `.request_count = ${sent.length}`,
    ];
  });
  const entries = rows.map((row) => `  {${row.filter((entry) => entry !== "").join(", ")}},`);
  return `/* Written by scripts/write-c-vectors.mjs. */\nstatic const struct read_vector read_vectors[] = {\n${entries.join("\n")}\n};\n`;
}
