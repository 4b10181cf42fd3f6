// Perfetto's trace processor, outside of a browser.
//
// In: the folder of Perfetto's web interface, a list of queries (JSON), and traces. Out: for each
// trace one line of JSON: {"error": text} where the processor does not take the file, or has no
// answer; else {"answers": the rows of each query}.
//
// The interface runs its processor (WebAssembly) in a worker, which gets a port and after that
// messages of `TraceProcessorRpcStream` (trace_processor.proto). This is such a worker's other end:
// each trace has an engine of its own. Of protocol buffers it has what these few messages need.

"use strict";
const fs = require("fs");
const path = require("path");

const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorMethod
const REQUEST = 2, FATAL = 5, DATA = 101, ARGS = 103; // fields of TraceProcessorRpc
const APPENDED = 201, ROWS = 203, FINALIZED = 209;
const CELLS = { empty: 1, integer: 2, real: 3, text: 4 }; // CellsBatch.CellType

// ---- protocol buffers ----

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}

const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, value) =>
  Buffer.concat([varint(field * 8 + 2), varint(value.length), Buffer.from(value)]);

function* varints(data) {
  for (let at = 0; at < data.length; ) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      value |= BigInt(data[at] & 127) << shift;
      if (data[at++] < 128) break;
    }
    yield Number(BigInt.asIntN(64, value));
  }
}

// {field: its values}: numbers, or bytes.
function message(data) {
  const found = {};
  let at = 0;
  const next = () => {
    const start = at;
    while (data[at++] > 127);
    return varints(data.subarray(start, at)).next().value;
  };
  while (at < data.length) {
    const key = next(), kind = key & 7;
    let value;
    if (kind === 0) value = next();
    else {
      const size = kind === 2 ? next() : kind === 1 ? 8 : 4;
      value = data.subarray(at, (at += size));
    }
    (found[key >>> 3] ??= []).push(value);
  }
  return found;
}

const text = (found, field) => (found?.[field] ? Buffer.from(found[field][0]).toString() : "");

function* rows(result, names) { // QueryResult; only the first one of an answer has names
  names.push(...(result[1] ?? []).map((one) => Buffer.from(one).toString()));
  for (const batch of (result[3] ?? []).map(message)) {
    const integers = (batch[2] ?? []).flatMap((some) => [...varints(some)]);
    const reals = (batch[3] ?? []).flatMap((some) =>
      Array.from({ length: some.length / 8 }, (_, i) => Buffer.from(some).readDoubleLE(8 * i)));
    const texts = text(batch, 5).split("\0");
    const cells = (batch[1] ?? []).flatMap((some) => [...varints(some)]).map((kind) =>
      kind === CELLS.integer ? integers.shift() : kind === CELLS.real ? reals.shift()
        : kind === CELLS.text ? texts.shift() : null);
    for (let i = 0; i < cells.length; i += names.length) {
      yield Object.fromEntries(names.map((name, k) => [name, cells[i + k]]));
    }
  }
}

// ---- the worker ----

class Engine {
  constructor(folder) {
    const self = { location: { href: "file:///" } };
    class XMLHttpRequest {
      open(method, name) { this.name = path.basename(name); }
      send() { this.response = fs.readFileSync(path.join(folder, this.name)); }
    }
    const quiet = { log() {}, warn() {}, error() {} };
    const around = { self, XMLHttpRequest, WorkerGlobalScope: class {}, console: quiet,
      process: undefined }; // which would tell it that this is no browser
    const script = fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8");
    new Function(...Object.keys(around), script)(...Object.values(around));
    this.sent = 0;
    this.port = { postMessage: (data) => this.answer(Buffer.from(data)) };
    self.onmessage({ data: this.port });
  }

  // A reply is a stream with one message or several.
  answer(data) {
    for (const one of message(data)[1].map(message)) {
      if (one[FATAL]) throw new Error(text(one, FATAL));
      this.replies.push(one);
    }
  }

  // The replies to a request: the processor answers before it returns.
  ask(method, ...fields) {
    this.replies = [];
    const request = Buffer.concat([number(1, ++this.sent), number(REQUEST, method), ...fields]);
    this.port.onmessage({ data: new Uint8Array(bytes(1, request)) });
    return this.replies;
  }
}

async function processed(folder, queries, file) {
  const engine = new Engine(folder);
  await null; // it is ready at the end of a turn
  try {
    const size = 8 << 20, data = fs.readFileSync(file);
    for (let at = 0; at < data.length || !at; at += size) {
      for (const one of engine.ask(APPEND, bytes(DATA, data.subarray(at, at + size)))) {
        const error = text(message(one[APPENDED][0]), 2);
        if (error) return { error };
      }
    }
    for (const one of engine.ask(FINALIZE)) {
      const error = one[FINALIZED] && text(message(one[FINALIZED][0]), 1);
      if (error) return { error };
    }
    const answers = [];
    for (const sql of queries) {
      const names = [], found = [];
      for (const one of engine.ask(QUERY, bytes(ARGS, bytes(1, Buffer.from(sql))))) {
        const result = message(one[ROWS][0]);
        if (result[2]) return { error: text(result, 2) };
        for (const row of rows(result, names)) found.push(row);
      }
      answers.push(found);
    }
    return { answers };
  } catch (error) {
    return { error: `${error}` };
  }
}

(async () => {
  const [folder, queries, ...files] = process.argv.slice(2);
  for (const file of files) {
    console.log(JSON.stringify(await processed(folder, JSON.parse(queries), file)));
  }
})();
