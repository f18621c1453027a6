// What users of memjs do: PORT binary | stats.
'use strict';

const assert = require('assert');
const memjs = require('memjs');
const { version } = require('memjs/package.json');

const [port, part] = process.argv.slice(2);
// A wait that takes so long is a hang, in seconds.
const HANG = 60;
let done = 0;

function connect() {
  const quiet = { log() {} };
  const options = { retries: 0, timeout: HANG, conntimeout: HANG, logger: quiet };
  return memjs.Client.create(`127.0.0.1:${port}`, options);
}

function equal(found, wanted, what) {
  assert.deepStrictEqual(found, wanted, what);
  done += 1;
}

async function text(client, key) {
  const { value } = await client.get(key);
  return value === null ? null : value.toString();
}

async function binary() {
  const client = connect();
  await client.flush();
  equal(await text(client, 'a'), null, 'get of nothing');
  equal(await client.set('a', '1', {}), true, 'set');
  equal(await text(client, 'a'), '1', 'get');
  equal(await client.add('a', '2', {}), false, 'add of a key that is there');
  equal(await client.add('b', '2', {}), true, 'add');
  equal(await client.replace('c', '3', {}), false, 'replace of nothing');
  equal(await client.replace('b', '3', {}), true, 'replace');
  equal(await client.append('b', '4'), true, 'append');
  await assert.rejects(client.append('c', '4'), /not stored/i, 'append to nothing');
  done += 1;
  // Its prepend sends an append.
  equal(await text(client, 'b'), '34', 'get of what was joined');

  const made = await client.increment('n', 5, { initial: 10 });
  equal([made.success, made.value], [true, 10], 'increment of nothing');
  const more = await client.increment('n', 5, {});
  equal([more.success, more.value], [true, 15], 'increment');
  const less = await client.decrement('n', 100, {});
  equal([less.success, less.value], [true, 0], 'decrement below zero');

  equal(await client.touch('a', 1000), true, 'touch');
  equal(await client.touch('nothing', 1000), false, 'touch of nothing');
  equal(await client.delete('a'), true, 'delete');
  equal(await client.delete('a'), false, 'delete of nothing');

  for (const key of ['schlüssel', '鍵', 'spaces and\r\nlines', 'k'.repeat(250)]) {
    equal(await client.set(key, `the value of ${key}`, {}), true, 'set');
    equal(await text(client, key), `the value of ${key}`, 'get');
  }
  for (const length of [0, 1, 1000, 100000, 1000000]) {
    const value = Buffer.alloc(length, Buffer.from([0, 13, 10, 128, 255]));
    equal(await client.set('large', value, {}), true, `set of ${length} bytes`);
    const found = await client.get('large');
    assert(found.value.equals(value), `get of ${length} bytes`);
  }
  await assert.rejects(client.set('big', Buffer.alloc(1100000), {}), 'too large');
  done += 1;
  equal(await text(client, 'big'), null, 'get of what was too large');

  // All at once: answers are told apart by their numbers.
  const many = [...Array(300).keys()];
  await Promise.all(many.map((n) => client.set(`key${n}`, `${n}`, {})));
  const found = await Promise.all(many.map((n) => text(client, `key${n}`)));
  equal(found, many.map(String), 'get of many');

  await client.set('soon', 'x', { expires: 1 });
  const end = Date.now() + 1000 * HANG;
  while ((await text(client, 'soon')) !== null) {
    assert(Date.now() < end, 'an item expires after a second');
    await new Promise((then) => setTimeout(then, 20));
  }
  await client.flush();
  equal(await text(client, 'b'), null, 'get after flush');
  client.close();
}

async function stats() {
  const client = connect();
  const ask = () => new Promise((then, fail) => {
    client.stats((error, server, found) => (error ? fail(error) : then(found)));
  });
  const before = await ask();
  await client.set('a', '1', {});
  await client.get('a');
  await client.get('nothing');
  const after = await ask();
  for (const name of ['get_hits', 'get_misses', 'cmd_set']) {
    equal(after[name] - before[name], 1, `stats of ${name}`);
  }
  client.close();
}

const name = `memjs ${version}, ${part}`;
({ binary, stats })[part]().then(
  () => console.log(`${name}: ${done} checks passed`),
  (error) => {
    console.log(`${name}: ${error.message}`);
    process.exit(1);
  },
);
