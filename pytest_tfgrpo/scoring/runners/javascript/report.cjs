// The report of a test run: records signed with a key that only this closure holds, over a socket that no file
// leads to. It is loaded before anything of the project is; what the project changes afterwards is not used here.
'use strict';
const fs = require('node:fs');
const crypto = require('node:crypto');
const inspector = require('node:inspector');
const v8 = require('node:v8');
const { syncBuiltinESMExports } = require('node:module');

const { readSync, writeSync } = fs;
const { createHmac, createSecretKey } = crypto;
const { stringify } = JSON;
const { create, keys, setPrototypeOf } = Object;
const { isArray } = Array;
const toBytes = Buffer.from;
const text = String;
const SOCKET = 3;
const MAX_TEXT = 4000;
const MAX_SETTINGS = 64 * 1024 * 1024;

/** Make what signs and what judges the same for the whole run. */
function harden() {
  const refuse = () => {
    throw new Error('not available while tests are checked');
  };
  inspector.Session = refuse;
  inspector.open = refuse;
  v8.getHeapSnapshot = refuse;
  v8.writeHeapSnapshot = refuse;
  v8.setFlagsFromString = refuse;
  syncBuiltinESMExports();
  const hmac = createHmac('sha256', 'x');
  for (const symbol of Object.getOwnPropertySymbols(hmac)) {
    const value = hmac[symbol];
    if (value !== null && typeof value === 'object') Object.freeze(Object.getPrototypeOf(value));
  }
  Object.freeze(Object.getPrototypeOf(hmac));
  for (const name of ['node:assert', 'node:assert/strict']) Object.freeze(require(name));
}

/** Return a record whose writing no prototype has a say in. */
function plain(record) {
  const copy = create(null);
  const names = keys(record);
  for (let at = 0; at < names.length; at += 1) {
    const value = record[names[at]];
    copy[names[at]] = isArray(value) ? setPrototypeOf(value, null) : value;
  }
  return copy;
}

/** Return the first items of a list, and one more, in a list of its own. */
function path(items, count, last) {
  const found = setPrototypeOf([], null);
  for (let at = 0; at < count; at += 1) found[at] = items[at];
  found[count] = last;
  return found;
}

/** Return a value's text, cut; a hostile object gives "". */
function words(value) {
  try {
    const found = typeof value === 'string' ? value : text(value);
    return found.length > MAX_TEXT ? found.substring(0, MAX_TEXT) : found;
  } catch {
    return '';
  }
}

/** Return why a test failed, of any thrown value. */
function reason(error) {
  try {
    if (error !== null && typeof error === 'object' && 'message' in error) {
      const name = words(error.name || '');
      const message = words(error.message);
      return name && !message.startsWith(name) ? `${name}: ${message}` : message;
    }
  } catch {
    return '';
  }
  return words(error);
}

/** Return the settings, one line of JSON from the socket. */
function received() {
  const parts = [];
  const part = Buffer.alloc(65536);
  for (let size = 0; size < MAX_SETTINGS; ) {
    const count = readSync(SOCKET, part, 0, part.length, null);
    size += count;
    parts.push(Buffer.from(part.subarray(0, count)));
    if (count === 0 || part[count - 1] === 10) break;
  }
  return JSON.parse(Buffer.concat(parts).toString('utf8'));
}

/** Read the settings; return them without the key, and the function that adds a record to the report. */
function open() {
  const { key: secret, ...settings } = received();
  const key = createSecretKey(Buffer.from(secret, 'hex'));
  let place = 0;
  harden();
  const add = (record) => {
    const line = stringify(plain(record));
    const signature = createHmac('sha256', key).update(`${place}:${line}`).digest('hex');
    const bytes = toBytes(`${signature} ${line}\n`);
    place += 1;
    for (let at = 0; at < bytes.length; ) at += writeSync(SOCKET, bytes, at);
  };
  return { settings, add };
}

module.exports = { open, path, reason, words };
